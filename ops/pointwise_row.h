// Pointwise ops as rows: a formula and its derivative as generic lambdas, compiled over SIMD lanes (the kernel), over double (the reference) and
// over Tensor (the differentiable rule that higher orders use). One formula, so the three cannot disagree.
// Not the rows themselves (pointwise_table.h) nor the loops (kernels/pointwise.h).
#pragma once

#include <string_view>

#include "../autograd/function.h"
#include "kernels/pointwise.h"
#include "ops.h"

namespace tapestry {

/// In a formula over Tensor a constant stays a plain number.
template <>
struct NumOf<Tensor> {
  static double make(double v) { return v; }
};

/// What the derivative of a row reads besides g.
enum class Saves : unsigned { none = 0, x = 1, y = 2, a = 1, b = 4, xy = 3, ab = 5, by = 6, aby = 7 };
constexpr bool has(Saves s, Saves bit) { return (static_cast<unsigned>(s) & static_cast<unsigned>(bit)) != 0; }

/// y = f(x) with dL/dx = dx(g, x, y); `formula` and `vjp` are the same as text.
template <class F, class D>
struct Unary {
  std::string_view name;
  Saves saves;
  F f;
  D dx;
  std::string_view formula, vjp;
};
template <class F, class D>
Unary(std::string_view, Saves, F, D, std::string_view = {}, std::string_view = {}) -> Unary<F, D>;

/// y = f(a, b) with dL/da = da(g, a, b, y) and dL/db = db(g, a, b, y).
template <class F, class DA, class DB>
struct Binary {
  std::string_view name;
  Saves saves;
  F f;
  DA da;
  DB db;
  std::string_view formula, vjp;
};
template <class F, class DA, class DB>
Binary(std::string_view, Saves, F, DA, DB, std::string_view = {}, std::string_view = {}) -> Binary<F, DA, DB>;

using kernels::Domain;

namespace detail {

/// DTypeError where a row of `domain` is not defined for x.
void require_domain(std::string_view op, Domain domain, const Tensor& x);
/// Checks dtypes and expands a and b to their common shape.
void broadcast_operands(std::string_view op, Domain domain, Tensor& a, Tensor& b);

inline kernels::Input in(const Tensor& t) { return {t.raw_data(), t.dtype(), t.strides()}; }
inline kernels::Output out(const Tensor& t) { return {t.body()->storage->data, t.dtype(), t.strides()}; }
/// t, or `stand_in` where the rule does not read t.
inline const Tensor& or_else(const Tensor& t, const Tensor& stand_in) { return t.defined() ? t : stand_in; }

}  // namespace detail

/// A row as an op. The derivative runs as one kernel, or over Tensor where the walk records (or where it needs no arithmetic anyway).
template <class Row, class Loop, Domain domain>
struct UnaryOp {
  explicit UnaryOp(const Row& r) : row(r), name(r.name) {}
  Row row;
  std::string_view name;

  Tensor forward(Context& c, const Tensor& x) const {
    Tensor y = empty(x.shape(), x.dtype());
    kernels::map<Loop, domain>(x.shape(), x.dtype(), row.f, {detail::out(y)}, {detail::in(x)});
    c.save(has(row.saves, Saves::x) ? x : Tensor{}, has(row.saves, Saves::y) ? y : Tensor{});
    return y;
  }
  Grads backward(Context& c, const Tensor& g) const {
    const Tensor x = c.saved(0), y = c.saved(1);
    if (grad_enabled() || row.saves == Saves::none) return {row.dx(g, x, y)};
    Tensor dx = empty(g.shape(), g.dtype());
    kernels::map<Loop>(g.shape(), g.dtype(), row.dx, {detail::out(dx)},
                       {detail::in(g), detail::in(detail::or_else(x, g)), detail::in(detail::or_else(y, g))});
    return {dx};
  }
};

template <class Row, class Loop, Domain domain>
struct BinaryOp {
  explicit BinaryOp(const Row& r) : row(r), name(r.name) {}
  Row row;
  std::string_view name;

  Tensor forward(Context& c, const Tensor& a, const Tensor& b) const {
    Tensor y = empty(a.shape(), a.dtype());
    kernels::map<Loop, domain>(a.shape(), a.dtype(), row.f, {detail::out(y)}, {detail::in(a), detail::in(b)});
    c.save(has(row.saves, Saves::a) ? a : Tensor{}, has(row.saves, Saves::b) ? b : Tensor{},
           has(row.saves, Saves::y) ? y : Tensor{});
    return y;
  }
  Grads backward(Context& c, const Tensor& g) const {
    const Tensor a = c.saved(0), b = c.saved(1), y = c.saved(2);
    if (grad_enabled() || row.saves == Saves::none)
      return grads(
          c, [&] { return row.da(g, a, b, y); }, [&] { return row.db(g, a, b, y); });
    const kernels::Input ins[] = {detail::in(g), detail::in(detail::or_else(a, g)), detail::in(detail::or_else(b, g)),
                                  detail::in(detail::or_else(y, g))};
    Tensor da = c.needs(0) ? empty(g.shape(), g.dtype()) : Tensor{},
           db = c.needs(1) ? empty(g.shape(), g.dtype()) : Tensor{};
    if (da.defined() && db.defined()) {
      const auto both = [this]<class T>(const T& u, const T& v, const T& w, const T& z) {
        return std::tuple<T, T>(row.da(u, v, w, z), row.db(u, v, w, z));
      };
      kernels::map<Loop>(g.shape(), g.dtype(), both, {detail::out(da), detail::out(db)}, ins);
    } else if (da.defined()) {
      kernels::map<Loop>(g.shape(), g.dtype(), row.da, {detail::out(da)}, ins);
    } else if (db.defined()) {
      kernels::map<Loop>(g.shape(), g.dtype(), row.db, {detail::out(db)}, ins);
    }
    return {da, db};
  }
};

/// A function constant between its steps, such as floor: the derivative is 0.
template <class F, class Loop, Domain domain>
struct StepOp {
  std::string_view name;
  F f;
  Tensor forward(Context&, const Tensor& x) const {
    Tensor y = empty(x.shape(), x.dtype());
    kernels::map<Loop, domain>(x.shape(), x.dtype(), f, {detail::out(y)}, {detail::in(x)});
    return y;
  }
  Grads backward(Context&, const Tensor& g) const { return {zeros_like(g)}; }
};

/// Runs a row on x: `pointwise(Unary{"name", Saves::x, f, dx}, x)`. Included by a user, the loops are scalar ones in the user's flags.
template <class Loop = kernels::ScalarLoop, Domain domain = Domain::reals, class F, class D>
Tensor pointwise(const Unary<F, D>& row, const Tensor& x) {
  detail::require_domain(row.name, domain, x);
  return apply(UnaryOp<Unary<F, D>, Loop, domain>(row), x);
}
/// Runs a row on a and b, broadcast to their common shape.
template <class Loop = kernels::ScalarLoop, Domain domain = Domain::reals, class F, class DA, class DB>
Tensor pointwise(const Binary<F, DA, DB>& row, Tensor a, Tensor b) {
  detail::broadcast_operands(row.name, domain, a, b);
  return apply(BinaryOp<Binary<F, DA, DB>, Loop, domain>(row), a, b);
}

/// Runs a step function on x.
template <class Loop = kernels::ScalarLoop, Domain domain = Domain::reals, class F>
Tensor step_function(std::string_view name, F f, const Tensor& x) {
  detail::require_domain(name, domain, x);
  return apply(StepOp<F, Loop, domain>{name, f}, x);
}

}  // namespace tapestry
