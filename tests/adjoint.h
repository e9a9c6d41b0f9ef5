// The one check of a linear op: its backward is its adjoint, and the backward of that is the op again.
// Not gradcheck (autograd/tools/gradcheck.h), which takes any op and needs finite differences.
// Next: test_views.cpp.
#pragma once

#include <doctest/doctest.h>

#include <functional>

#include "../autograd/engine.h"
#include "../autograd/factory.h"
#include "../autograd/grad_mode.h"

namespace tapestry::testing {

/// Σ a·b over all elements.
inline double inner_product(const Tensor& a, const Tensor& b) {
  const auto x = a.to_vector<double>(), y = b.to_vector<double>();
  double sum = 0;
  for (size_t i = 0; i < x.size(); ++i) sum += x[i] * y[i];
  return sum;
}

/// Small whole numbers, all different enough; sums and products of them are exact in f64.
inline Tensor whole_numbers(const Shape& shape, int64_t step) {
  std::vector<double> values(static_cast<size_t>(numel(shape)));
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<double>((static_cast<int64_t>(i) * step + 3) % 23 - 11);
  return from(values, shape);
}

/// ⟨g, f(x)⟩ = ⟨fᵀ(g), x⟩, and d⟨fᵀ(g), v⟩/dg = f(v), exactly, for a linear f.
inline void check_adjoint(const std::function<Tensor(const Tensor&)>& f, const Tensor& x) {
  const Tensor input = x.detach(), v = whole_numbers(x.shape(), 5);
  input.requires_grad_();
  const Tensor y = f(input), g = whole_numbers(y.shape(), 7);
  g.requires_grad_();
  const Tensor gx = grad({y}, {input}, {.grad_outputs = {g}, .create_graph = true})[0];
  CHECK(gx.shape() == x.shape());
  CHECK(inner_product(g, y) == inner_product(gx, input));
  const Tensor back = grad({gx}, {g}, {.grad_outputs = {v}})[0];
  CHECK(back.to_vector<double>() == f(v).to_vector<double>());
}

/// x with the same elements, lying transposed and behind an offset in memory (rank 2 or more; else unchanged).
inline Tensor scattered(const Tensor& x) {
  if (x.dim() < 2) return x;
  const NoGrad raw;
  Shape shape = x.shape();
  std::swap(shape[0], shape[x.dim() - 1]);
  Shape wider = shape;
  wider[0] += 1;
  const Tensor memory = zeros(wider, x.dtype());
  Strides strides = memory.strides();
  const int64_t offset = strides[0];
  std::swap(strides[0], strides[x.dim() - 1]);
  const Tensor y = memory.view_of(x.shape(), strides, offset);
  y.copy_(x);
  return y;
}

}  // namespace tapestry::testing
