// Clipping of gradients, by their common norm or by value.
// Not here: the optimizer's own scaling of gradients (the grad_scale of Optimizer::step, which saves a pass). Next: clip.cpp.
#pragma once

#include <vector>

#include "../autograd/tensor.h"
#include "named_tensors.h"

namespace tapestry {

// All functions take parameters and work on their .grad; frozen parameters and those without one are passed over, and one that is listed
// twice counts once.

/// The 2-norm of all gradients together; 0 without any. Summed in double, in an order that does not depend on the threads, and without
/// overflow on the way. NaN or infinite only if a gradient is (or the norm itself is past 1.8e308).
double grad_norm(const NamedTensors& parameters);
double grad_norm(const std::vector<Tensor>& parameters);

/// The factor that brings gradients of norm `norm` to at most max_norm: max_norm / (norm + 1e-6) if norm > max_norm, else 1. Hand it to
/// Optimizer::step as grad_scale and clipping costs no pass of its own. ValueError for a norm that is negative or not finite and for a
/// max_norm that is negative or NaN.
double clip_coefficient(double norm, double max_norm);

/// What to do with gradients whose norm is NaN or infinite.
enum class NonFinite {
  raise,  ///< ValueError naming the first parameter with such a gradient
  skip,   ///< leave the gradients as they are; the returned norm says it (test it with std::isfinite and skip the step)
};

/// Scales all gradients in place by clip_coefficient(norm, max_norm) and returns the norm before that (Pascanu, Mikolov & Bengio 2013). Below
/// the limit no bit changes. ValueError for a max_norm that is negative or NaN.
double clip_grad_norm_(const NamedTensors& parameters, double max_norm, NonFinite non_finite = NonFinite::raise);
double clip_grad_norm_(const std::vector<Tensor>& parameters, double max_norm, NonFinite non_finite = NonFinite::raise);

/// Brings every element of every gradient into [−bound, bound], in place; NaN stays NaN. ValueError for a bound that is negative or NaN.
void clip_grad_value_(const NamedTensors& parameters, double bound);
void clip_grad_value_(const std::vector<Tensor>& parameters, double bound);

}  // namespace tapestry
