// Making leaves that may be moved one number at a time, and taking derivatives without leaving a trace in the caller's tensors.
// Next: gradcheck_hint.h.
#include "probe.h"

#include <algorithm>
#include <cmath>

#include "../engine.h"
#include "../factory.h"
#include "../grad_mode.h"

namespace tapestry::detail {
namespace {

/// Elements from the first of x (its offset) to row-major element j.
int64_t step_to(const Shape& shape, const Strides& strides, int64_t j) {
  int64_t at = 0;
  for (int d = shape.rank() - 1; d >= 0; --d) {
    at += j % shape[d] * strides[d];
    j /= shape[d];
  }
  return at;
}

bool overlaps_itself(const Tensor& x) {
  if (x.is_contiguous()) return false;
  std::vector<int64_t> places(static_cast<size_t>(x.numel()));
  for (size_t j = 0; j < places.size(); ++j) places[j] = step_to(x.shape(), x.strides(), static_cast<int64_t>(j));
  std::sort(places.begin(), places.end());
  return std::adjacent_find(places.begin(), places.end()) != places.end();
}

/// New memory with the shape and strides of x, and x's values + h * direction.
Tensor moved_copy(const Tensor& x, const Flat& direction, double h) {
  int64_t low = 0, high = 0;
  for (int d = 0; d < x.dim(); ++d) {
    const int64_t reach = (x.shape()[d] - 1) * x.strides()[d];
    (reach < 0 ? low : high) += x.numel() > 0 ? reach : 0;
  }
  const Tensor copy = zeros({high - low + 1}, x.dtype()).view_of(x.shape(), x.strides(), -low);
  dispatch(x.dtype(), [&]<class T> {
    const T* from = x.data<T>();
    T* to = copy.mutable_data<T>();
    for (int64_t j = 0; j < x.numel(); ++j) {
      const int64_t at = step_to(x.shape(), x.strides(), j);
      to[at] = from[at];
      if constexpr (std::is_floating_point_v<T>)
        if (!direction.empty() && direction[static_cast<size_t>(j)] != 0)
          to[at] += static_cast<T>(h * direction[static_cast<size_t>(j)]);
    }
  });
  return copy;
}

}  // namespace

Flat flat(const Tensor& x) { return x.to_vector<double>(); }

std::string position(const Shape& shape, int64_t j) {
  Shape index = shape;
  for (int d = shape.rank() - 1; d >= 0; --d) {
    index[d] = j % shape[d];
    j /= shape[d];
  }
  return to_string(index);
}

Tensor unflat(const Flat& values, const Shape& shape, DType dtype, bool scattered) {
  Tensor x = empty(shape, dtype);
  if (scattered) {
    Strides strides = shape;
    int64_t step = 2;
    for (int d = 0; d < shape.rank(); ++d) {
      strides[d] = step;
      step *= std::max<int64_t>(shape[d], 1);
    }
    x = zeros({step}, dtype).view_of(shape, strides, 0);
  }
  dispatch(dtype, [&]<class T> {
    T* to = x.mutable_data<T>();
    for (size_t j = 0; j < values.size(); ++j)
      to[step_to(shape, x.strides(), static_cast<int64_t>(j))] = convert<T>(values[j]);
  });
  return x;
}

Probe::Probe(const char* name, const TensorFunction& f, const std::vector<Tensor>& inputs,
             const GradcheckOptions& options)
    : name_(name), f_(f), inputs_(inputs), eps_(options.eps), random_(random_state()) {
  bool narrow = false;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Tensor& x = inputs[i];
    input_shapes.push_back(x.defined() ? x.shape() : Shape{});
    if (!x.defined() || !x.requires_grad()) continue;
    checked.push_back(static_cast<int>(i));
    if (x.dtype() == DType::bf16 || (x.dtype() == DType::f32 && !options.allow_f32))
      fail<DTypeError>("{}: input {} is {}: its finite differences are mostly rounding; use f64{}", name, i,
                       x.describe(), x.dtype() == DType::f32 ? ", or allow_f32 with wide tolerances" : "");
    if (overlaps_itself(x))
      fail<AutogradError>(
          "{}: input {} ({}, strides {}) overlaps itself, as an expanded tensor does, so its elements cannot be moved "
          "one by one; pass a clone",
          name, i, x.describe(), to_string(x.strides()));
    narrow = narrow || x.dtype() == DType::f32;
  }
  if (checked.empty())
    fail<AutogradError>("{}: none of the {} inputs requires a gradient; call requires_grad_() on those to check", name,
                        inputs.size());
  if (eps_ == 0) eps_ = narrow ? 5e-3 : 1e-6;
  for (const Tensor& y : evaluate().ys) {
    if (y.dtype() != DType::f64 && !options.allow_f32)
      fail<DTypeError>("{}: output {} is {}: its finite differences are mostly rounding; compute in f64", name,
                       output_shapes.size(), y.describe());
    output_shapes.push_back(y.shape());
    outputs_numel += y.numel();
  }
  if (output_shapes.empty()) fail<AutogradError>("{}: the function has no floating output", name);
}

