// What the tests of fused ops share: seeded leaves, views of them, comparing tensors, catching messages, and both derivatives of an op at once.
// Not the op table, which runs every op through the same checks. Next: test_matmul.cpp.
#pragma once

#include <doctest/doctest.h>

#include "../autograd/engine.h"
#include "../autograd/grad_mode.h"
#include "../autograd/tools/gradcheck.h"
#include "../ops/ops.h"
#include "kernel_reference.h"

namespace tapestry::testing {

/// Values in [-1, 1) that depend on the seed alone.
inline Tensor uniform(const Shape& shape, uint64_t seed, DType dtype = DType::f64) {
  return to(from(values<double>(numel(shape), seed), shape), dtype);
}
inline Tensor leaf(const Shape& shape, uint64_t seed, DType dtype = DType::f64) {
  return uniform(shape, seed, dtype).detach().requires_grad_();
}

/// A leaf with the values of x whose memory runs through the dims in the opposite order.
inline Tensor reversed_strides(const Tensor& x) {
  Dims order;
  for (int d = x.dim(); d-- > 0;) order.push_back(d);
  const NoGrad raw;
  return permute(contiguous(permute(x, order)), order).requires_grad_(x.requires_grad());
}

/// Largest |a − b|; infinite for other shapes, other dtypes or NaN.
inline double difference(const Tensor& a, const Tensor& b) {
  if (!a.defined() || !b.defined() || a.shape() != b.shape() || a.dtype() != b.dtype()) return INFINITY;
  double worst = 0;
  const auto xs = a.to_vector<double>(), ys = b.to_vector<double>();
  for (size_t i = 0; i < xs.size(); ++i) {
    const double d = std::abs(xs[i] - ys[i]);
    worst = d <= worst || xs[i] == ys[i] ? worst : std::isnan(d) ? INFINITY : d;
  }
  return worst;
}

/// what() of the error of type E that f throws, "" if it throws none.
template <class E, class F>
std::string message(F&& f) {
  try {
    f();
  } catch (const E& e) {
    return e.what();
  }
  return {};
}

/// Gradients of Σ w·f(xs) with fixed uneven weights w, by an ordinary walk (fused kernels) or a recording one (definitions).
inline std::vector<Tensor> gradients(const TensorFunction& f, const std::vector<Tensor>& xs, bool recording = false) {
  const Tensor y = f(xs)[0];
  return grad({y}, xs, {.grad_outputs = {uniform(y.shape(), 99, y.dtype())}, .create_graph = recording});
}

/// Gradients of the fused kernels against those of the definition, first and second derivatives against finite differences.
inline void check_derivatives(const TensorFunction& f, const std::vector<Tensor>& xs) {
  const auto fused = gradients(f, xs), plain = gradients(f, xs, true);
  for (size_t i = 0; i < xs.size(); ++i) CHECK(difference(fused[i], plain[i].detach()) < 1e-10);
  const auto first = gradcheck(f, xs), second = gradgradcheck(f, xs);
  CHECK_MESSAGE(first.ok, first.message);
  CHECK_MESSAGE(second.ok, second.message);
}

}  // namespace tapestry::testing
