// Comparisons, logic, selection by a mask, and conversion of dtypes.
// Next: views.cpp.
#include "../autograd/strided.h"
#include "error_text.h"
#include "kernels/pointwise_lanes.h"
#include "pointwise_row.h"

namespace tapestry {
namespace {

using kernels::LanesLoop;

/// A bool tensor of f at every element of inputs of one dtype. No derivative.
template <class F>
Tensor test(const char* op, const F& f, const Tensor& a) {
  detail::require_defined(op, a);
  Tensor y = empty(a.shape(), DType::boolean);
  kernels::map<LanesLoop, Domain::numbers>(a.shape(), a.dtype(), f, {detail::out(y)}, {detail::in(a)});
  return y;
}
template <class F>
Tensor test(const char* op, const F& f, const Tensor& x, const Tensor& z) {
  detail::require_same_dtype(op, x, z);
  Tensor a = x.detach(), b = z.detach();
  detail::expand_together(op, a, b);
  Tensor y = empty(a.shape(), DType::boolean);
  kernels::map<LanesLoop, Domain::numbers>(a.shape(), a.dtype(), f, {detail::out(y)}, {detail::in(a), detail::in(b)});
  return y;
}

constexpr auto eq = [](auto a, auto b) { return a == b; };
constexpr auto ne = [](auto a, auto b) { return a != b; };
constexpr auto lt = [](auto a, auto b) { return a < b; };
constexpr auto le = [](auto a, auto b) { return a <= b; };
constexpr auto gt = [](auto a, auto b) { return a > b; };
constexpr auto ge = [](auto a, auto b) { return a >= b; };

/// Compares with a number in f64 where the tensor's type could not hold it: 2.5 is not an i64.
template <class F>
Tensor test_number(const char* op, const F& f, const Tensor& a, double b) {
  detail::require_defined(op, a);
  const Tensor x = a.dtype() == DType::i64 || a.dtype() == DType::boolean ? to(a.detach(), DType::f64) : a.detach();
  return test(
      op, [f, b]<class T>(const T& v) { return f(v, num<T>(b)); }, x);
}

Tensor truth(const char* op, const Tensor& x) {
  detail::require_defined(op, x);
  return x.dtype() == DType::boolean ? x : to(x.detach(), DType::boolean);
}

/// Where c holds a, else b: all of one shape. The branch not taken gets exactly 0.
struct Where {
  static constexpr std::string_view name = "where", formula = "a where c, else b", vjp = "g where c, g where not c";
  Tensor forward(Context& c, const Tensor& condition, const Tensor& a, const Tensor& b) const {
    c.save(condition);
    Tensor y = empty(a.shape(), a.dtype());
    if (a.dtype() == DType::i64) {
      kernels::map<LanesLoop, Domain::numbers>(
          a.shape(), DType::i64,
          []<class T>(const T& m, const T& u, const T& v) { return where(m != num<T>(0), u, v); }, {detail::out(y)},
          {detail::in(condition), detail::in(a), detail::in(b)});
    } else {
      kernels::map<LanesLoop>(a.shape(), a.dtype(),
                              []<class T>(const T& m, const T& u, const T& v) { return where(m != num<T>(0), u, v); },
                              {detail::out(y)}, {detail::in(condition), detail::in(a), detail::in(b)});
    }
    return y;
  }
  Grads backward(Context& c, const Tensor& g) const {
    const Tensor condition = c.saved(0);
    return {Tensor{}, c.needs(1) ? where(condition, g, 0.0) : Tensor{},
            c.needs(2) ? where(condition, 0.0, g) : Tensor{}};
  }
};

void require_condition(const Tensor& condition) {
  if (!condition.defined() || condition.dtype() != DType::boolean)
    fail<DTypeError>("where: the condition must be bool, got {}; compare, or convert with to(x, DType::boolean)",
                     condition.describe());
}

struct Convert {
  static constexpr std::string_view name = "to", formula = "x as dtype", vjp = "g as x's dtype";
  DType from, dtype;
  Tensor forward(Context&, const Tensor& x) const {
    Tensor y = empty(x.shape(), dtype);
    strided_copy(x.shape(), dtype, y.body()->storage->data, y.strides(), x.dtype(), x.raw_data(), x.strides());
    return y;
  }
  Grads backward(Context&, const Tensor& g) const { return {to(g, from)}; }
};

struct StraightThrough {
  static constexpr std::string_view name = "straight_through", formula = "x", vjp = "0 for x, g for y";
  Tensor forward(Context&, const Tensor& x, const Tensor&) const { return clone(x.detach()); }
  Grads backward(Context&, const Tensor& g) const { return {Tensor{}, g}; }
};

}  // namespace

Tensor equal(const Tensor& a, const Tensor& b) { return test("equal", eq, a, b); }
Tensor not_equal(const Tensor& a, const Tensor& b) { return test("not_equal", ne, a, b); }
Tensor less(const Tensor& a, const Tensor& b) { return test("less", lt, a, b); }
Tensor less_equal(const Tensor& a, const Tensor& b) { return test("less_equal", le, a, b); }
Tensor greater(const Tensor& a, const Tensor& b) { return test("greater", gt, a, b); }
Tensor greater_equal(const Tensor& a, const Tensor& b) { return test("greater_equal", ge, a, b); }
Tensor equal(const Tensor& a, double b) { return test_number("equal", eq, a, b); }
Tensor not_equal(const Tensor& a, double b) { return test_number("not_equal", ne, a, b); }
Tensor less(const Tensor& a, double b) { return test_number("less", lt, a, b); }
Tensor less_equal(const Tensor& a, double b) { return test_number("less_equal", le, a, b); }
Tensor greater(const Tensor& a, double b) { return test_number("greater", gt, a, b); }
Tensor greater_equal(const Tensor& a, double b) { return test_number("greater_equal", ge, a, b); }

Tensor isnan(const Tensor& x) {
  return test(
      "isnan", [](auto v) { return v != v; }, x);
}
Tensor isinf(const Tensor& x) {
  return test(
      "isinf",
      []<class T>(const T& v) {
        const T d = where(v == v, v - v, num<T>(0));  // NaN where v is ±inf, else 0
        return d != d;
      },
      x);
}
Tensor isfinite(const Tensor& x) {
  return test(
      "isfinite", [](auto v) { return v - v == v - v; }, x);
}

Tensor isclose(const Tensor& a, const Tensor& b, double rtol, double atol) {
  detail::require_floating("isclose", a);
  if (!(rtol >= 0 && atol >= 0))
    fail<ValueError>("isclose: rtol is {}, atol is {}; they must not be negative", rtol, atol);
  return test(
      "isclose",
      [rtol, atol]<class T>(const T& u, const T& v) {
        const T no = num<T>(0), yes = num<T>(1), d = abs(u - v);
        const T near = where(d <= num<T>(atol) + num<T>(rtol) * abs(v), yes, no);
        return where(u == v, yes, where(d - d == no, near, no)) != no;  // d − d is NaN where d is not finite
      },
      a, b);
}
bool allclose(const Tensor& a, const Tensor& b, double rtol, double atol) {
  return all(isclose(a, b, rtol, atol)).item<bool>();
}

Tensor logical_not(const Tensor& x) {
  return test(
      "logical_not", []<class T>(const T& v) { return v == num<T>(0); }, truth("logical_not", x));
}
Tensor logical_and(const Tensor& a, const Tensor& b) {
  return test(
      "logical_and", []<class T>(const T& u, const T& v) { return u * v != num<T>(0); }, truth("logical_and", a),
      truth("logical_and", b));
}
Tensor logical_or(const Tensor& a, const Tensor& b) {
  return test(
      "logical_or", []<class T>(const T& u, const T& v) { return u + v != num<T>(0); }, truth("logical_or", a),
      truth("logical_or", b));
}
Tensor logical_xor(const Tensor& a, const Tensor& b) {
  return test("logical_xor", ne, truth("logical_xor", a), truth("logical_xor", b));
}

Tensor where(const Tensor& condition, const Tensor& a, const Tensor& b) {
  require_condition(condition);
  detail::require_same_dtype("where", a, b);
  Tensor c = condition, x = a, y = b;
  detail::expand_together("where", x, y);
  detail::expand_together("where", c, x);
  y = expand(y, x.shape());
  return apply(Where{}, c, x, y);
}

Tensor where(const Tensor& condition, const Tensor& a, double b) {
  const double number = detail::number_for("where", a, b);
  return where(condition, a, scalar(number, a.dtype()));
}
Tensor where(const Tensor& condition, double a, const Tensor& b) {
  const double number = detail::number_for("where", b, a);
  return where(condition, scalar(number, b.dtype()), b);
}
Tensor masked_fill(const Tensor& x, const Tensor& mask, double value) {
  if (!mask.defined() || mask.dtype() != DType::boolean)
    fail<DTypeError>("masked_fill: the mask must be bool, got {}; compare, or convert with to(x, DType::boolean)",
                     mask.describe());
  const double number = detail::number_for("masked_fill", x, value);
  Tensor m = mask, y = x;
  detail::expand_together("masked_fill", m, y);
  return where(m, number, y);
}

Tensor to(const Tensor& x, DType dtype) {
  if (!x.defined()) fail<AutogradError>("to: the tensor is undefined");
  if (x.dtype() == dtype) return x;
  if (is_floating(x.dtype()) && is_floating(dtype)) return apply(Convert{x.dtype(), dtype}, x);
  Context nothing;
  return Convert{x.dtype(), dtype}.forward(nothing, x);
}

Tensor straight_through(const Tensor& x, const Tensor& y) {
  detail::require_same_dtype("straight_through", x, y);
  detail::require_floating("straight_through", x);
  if (x.shape() != y.shape())
    fail<ShapeError>("straight_through: x is {}, y is {}; the shapes must be equal", x.describe(), y.describe());
  return apply(StraightThrough{}, x, y);
}

}  // namespace tapestry
