// Finite-difference tests of derivatives: gradcheck for the first, gradgradcheck for the second.
// Not a way to compute gradients: it calls the function hundreds of times. docs/gradcheck.md says how to read a report.
// Next: probe.h, gradcheck.cpp.
#pragma once

#include <string>
#include <vector>

#include "tensor_function.h"

namespace tapestry {

struct GradcheckOptions {
  double eps = 0;      ///< step, times max(1, |x|); 0 takes 1e-6 for f64 and 5e-3 for f32
  double atol = 1e-5;  ///< an entry passes where |analytic - numeric| <= atol + rtol*|numeric|
  double rtol = 1e-3;
  bool allow_f32 =
      false;  ///< f32 inputs are refused otherwise: their differences are mostly rounding. Choose wider tolerances.
  bool allow_zero = false;    ///< an all-zero gradient on both sides is a failure otherwise: it proves nothing
  bool allow_unused = false;  ///< an input or output without any dependence is a failure otherwise
  int64_t full_limit = 4096;  ///< the whole Jacobian up to this many entries, random projections above
  int projections = 3;        ///< random directions per input above full_limit; at least 3
  uint64_t seed = 0;          ///< of the random upstream gradients and directions
};

struct GradcheckResult {
  bool ok = true;
  std::string message;          ///< one line; empty where ok
  int input = -1, output = -1;  ///< the worst entry, where there is one
  double analytic = 0, numeric = 0;
  explicit operator bool() const { return ok; }
};

/// Compares the derivative of f with central differences at every input that requires a gradient. It also fails for a backward that changes its inputs
/// or its upstream gradient, gives other bits the second time, is not linear in the upstream gradient, needs it contiguous, depends on which
/// gradients are wanted, or returns a gradient of the wrong shape or dtype.
///
///   Tensor x = rand({2, 3}, DType::f64).requires_grad_();
///   if (auto r = gradcheck([](const Tensor& t) { return tanh(t); }, {x}); !r) std::puts(r.message.c_str());
///
/// f sees fresh leaves with the values and strides of `inputs`; random numbers it draws are the same in every call. AutogradError where no input
/// requires a gradient or where one overlaps itself (an expanded tensor), DTypeError for f32 unless allowed and for narrower types. What f throws passes.
GradcheckResult gradcheck(const TensorFunction& f, const std::vector<Tensor>& inputs, GradcheckOptions options = {});

/// gradcheck of (inputs, upstream v) -> d(v . f)/d(inputs), with random v: the second derivatives, and the first as a function of v.
/// Zero and missing dependences are allowed: they are usual in second derivatives.
GradcheckResult gradgradcheck(const TensorFunction& f, const std::vector<Tensor>& inputs,
                              GradcheckOptions options = {});

}  // namespace tapestry
