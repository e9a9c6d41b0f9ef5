// Makes ops of the rows of pointwise_table.h, and holds the few pointwise ops that no row describes: those without slope.
// Comparisons, where and to() are in select.cpp.
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

using kernels::LanesLoop;

template <Domain domain = Domain::reals, class Row, class... X>
Tensor run(const Row& row, const X&... xs) {
  return pointwise<LanesLoop, domain>(row, xs...);
}

/// sign, floor, ceil, round: constant between their steps, so the derivative is 0.
template <class F>
struct Flat {
  std::string_view name;
  F f;
  Tensor forward(Context&, const Tensor& x) const {
    Tensor y = empty(x.shape(), x.dtype());
    kernels::map<LanesLoop>(x.shape(), x.dtype(), f, {detail::out(y)}, {detail::in(x)});
    return y;
  }
  Grads backward(Context&, const Tensor& g) const { return {zeros_like(g)}; }
};
template <class F>
Tensor flat(std::string_view name, F f, const Tensor& x) {
  if (x.defined() && x.dtype() == DType::i64 && name != "sign") return x;
  detail::require_domain(name, Domain::reals, x);
  return apply(Flat<F>{name, f}, x);
}

constexpr Domain numbers = Domain::numbers;

using detail::number_for;

}  // namespace

Tensor neg(const Tensor& x) { return run<numbers>(rows::neg, x); }
Tensor abs(const Tensor& x) { return run<numbers>(rows::abs_, x); }
Tensor square(const Tensor& x) { return run<numbers>(rows::square, x); }
Tensor exp(const Tensor& x) { return run(rows::exp_, x); }
Tensor expm1(const Tensor& x) { return run(rows::expm1_, x); }
Tensor log(const Tensor& x) { return run(rows::log_, x); }
Tensor log1p(const Tensor& x) { return run(rows::log1p_, x); }
Tensor sqrt(const Tensor& x) { return run(rows::sqrt_, x); }
Tensor rsqrt(const Tensor& x) { return run(rows::rsqrt_, x); }
Tensor reciprocal(const Tensor& x) { return run(rows::reciprocal_, x); }
Tensor sin(const Tensor& x) { return run(rows::sin_, x); }
Tensor cos(const Tensor& x) { return run(rows::cos_, x); }
Tensor tanh(const Tensor& x) { return run(rows::tanh_, x); }
Tensor erf(const Tensor& x) { return run(rows::erf_, x); }
Tensor sigmoid(const Tensor& x) { return run(rows::sigmoid_, x); }
Tensor logsigmoid(const Tensor& x) { return run(rows::logsigmoid, x); }
Tensor softplus(const Tensor& x) { return run(rows::softplus, x); }
Tensor relu(const Tensor& x) { return run(rows::relu, x); }
Tensor leaky_relu(const Tensor& x, double slope) { return run(rows::leaky_relu(slope), x); }
Tensor silu(const Tensor& x) { return run(rows::silu, x); }
Tensor gelu(const Tensor& x) { return run(rows::gelu, x); }
Tensor gelu_tanh(const Tensor& x) { return run(rows::gelu_tanh, x); }
Tensor relu_squared(const Tensor& x) { return run(rows::relu_squared, x); }

Tensor clamp(const Tensor& x, double low, double high) {
  if (!(low <= high)) fail<ValueError>("clamp: low {} is not at most high {}", low, high);
  return run<numbers>(rows::clamp(number_for("clamp", x, low), number_for("clamp", x, high)), x);
}

Tensor sign(const Tensor& x) {
  return flat(
      "sign", [](auto v) { return sign(v); }, x);
}
Tensor floor(const Tensor& x) {
  return flat(
      "floor", [](auto v) { return floor(v); }, x);
}
Tensor ceil(const Tensor& x) {
  return flat(
      "ceil", [](auto v) { return ceil(v); }, x);
}
Tensor round(const Tensor& x) {
  return flat(
      "round", [](auto v) { return round(v); }, x);
}

Tensor pow(const Tensor& x, double p) {
  if (p == 0) {
    detail::require_domain("pow", Domain::reals, x);
    return add(mul0(zeros_like(x), x), 1.0);
  }
  if (p == 2) return square(x);
  return run(rows::pow_scalar(p), x);
}

Tensor pow(const Tensor& a, const Tensor& b) { return run(rows::pow_, a, b); }
Tensor add(const Tensor& a, const Tensor& b) { return run<numbers>(rows::add, a, b); }
Tensor sub(const Tensor& a, const Tensor& b) { return run<numbers>(rows::sub, a, b); }
Tensor mul(const Tensor& a, const Tensor& b) { return run<numbers>(rows::mul, a, b); }
Tensor div(const Tensor& a, const Tensor& b) { return run(rows::div, a, b); }
Tensor maximum(const Tensor& a, const Tensor& b) { return run<numbers>(rows::maximum_, a, b); }
Tensor minimum(const Tensor& a, const Tensor& b) { return run<numbers>(rows::minimum_, a, b); }
Tensor mul0(const Tensor& g, const Tensor& d) { return run(rows::mul0_, g, d); }

Tensor add(const Tensor& a, double b) { return run<numbers>(rows::add_scalar(number_for("add", a, b)), a); }
Tensor sub(const Tensor& a, double b) { return run<numbers>(rows::sub_scalar(number_for("sub", a, b)), a); }
Tensor sub(double a, const Tensor& b) { return run<numbers>(rows::rsub_scalar(number_for("sub", b, a)), b); }
Tensor mul(const Tensor& a, double b) { return run<numbers>(rows::mul_scalar(number_for("mul", a, b)), a); }
Tensor div(const Tensor& a, double b) { return run(rows::div_scalar(b), a); }
Tensor div(double a, const Tensor& b) { return run(rows::rdiv_scalar(a), b); }
Tensor maximum(const Tensor& a, double b) { return run<numbers>(rows::maximum_scalar(number_for("maximum", a, b)), a); }
Tensor minimum(const Tensor& a, double b) { return run<numbers>(rows::minimum_scalar(number_for("minimum", a, b)), a); }

}  // namespace tapestry
