// What gradcheck measures with: fresh leaves, values of f near its inputs, gradients for a given upstream, all as flat f64 numbers.
// Not public API, and it compares nothing (gradcheck.cpp).
// Next: gradcheck_hint.h.
#pragma once

#include "../random.h"
#include "gradcheck.h"

namespace tapestry::detail {

using Flat = std::vector<double>;

/// The elements in row-major order, as f64.
Flat flat(const Tensor& x);
/// Row-major position j as "[3, 0]".
std::string position(const Shape& shape, int64_t j);
/// The values as a new tensor; with `scattered` its strides run backwards through the dims and leave gaps.
Tensor unflat(const Flat& values, const Shape& shape, DType dtype, bool scattered = false);

/// One recorded evaluation: the leaves and the floating outputs.
struct Evaluation {
  std::vector<Tensor> xs, ys;
};

class Probe {
 public:
  /// AutogradError or DTypeError where the inputs cannot be checked; `name` begins the messages.
  Probe(const char* name, const TensorFunction& f, const std::vector<Tensor>& inputs, const GradcheckOptions& options);

  /// f at x, input `moved` shifted by h * direction.
  [[nodiscard]] Evaluation evaluate(int moved = -1, const Flat& direction = {}, double h = 0) const;
  /// (f(x + h*direction) - f(x - h*direction)) / 2h, outputs one after another; h = eps * max(1, |x|) at the one moved element, else eps.
  [[nodiscard]] Flat numeric(int input, const Flat& direction) const;
  /// d(sum of upstream * outputs)/d(input) for every input in `wanted`; zeros where undefined. `defined[k]` says whether there was a gradient.
  [[nodiscard]] std::vector<Flat> analytic(const Evaluation& at, const Flat& upstream, const std::vector<int>& wanted,
                                           std::vector<bool>* defined = nullptr, bool scattered = false) const;

  std::vector<int> checked;          ///< indices of the inputs that require a gradient
  std::vector<Shape> input_shapes;   ///< of all inputs
  std::vector<Shape> output_shapes;  ///< of the floating outputs
  int64_t outputs_numel = 0;

 private:
  const char* name_;
  const TensorFunction& f_;
  const std::vector<Tensor>& inputs_;
  double eps_;
  RandomState random_;
};

}  // namespace tapestry::detail
