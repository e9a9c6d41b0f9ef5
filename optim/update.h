// What every update rule does around its kernel: check options, parameter and gradient, and make its state.
// Not for users of optimizers. Next: sgd.cpp, the simplest rule.
#pragma once

#include "../autograd/tensor.h"

namespace tapestry::detail {

/// ValueError unless `value` is finite and at least 0.
void check_not_negative(const char* rule, const char* option, double value);
/// ValueError unless `value` is in [0, 1).
void check_fraction(const char* rule, const char* option, double value);
/// AutogradError for undefined tensors, ShapeError or DTypeError unless `grad` fits a floating `param`, ValueError for a `grad_scale` that is
/// negative or not finite.
void check_update(const char* rule, const Tensor& param, const Tensor& grad, double grad_scale);
/// The dtype state is kept in: f32 for bf16 parameters, theirs otherwise.
DType state_dtype(const Tensor& param);
/// Makes `state` dense and, if undefined, zeros like `param` in its state dtype. ShapeError or DTypeError if it does not fit.
void prepare_state(const char* rule, const char* field, Tensor& state, const Tensor& param);

/// Runs kernel.operator()<T>(p, g) on dense tensors with the elements of param and grad, T being their type, and writes p back to param.
template <class F>
void update_in_place(const Tensor& param, const Tensor& grad, F kernel) {
  const Tensor p = dense(param), g = dense(grad);
  dispatch(p.dtype(), [&]<class T> {
    if constexpr (!std::is_same_v<T, int64_t> && !std::is_same_v<T, bool>) kernel.template operator()<T>(p, g);
  });
  if (!p.is_same(param)) param.copy_(p);
}

}  // namespace tapestry::detail