Evaluation Probe::evaluate(int moved, const Flat& direction, double h) const {
  const EnableGrad recording;
  Evaluation e;
  for (size_t i = 0; i < inputs_.size(); ++i) {
    const Tensor& x = inputs_[i];
    if (!x.defined() || !x.requires_grad()) {
      e.xs.push_back(x.defined() ? x.detach() : x);
      continue;
    }
    const bool moves = static_cast<int>(i) == moved;
    e.xs.push_back(moved_copy(x, moves ? direction : Flat{}, h));
    e.xs.back().requires_grad_();
  }
  const RandomState before = random_state();
  random_state() = random_;
  for (Tensor& y : f_(e.xs))
    if (y.defined() && is_floating(y.dtype())) e.ys.push_back(std::move(y));
  random_state() = before;
  if (!output_shapes.empty()) {
    bool same = e.ys.size() == output_shapes.size();
    for (size_t o = 0; same && o < e.ys.size(); ++o) same = e.ys[o].shape() == output_shapes[o];
    if (!same) fail<ShapeError>("{}: the shapes of the outputs change from call to call", name_);
  }
  return e;
}

Flat Probe::numeric(int input, const Flat& direction) const {
  double h = eps_, scale = 2 * eps_;
  const auto nonzero = [](double d) { return d != 0; };
  const auto only = std::find_if(direction.begin(), direction.end(), nonzero);
  if (only != direction.end() && std::none_of(only + 1, direction.end(), nonzero)) {
    // One element: divide by the step that was really made, which rounding changes.
    const double x = flat(inputs_[static_cast<size_t>(input)])[static_cast<size_t>(only - direction.begin())];
    h *= std::max(1.0, std::abs(x));
    const bool wide = inputs_[static_cast<size_t>(input)].dtype() == DType::f64;
    const auto rounded = [&](double v) { return wide ? v : static_cast<double>(static_cast<float>(v)); };
    scale = (rounded(x + h * *only) - rounded(x - h * *only)) / *only;
  }
  const Evaluation up = evaluate(input, direction, h), down = evaluate(input, direction, -h);
  Flat result;
  for (size_t o = 0; o < up.ys.size(); ++o) {
    const Flat a = flat(up.ys[o]), b = flat(down.ys[o]);
    for (size_t j = 0; j < a.size(); ++j) result.push_back((a[j] - b[j]) / scale);
  }
  return result;
}

std::vector<Flat> Probe::analytic(const Evaluation& at, const Flat& upstream, const std::vector<int>& wanted,
                                  std::vector<bool>* defined, bool scattered) const {
  std::vector<Tensor> outputs, targets;
  GradOptions options{.retain_graph = true, .allow_unused = true};
  size_t begin = 0;
  for (const Tensor& y : at.ys) {
    const size_t end = begin + static_cast<size_t>(y.numel());
    if (y.requires_grad()) {
      outputs.push_back(y);
      const Flat part(upstream.begin() + static_cast<int64_t>(begin), upstream.begin() + static_cast<int64_t>(end));
      options.grad_outputs.push_back(unflat(part, y.shape(), y.dtype(), scattered));
    }
    begin = end;
  }
  for (const int i : wanted) targets.push_back(at.xs[static_cast<size_t>(i)]);
  std::vector<Tensor> found(targets.size());
  const std::vector<Tensor> given = options.grad_outputs;
  if (!outputs.empty()) found = grad(outputs, targets, options);
  begin = 0;
  for (size_t o = 0, k = 0; o < at.ys.size(); ++o) {
    const Flat part(upstream.begin() + static_cast<int64_t>(begin),
                    upstream.begin() + static_cast<int64_t>(begin) + at.ys[o].numel());
    begin += part.size();
    if (at.ys[o].requires_grad() && flat(given[k++]) != flat(unflat(part, at.ys[o].shape(), at.ys[o].dtype())))
      fail<AutogradError>("backward changes its upstream gradient (of output {})", o);
  }
  std::vector<Flat> result;
  if (defined != nullptr) defined->clear();
  for (size_t k = 0; k < found.size(); ++k) {
    if (defined != nullptr) defined->push_back(found[k].defined());
    result.push_back(found[k].defined() ? flat(found[k]) : Flat(static_cast<size_t>(targets[k].numel()), 0.0));
  }
  return result;
}

}  // namespace tapestry::detail
