// Makes ops of the rows of binary_table.h; floor_divide, which has no slope; lerp of three tensors.
// Not here: numbers as operands (pointwise_number.cpp), where (select.cpp), the losses whose terms are rows (loss.cpp).
// Next: pointwise_number.cpp.
#include "binary_table.h"
#include "error_text.h"
#include "kernels/pointwise_lanes.h"

namespace tapestry {
namespace {

using kernels::LanesLoop;

template <Domain domain = Domain::reals, class Row>
Tensor run(const Row& row, const Tensor& a, const Tensor& b) {
  return pointwise<LanesLoop, domain>(row, a, b);
}

constexpr Domain numbers = Domain::numbers;

/// ValueError where a whole number would be divided by 0.
void require_divisors(const char* op, const Tensor& a, const Tensor& b) {
  if (!a.defined() || !b.defined() || a.dtype() != DType::i64 || b.dtype() != DType::i64) return;
  if (any(b == 0.0).item<bool>())
    fail<ValueError>("{}: division of whole numbers by 0: a is {}, b is {}; convert with to(x, DType::f32)", op,
                     a.describe(), b.describe());
}

struct FloorDivide {
  static constexpr std::string_view name = "floor_divide", formula = "floor(a/b)", vjp = "0, 0";
  Tensor forward(Context&, const Tensor& a, const Tensor& b) const {
    Tensor y = empty(a.shape(), a.dtype());
    kernels::map<LanesLoop, numbers>(a.shape(), a.dtype(), [](auto u, auto v) { return floor_divide(u, v); },
                                     {detail::out(y)}, {detail::in(a), detail::in(b)});
    return y;
  }
  Grads backward(Context&, const Tensor& g) const { return {zeros_like(g), zeros_like(g)}; }
};

/// From whichever end is nearer, so that weights 0 and 1 give a and b exactly.
struct Lerp {
  static constexpr std::string_view name = "lerp", formula = "a + w·(b − a)", vjp = "g·(1 − w), g·w, g·(b − a)";

  Tensor composite(const Tensor& a, const Tensor& b, const Tensor& w) const { return a + w * (b - a); }

  Tensor forward(Context&, const Tensor& a, const Tensor& b, const Tensor& w) const {
    Tensor y = empty(a.shape(), a.dtype());
    kernels::map<LanesLoop>(a.shape(), a.dtype(),
                            []<class T>(const T& u, const T& v, const T& t) {
                              const T d = v - u;
                              return where(t < num<T>(0.5), u + t * d, v - (num<T>(1) - t) * d);
                            },
                            {detail::out(y)}, {detail::in(a), detail::in(b), detail::in(w)});
    return y;
  }

  Grads backward(Context& c, const Tensor& g) const {
    const Tensor a = c.input(0), b = c.input(1), w = c.input(2);
    Tensor da = empty(g.shape(), g.dtype()), db = empty(g.shape(), g.dtype()), dw = empty(g.shape(), g.dtype());
    kernels::map<LanesLoop>(g.shape(), g.dtype(),
                            []<class T>(const T& u, const T& x, const T& y, const T& t) {
                              return std::tuple<T, T, T>(u * (num<T>(1) - t), u * t, u * (y - x));
                            },
                            {detail::out(da), detail::out(db), detail::out(dw)},
                            {detail::in(g), detail::in(a), detail::in(b), detail::in(w)});
    return {da, db, dw};
  }
};

}  // namespace

Tensor add(const Tensor& a, const Tensor& b) { return run<numbers>(rows::add, a, b); }
Tensor sub(const Tensor& a, const Tensor& b) { return run<numbers>(rows::sub, a, b); }
Tensor mul(const Tensor& a, const Tensor& b) { return run<numbers>(rows::mul, a, b); }
Tensor div(const Tensor& a, const Tensor& b) { return run(rows::div, a, b); }
Tensor maximum(const Tensor& a, const Tensor& b) { return run<numbers>(rows::maximum_, a, b); }
Tensor minimum(const Tensor& a, const Tensor& b) { return run<numbers>(rows::minimum_, a, b); }
Tensor pow(const Tensor& a, const Tensor& b) { return run(rows::pow_, a, b); }
Tensor mul0(const Tensor& g, const Tensor& d) { return run(rows::mul0_, g, d); }
Tensor atan2(const Tensor& y, const Tensor& x) { return run(rows::atan2_, y, x); }
Tensor hypot(const Tensor& a, const Tensor& b) { return run(rows::hypot_, a, b); }
Tensor xlogy(const Tensor& a, const Tensor& b) { return run(rows::xlogy_, a, b); }
Tensor logaddexp(const Tensor& a, const Tensor& b) { return run(rows::logaddexp_, a, b); }
Tensor copysign(const Tensor& a, const Tensor& b) { return run(rows::copysign_, a, b); }

Tensor fmod(const Tensor& a, const Tensor& b) {
  require_divisors("fmod", a, b);
  return run<numbers>(rows::fmod_, a, b);
}
Tensor remainder(const Tensor& a, const Tensor& b) {
  require_divisors("remainder", a, b);
  return run<numbers>(rows::remainder_, a, b);
}
Tensor floor_divide(const Tensor& a, const Tensor& b) {
  require_divisors("floor_divide", a, b);
  Tensor x = a, y = b;
  detail::broadcast_operands("floor_divide", numbers, x, y);
  return apply(FloorDivide{}, x, y);
}

Tensor lerp(const Tensor& a, const Tensor& b, const Tensor& weight) {
  detail::require_same_dtype("lerp", a, b);
  detail::require_same_dtype("lerp", a, weight);
  detail::require_floating("lerp", a);
  Tensor x = a, y = b, w = weight;
  detail::expand_together("lerp", x, y);
  detail::expand_together("lerp", w, x);
  return apply(Lerp{}, x, expand(y, x.shape()), w);
}
Tensor lerp(const Tensor& a, const Tensor& b, double weight) {
  Tensor x = a, y = b;
  detail::broadcast_operands("lerp", Domain::reals, x, y);
  return run(rows::lerp_scalar(weight), x, y);
}

Tensor prelu(const Tensor& x, const Tensor& weight) {
  detail::require_same_dtype("prelu", x, weight);
  const int64_t channels = x.dim() > 1 ? x.size(1) : 1;
  if (weight.numel() != 1 && (weight.dim() != 1 || weight.numel() != channels))
    fail<ShapeError>("prelu: weight is {}, x is {}; it must hold one number, or one per channel (dim 1 of x)",
                     weight.describe(), x.describe());
  Shape shape;
  if (weight.numel() != 1)
    for (int d = 0; d < x.dim(); ++d) shape.push_back(d == 1 ? channels : 1);
  return run(rows::prelu_, x, reshape(weight, shape));
}

}  // namespace tapestry
