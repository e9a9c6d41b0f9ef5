// The checks of update.h. Next: sgd.cpp.
#include "update.h"

#include <cmath>

#include "../autograd/factory.h"

namespace tapestry::detail {

void check_not_negative(const char* rule, const char* option, double value) {
  if (!std::isfinite(value) || value < 0)
    fail<ValueError>("{}: {} must be finite and not negative: it is {}", rule, option, value);
}

void check_fraction(const char* rule, const char* option, double value) {
  if (!(value >= 0 && value < 1)) fail<ValueError>("{}: {} must be in [0, 1): it is {}", rule, option, value);
}

void check_update(const char* rule, const Tensor& param, const Tensor& grad, double grad_scale) {
  if (!param.defined()) fail<AutogradError>("{}: the parameter is undefined", rule);
  if (!grad.defined()) fail<AutogradError>("{}: the gradient is undefined; skip parameters without one", rule);
  if (!is_floating(param.dtype())) fail<DTypeError>("{}: the parameter {} is not floating", rule, param.describe());
  if (grad.shape() != param.shape())
    fail<ShapeError>("{}: the gradient {} does not have the shape of the parameter {}", rule, grad.describe(),
                     param.describe());
  if (grad.dtype() != param.dtype())
    fail<DTypeError>("{}: the gradient {} does not have the dtype of the parameter {}", rule, grad.describe(),
                     param.describe());
  check_not_negative(rule, "grad_scale", grad_scale);
}

DType state_dtype(const Tensor& param) { return param.dtype() == DType::bf16 ? DType::f32 : param.dtype(); }

void prepare_state(const char* rule, const char* field, Tensor& state, const Tensor& param) {
  const DType dtype = state_dtype(param);
  if (!state.defined()) state = zeros(param.shape(), dtype);
  if (state.shape() != param.shape())
    fail<ShapeError>("{}: {} {} does not have the shape of the parameter {}", rule, field, state.describe(),
                     param.describe());
  if (state.dtype() != dtype)
    fail<DTypeError>("{}: {} {} of the parameter {} must be {}", rule, field, state.describe(), param.describe(),
                     name_of(dtype));
  state = dense(state);
  state.body()->storage->mark(MemoryKind::optimizer);
}

}  // namespace tapestry::detail
