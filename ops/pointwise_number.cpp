// Makes ops of the rows of pointwise_table.h that have a number as their other operand: an attribute, not a tensor.
// Not here: powers and clamp (pointwise.cpp). Next: select.cpp.
#include "error_text.h"
#include "kernels/pointwise_lanes.h"
#include "pointwise_table.h"

namespace tapestry {
namespace {

template <Domain domain = Domain::reals, class Row>
Tensor run(const Row& row, const Tensor& x) {
  return pointwise<kernels::LanesLoop, domain>(row, x);
}

constexpr Domain numbers = Domain::numbers;

using detail::number_for;

/// The number x is divided by: ValueError where whole numbers are by 0.
double divisor_for(std::string_view op, const Tensor& x, double s) {
  detail::require_defined(op, x);
  if (x.dtype() == DType::i64 && s == 0)
    fail<ValueError>("{}: division of whole numbers by 0: a is {}; convert with to(x, DType::f32)", op, x.describe());
  return number_for(op, x, s);
}

}  // namespace

Tensor add(const Tensor& a, double b) { return run<numbers>(rows::add_scalar(number_for("add", a, b)), a); }
Tensor sub(const Tensor& a, double b) { return run<numbers>(rows::sub_scalar(number_for("sub", a, b)), a); }
Tensor sub(double a, const Tensor& b) { return run<numbers>(rows::rsub_scalar(number_for("sub", b, a)), b); }
Tensor mul(const Tensor& a, double b) { return run<numbers>(rows::mul_scalar(number_for("mul", a, b)), a); }
Tensor div(const Tensor& a, double b) { return run(rows::div_scalar(b), a); }
Tensor div(double a, const Tensor& b) { return run(rows::rdiv_scalar(a), b); }
Tensor maximum(const Tensor& a, double b) { return run<numbers>(rows::maximum_scalar(number_for("maximum", a, b)), a); }
Tensor minimum(const Tensor& a, double b) { return run<numbers>(rows::minimum_scalar(number_for("minimum", a, b)), a); }
Tensor fmod(const Tensor& a, double b) { return run<numbers>(rows::fmod_scalar(divisor_for("fmod", a, b)), a); }
Tensor remainder(const Tensor& a, double b) {
  return run<numbers>(rows::remainder_scalar(divisor_for("remainder", a, b)), a);
}
Tensor floor_divide(const Tensor& a, double b) {
  const double s = divisor_for("floor_divide", a, b);
  return step_function<kernels::LanesLoop, numbers>(
      "floor_divide", [s]<class T>(const T& x) { return floor_divide(x, num<T>(s)); }, a);
}

}  // namespace tapestry
