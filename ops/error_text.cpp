// The messages. Next: pointwise.cpp.
#include "error_text.h"

#include <cmath>
#include <string>

namespace tapestry::detail {

std::string place_of(const Shape& shape, int64_t i) {
  Dims at = shape;
  for (int d = shape.rank(); d-- > 0; i /= shape[d]) at[d] = i % shape[d];
  return to_string(at);
}

void require_defined(std::string_view op, const Tensor& x) {
  if (!x.defined()) fail<AutogradError>("{}: the tensor is undefined", op);
}

void require_same_dtype(std::string_view op, const Tensor& a, const Tensor& b) {
  if (!a.defined() || !b.defined())
    fail<AutogradError>("{}: the {} tensor is undefined", op, a.defined() ? "second" : "first");
  if (a.dtype() != b.dtype())
    fail<DTypeError>("{}: dtypes differ: {} and {} (shapes {} and {}); convert with to(x, DType::{})", op,
                     name_of(a.dtype()), name_of(b.dtype()), to_string(a.shape()), to_string(b.shape()),
                     name_of(a.dtype()));
}

void expand_together(std::string_view op, Tensor& a, Tensor& b) {
  if (a.shape() == b.shape()) return;
  const Shape shape = broadcast_shapes(std::string(op).c_str(), a.shape(), b.shape());
  a = expand(a, shape);
  b = expand(b, shape);
}

double number_for(std::string_view op, const Tensor& x, double s) {
  require_defined(op, x);
  if (x.dtype() == DType::i64 && (s != std::floor(s) || std::abs(s) > 0x1p53))
    fail<DTypeError>("{}: the number {} is not a whole one, the tensor is {}; convert with to(x, DType::f32)", op, s,
                     x.describe());
  return s;
}

void require_indices(std::string_view op, const Tensor& x) {
  if (!x.defined() || x.dtype() != DType::i64)
    fail<DTypeError>("{}: indices must be i64, got {}; convert with to(x, DType::i64)", op, x.describe());
}

void require_floating(std::string_view op, const Tensor& x) {
  if (!x.defined() || !is_floating(x.dtype()))
    fail<DTypeError>("{}: needs a floating dtype, got {}; convert with to(x, DType::f32)", op, x.describe());
}

}  // namespace tapestry::detail
