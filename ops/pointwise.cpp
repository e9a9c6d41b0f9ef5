// Makes ops of the rows of pointwise_table.h, and of the step functions: those without slope.
// Not here: activations (pointwise_activation.cpp), two operands (pointwise_binary.cpp), a number as operand (pointwise_number.cpp), comparisons
// (select.cpp).
#include "error_text.h"
#include "kernels/pointwise_lanes.h"
#include "pointwise_table.h"

namespace tapestry {

namespace detail {

void require_domain(std::string_view op, Domain domain, const Tensor& x) {
  if (!x.defined()) fail<AutogradError>("{}: the tensor is undefined", op);
  if (is_floating(x.dtype()) || (domain == Domain::numbers && x.dtype() == DType::i64)) return;
  fail<DTypeError>("{}: not defined for {}; convert with to(x, DType::f32)", op, x.describe());
}

void broadcast_operands(std::string_view op, Domain domain, Tensor& a, Tensor& b) {
  require_same_dtype(op, a, b);
  require_domain(op, domain, a);
  expand_together(op, a, b);
}

}  // namespace detail

namespace {

template <Domain domain = Domain::reals, class Row>
Tensor run(const Row& row, const Tensor& x) {
  return pointwise<kernels::LanesLoop, domain>(row, x);
}

/// A step function whose steps are whole numbers: it leaves those of i64 as they are.
template <class F>
Tensor rounded(std::string_view name, F f, const Tensor& x) {
  if (x.defined() && x.dtype() == DType::i64) return x;
  return step_function<kernels::LanesLoop>(name, f, x);
}

constexpr Domain numbers = Domain::numbers;

}  // namespace

Tensor neg(const Tensor& x) { return run<numbers>(rows::neg, x); }
Tensor abs(const Tensor& x) { return run<numbers>(rows::abs_, x); }
Tensor square(const Tensor& x) { return run<numbers>(rows::square, x); }
Tensor exp(const Tensor& x) { return run(rows::exp_, x); }
Tensor exp2(const Tensor& x) { return run(rows::exp2_, x); }
Tensor expm1(const Tensor& x) { return run(rows::expm1_, x); }
Tensor log(const Tensor& x) { return run(rows::log_, x); }
Tensor log2(const Tensor& x) { return run(rows::log2_, x); }
Tensor log10(const Tensor& x) { return run(rows::log10_, x); }
Tensor log1p(const Tensor& x) { return run(rows::log1p_, x); }
Tensor sqrt(const Tensor& x) { return run(rows::sqrt_, x); }
Tensor rsqrt(const Tensor& x) { return run(rows::rsqrt_, x); }
Tensor reciprocal(const Tensor& x) { return run(rows::reciprocal_, x); }
Tensor sin(const Tensor& x) { return run(rows::sin_, x); }
Tensor cos(const Tensor& x) { return run(rows::cos_, x); }
Tensor tan(const Tensor& x) { return run(rows::tan_, x); }
Tensor asin(const Tensor& x) { return run(rows::asin_, x); }
Tensor acos(const Tensor& x) { return run(rows::acos_, x); }
Tensor atan(const Tensor& x) { return run(rows::atan_, x); }
Tensor sinh(const Tensor& x) { return run(rows::sinh_, x); }
Tensor cosh(const Tensor& x) { return run(rows::cosh_, x); }
Tensor tanh(const Tensor& x) { return run(rows::tanh_, x); }
Tensor asinh(const Tensor& x) { return run(rows::asinh_, x); }
Tensor acosh(const Tensor& x) { return run(rows::acosh_, x); }
Tensor atanh(const Tensor& x) { return run(rows::atanh_, x); }
Tensor erf(const Tensor& x) { return run(rows::erf_, x); }
Tensor erfc(const Tensor& x) { return run(rows::erfc_, x); }
Tensor sigmoid(const Tensor& x) { return run(rows::sigmoid_, x); }
Tensor frac(const Tensor& x) { return run(rows::frac_, x); }
Tensor logit(const Tensor& x) { return run(rows::logit_, x); }

Tensor clamp(const Tensor& x, double low, double high) {
  if (!(low <= high)) fail<ValueError>("clamp: low {} is not at most high {}", low, high);
  return run<numbers>(rows::clamp(detail::number_for("clamp", x, low), detail::number_for("clamp", x, high)), x);
}

Tensor nan_to_num(const Tensor& x, double nan, double posinf, double neginf) {
  return run(rows::nan_to_num(nan, posinf, neginf), x);
}

Tensor sign(const Tensor& x) {
  return step_function<kernels::LanesLoop, numbers>(
      "sign", [](auto v) { return sign(v); }, x);
}
Tensor floor(const Tensor& x) {
  return rounded(
      "floor", [](auto v) { return floor(v); }, x);
}
Tensor ceil(const Tensor& x) {
  return rounded(
      "ceil", [](auto v) { return ceil(v); }, x);
}
Tensor round(const Tensor& x) {
  return rounded(
      "round", [](auto v) { return round(v); }, x);
}
Tensor trunc(const Tensor& x) {
  return rounded(
      "trunc", [](auto v) { return trunc(v); }, x);
}

Tensor pow(const Tensor& x, double p) {
  detail::require_domain("pow", p == 2 ? Domain::numbers : Domain::reals, x);
  if (p == 0) return add(mul0(zeros_like(x), x), 1.0);
  if (p == 2) return square(x);
  return run(rows::pow_scalar(p), x);
}

}  // namespace tapestry
