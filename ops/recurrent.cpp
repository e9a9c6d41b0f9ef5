// Recurrent layers over a sequence as one op each, and their cells, which are sequences of one step.
// Not the loop over time (kernels/recurrent.cpp), nor layers on layers and both directions (nn/recurrent.h).
// Next: conv.cpp.
#include "kernels/recurrent.h"
#include "../autograd/function.h"
#include "error_text.h"
#include "ops.h"
#include "rows.h"

namespace tapestry {
namespace {

using detail::data_or_null;

/// Calls f.operator()<T>() for the two types that sequences are computed in.
template <class F>
void dispatch_wide(DType dtype, F&& f) {
  if (dtype == DType::f32)
    f.template operator()<float>();
  else
    f.template operator()<double>();
}

kernels::SequenceSizes sizes_of(const Tensor& states) { return {states.size(0), states.size(1), states.size(2)}; }
Shape shape_of_states(const Tensor& x, const Tensor& h) { return {x.size(0), h.size(0), h.size(1)}; }

/// Gate number i of sums or gates side by side.
Tensor gate(const Tensor& gates, int64_t i, const Tensor& h) {
  return slice(gates, -1, i * h.size(1), (i + 1) * h.size(1));
}
Tensor added(const Tensor& a, const Tensor& b) { return a.defined() && b.defined() ? a + b : a.defined() ? a : b; }
Tensor joined(const std::vector<Tensor>& states, const Tensor& h) {
  return states.empty() ? empty({0, h.size(0), h.size(1)}, h.dtype()) : stack(states);
}
Tensor last_of(const Tensor& states, const Tensor& first) {
  return clone(states.size(0) == 0 ? first : select(states, 0, -1));
}
/// The state each step starts from.
Tensor before_each(const Tensor& first, const Tensor& states) {
  return slice(cat({unsqueeze(first, 0), states}), 0, 0, states.size(0));
}
/// Σ over steps and rows of gᵀ x, one product.
Tensor weight_gradient(const Tensor& g, const Tensor& x) {
  const int64_t rows = g.size(0) * g.size(1);
  return matmul(mT(reshape(g, {rows, g.size(2)})), reshape(x, {rows, x.size(2)}));
}
Tensor bias_gradient(const Tensor& g) { return sum(g, {0, 1}); }
/// A gradient for a kernel to read and write, of output i.
Tensor own_gradient(const Context& c, std::span<const Tensor> gs, int i) { return clone(c.grad_or_zeros(gs, i)); }
Tensor dense_or_undefined(const Tensor& g) { return g.defined() ? dense(g) : g; }

struct Rnn {
  static constexpr std::string_view
      name = "rnn",
      formula = "hₜ = tanh(sₜ) or relu(sₜ), sₜ = xₜ w_ihᵀ + b_ih + hₜ₋₁ w_hhᵀ + b_hh",
      vjp =
          "dsₜ = (gₜ + dhₜ)(1 − hₜ²), dhₜ₋₁ = dsₜ w_hh; dx = ds w_ih, dw_ih = Σ dsₜᵀ xₜ, dw_hh = Σ dsₜᵀ hₜ₋₁, "
          "db = Σ dsₜ";
  bool relu;

  std::array<Tensor, 2> composite(const Tensor& x, const Tensor& h, const Tensor& w_ih, const Tensor& w_hh,
                                  const Tensor& b_ih, const Tensor& b_hh) const {
    Tensor state = h;
    std::vector<Tensor> states;
    for (int64_t t = 0; t < x.size(0); ++t) {
      const Tensor s = linear(select(x, 0, t), w_ih, b_ih) + linear(state, w_hh, b_hh);
      state = relu ? tapestry::relu(s) : tanh(s);
      states.push_back(state);
    }
    return {joined(states, h), state};
  }

  std::array<Tensor, 2> forward(Context& c, const Tensor& x, const Tensor& h, const Tensor& w_ih, const Tensor& w_hh,
                                const Tensor& b_ih, const Tensor& b_hh) const {
    const Tensor states = linear(x, w_ih, added(b_ih, b_hh)), first = dense(h), w = dense(w_hh);
    dispatch_wide(x.dtype(), [&]<class T> {
      kernels::rnn_forward(sizes_of(states), relu, w.data<T>(), first.data<T>(), detail::fresh<T>(states));
    });
    c.save(states);
    return {states, last_of(states, first)};
  }

  Grads backward(Context& c, std::span<const Tensor> gs) const {
    const Tensor x = c.input(0), h = c.input(1), w_ih = c.input(2), w_hh = dense(c.input(3)), states = c.saved(0);
    const Tensor g = dense_or_undefined(gs[0]), dh = own_gradient(c, gs, 1), ds = empty(states.shape(), x.dtype());
    dispatch_wide(x.dtype(), [&]<class T> {
      kernels::rnn_backward(sizes_of(states), relu, w_hh.data<T>(), states.data<T>(), data_or_null<T>(g),
                            detail::fresh<T>(dh), detail::fresh<T>(ds));
    });
    return grads(
        c, [&] { return matmul(ds, w_ih); }, [&] { return dh; }, [&] { return weight_gradient(ds, x); },
        [&] { return weight_gradient(ds, before_each(h, states)); }, [&] { return bias_gradient(ds); },
        [&] { return bias_gradient(ds); });
  }
};

struct Lstm {
  static constexpr std::string_view
      name = "lstm",
      formula =
          "hₜ = o tanh(cₜ), cₜ = f cₜ₋₁ + i g; (i f g o) = (σ σ tanh σ)(sₜ), sₜ = xₜ w_ihᵀ + b_ih + hₜ₋₁ w_hhᵀ + "
          "b_hh",
      vjp =
          "dc = dcₜ + (gₜ + dhₜ) o (1 − tanh²cₜ), ds = (dc g i(1−i), dc cₜ₋₁ f(1−f), dc i (1−g²), (gₜ + dhₜ) tanh(cₜ) "
          "o(1−o)), dcₜ₋₁ = dc f, dhₜ₋₁ = dsₜ w_hh; dx, dw, db as rnn";

  std::array<Tensor, 3> composite(const Tensor& x, const Tensor& h, const Tensor& c, const Tensor& w_ih,
                                  const Tensor& w_hh, const Tensor& b_ih, const Tensor& b_hh) const {
    Tensor state = h, cell = c;
    std::vector<Tensor> states;
    for (int64_t t = 0; t < x.size(0); ++t) {
      const Tensor s = linear(select(x, 0, t), w_ih, b_ih) + linear(state, w_hh, b_hh);
      const Tensor i = sigmoid(gate(s, 0, h)), f = sigmoid(gate(s, 1, h)), g = tanh(gate(s, 2, h));
      cell = f * cell + i * g;
      state = sigmoid(gate(s, 3, h)) * tanh(cell);
      states.push_back(state);
    }
    return {joined(states, h), state, cell};
  }

  std::array<Tensor, 3> forward(Context& context, const Tensor& x, const Tensor& h, const Tensor& c, const Tensor& w_ih,
                                const Tensor& w_hh, const Tensor& b_ih, const Tensor& b_hh) const {
    const Tensor gates = linear(x, w_ih, added(b_ih, b_hh)), first = dense(h), first_cell = dense(c), w = dense(w_hh);
    const Tensor states = empty(shape_of_states(x, h), x.dtype()), cells = empty(states.shape(), x.dtype());
    dispatch_wide(x.dtype(), [&]<class T> {
      kernels::lstm_forward(sizes_of(states), w.data<T>(), first.data<T>(), first_cell.data<T>(),
                            detail::fresh<T>(gates), detail::fresh<T>(states), detail::fresh<T>(cells));
    });
    context.save(states, gates, cells);
    return {states, last_of(states, first), last_of(cells, first_cell)};
  }

  Grads backward(Context& context, std::span<const Tensor> gs) const {
    const Tensor x = context.input(0), h = context.input(1), c = dense(context.input(2)), w_ih = context.input(3);
    const Tensor w_hh = dense(context.input(4)), states = context.saved(0), gates = context.saved(1);
    const Tensor cells = context.saved(2), ds = empty(gates.shape(), x.dtype()), g = dense_or_undefined(gs[0]);
    const Tensor dh = own_gradient(context, gs, 1), dc = own_gradient(context, gs, 2);
    dispatch_wide(x.dtype(), [&]<class T> {
      kernels::lstm_backward(sizes_of(states), w_hh.data<T>(), c.data<T>(), gates.data<T>(), cells.data<T>(),
                             data_or_null<T>(g), detail::fresh<T>(dh), detail::fresh<T>(dc), detail::fresh<T>(ds));
    });
    return grads(
        context, [&] { return matmul(ds, w_ih); }, [&] { return dh; }, [&] { return dc; },
        [&] { return weight_gradient(ds, x); }, [&] { return weight_gradient(ds, before_each(h, states)); },
        [&] { return bias_gradient(ds); }, [&] { return bias_gradient(ds); });
  }
};

struct Gru {
  static constexpr std::string_view
      name = "gru",
      formula =
          "hₜ = (1 − z) n + z hₜ₋₁; (r z) = σ(s + u), n = tanh(s + r u), s = xₜ w_ihᵀ + b_ih, u = hₜ₋₁ w_hhᵀ + b_hh",
      vjp =
          "d = gₜ + dhₜ, dn = d(1 − z)(1 − n²), ds = (dn u r(1−r), d(hₜ₋₁ − n) z(1−z), dn), du = ds but dn r, dhₜ₋₁ = "
          "d z + du w_hh; dx, dw_ih, db_ih as rnn from ds, dw_hh, db_hh from du";

  std::array<Tensor, 2> composite(const Tensor& x, const Tensor& h, const Tensor& w_ih, const Tensor& w_hh,
                                  const Tensor& b_ih, const Tensor& b_hh) const {
    Tensor state = h;
    std::vector<Tensor> states;
    for (int64_t t = 0; t < x.size(0); ++t) {
      const Tensor s = linear(select(x, 0, t), w_ih, b_ih), u = linear(state, w_hh, b_hh);
      const Tensor r = sigmoid(gate(s, 0, h) + gate(u, 0, h)), z = sigmoid(gate(s, 1, h) + gate(u, 1, h));
      const Tensor n = tanh(gate(s, 2, h) + r * gate(u, 2, h));
      state = (1.0 - z) * n + z * state;
      states.push_back(state);
    }
    return {joined(states, h), state};
  }

  std::array<Tensor, 2> forward(Context& c, const Tensor& x, const Tensor& h, const Tensor& w_ih, const Tensor& w_hh,
                                const Tensor& b_ih, const Tensor& b_hh) const {
    const Tensor gates = linear(x, w_ih, b_ih), first = dense(h), w = dense(w_hh), b = dense_or_undefined(b_hh);
    const Tensor states = empty(shape_of_states(x, h), x.dtype()), inner = empty(states.shape(), x.dtype());
    dispatch_wide(x.dtype(), [&]<class T> {
      kernels::gru_forward(sizes_of(states), w.data<T>(), data_or_null<T>(b), first.data<T>(), detail::fresh<T>(gates),
                           detail::fresh<T>(inner), detail::fresh<T>(states));
    });
    c.save(states, gates, inner);
    return {states, last_of(states, first)};
  }

  Grads backward(Context& c, std::span<const Tensor> gs) const {
    const Tensor x = c.input(0), h = dense(c.input(1)), w_ih = c.input(2), w_hh = dense(c.input(3));
    const Tensor states = c.saved(0), gates = c.saved(1), inner = c.saved(2), g = dense_or_undefined(gs[0]);
    const Tensor dh = own_gradient(c, gs, 1), ds = empty(gates.shape(), x.dtype()),
                 du = empty(gates.shape(), x.dtype());
    dispatch_wide(x.dtype(), [&]<class T> {
      kernels::gru_backward(sizes_of(states), w_hh.data<T>(), h.data<T>(), gates.data<T>(), inner.data<T>(),
                            states.data<T>(), data_or_null<T>(g), detail::fresh<T>(dh), detail::fresh<T>(ds),
                            detail::fresh<T>(du));
    });
    return grads(
        c, [&] { return matmul(ds, w_ih); }, [&] { return dh; }, [&] { return weight_gradient(ds, x); },
        [&] { return weight_gradient(du, before_each(h, states)); }, [&] { return bias_gradient(ds); },
        [&] { return bias_gradient(du); });
  }
};

/// Checks the operands of a layer against one another; c is null where there is none.
void check(std::string_view op, bool sequence, int64_t gates, const Tensor& x, const Tensor& h, const Tensor* c,
           const Tensor& w_ih, const Tensor& w_hh, const Tensor& b_ih, const Tensor& b_hh) {
  for (const Tensor* t : {&x, &h, &w_ih, &w_hh, c}) {
    if (t != nullptr) detail::require_defined(op, *t);
  }
  detail::require_floating(op, x);
  if (x.dim() != (sequence ? 3 : 2))
    fail<ShapeError>("{}: x is {}; it must be {}", op, x.describe(), sequence ? "(T, B, in)" : "(B, in)");
  if (w_hh.dim() != 2 || w_hh.size(0) != gates * w_hh.size(1))
    fail<ShapeError>("{}: w_hh is {}; it must be ({}H, H)", op, w_hh.describe(),
                     gates == 1 ? "" : std::to_string(gates));
  const auto require = [&](const char* name, const Tensor& t, const Shape& shape) {
    if (t.shape() != shape)
      fail<ShapeError>("{}: {} is {}, x is {}, w_hh is {}; {} must be {}", op, name, t.describe(), x.describe(),
                       w_hh.describe(), name, to_string(shape));
    if (t.dtype() != x.dtype())
      fail<DTypeError>("{}: dtypes differ: x is {}, {} is {}; convert with to(x, DType::{})", op, x.describe(), name,
                       t.describe(), name_of(t.dtype()));
  };
  const int64_t width = w_hh.size(0);
  const Shape state = {x.size(-2), w_hh.size(1)};
  require("w_ih", w_ih, {width, x.size(-1)});
  require("w_hh", w_hh, w_hh.shape());
  require("h", h, state);
  if (c != nullptr) require("c", *c, state);
  if (b_ih.defined()) require("b_ih", b_ih, {width});
  if (b_hh.defined()) require("b_hh", b_hh, {width});
}

/// bf16 is widened for the whole sequence and the results are rounded once.
template <class Op, class... X>
auto run(Op op, const Tensor& x, const X&... others) {
  if (x.dtype() != DType::bf16) return apply(op, x, others...);
  const auto wide = [](const Tensor& t) { return t.defined() ? to(t, DType::f32) : t; };
  auto results = apply(op, wide(x), wide(others)...);
  for (Tensor& y : results) y = to(y, DType::bf16);
  return results;
}

}  // namespace

Tensor rnn_cell(const Tensor& x, const Tensor& h, const Tensor& w_ih, const Tensor& w_hh, const Tensor& b_ih,
                const Tensor& b_hh, bool relu) {
  check("rnn_cell", false, 1, x, h, nullptr, w_ih, w_hh, b_ih, b_hh);
  return run(Rnn{relu}, unsqueeze(x, 0), h, w_ih, w_hh, b_ih, b_hh)[1];
}

std::array<Tensor, 2> lstm_cell(const Tensor& x, const Tensor& h, const Tensor& c, const Tensor& w_ih,
                                const Tensor& w_hh, const Tensor& b_ih, const Tensor& b_hh) {
  check("lstm_cell", false, 4, x, h, &c, w_ih, w_hh, b_ih, b_hh);
  const auto results = run(Lstm{}, unsqueeze(x, 0), h, c, w_ih, w_hh, b_ih, b_hh);
  return {results[1], results[2]};
}

Tensor gru_cell(const Tensor& x, const Tensor& h, const Tensor& w_ih, const Tensor& w_hh, const Tensor& b_ih,
                const Tensor& b_hh) {
  check("gru_cell", false, 3, x, h, nullptr, w_ih, w_hh, b_ih, b_hh);
  return run(Gru{}, unsqueeze(x, 0), h, w_ih, w_hh, b_ih, b_hh)[1];
}

std::array<Tensor, 2> rnn(const Tensor& x, const Tensor& h, const Tensor& w_ih, const Tensor& w_hh, const Tensor& b_ih,
                          const Tensor& b_hh, bool relu) {
  check("rnn", true, 1, x, h, nullptr, w_ih, w_hh, b_ih, b_hh);
  return run(Rnn{relu}, x, h, w_ih, w_hh, b_ih, b_hh);
}

std::array<Tensor, 3> lstm(const Tensor& x, const Tensor& h, const Tensor& c, const Tensor& w_ih, const Tensor& w_hh,
                           const Tensor& b_ih, const Tensor& b_hh) {
  check("lstm", true, 4, x, h, &c, w_ih, w_hh, b_ih, b_hh);
  return run(Lstm{}, x, h, c, w_ih, w_hh, b_ih, b_hh);
}

std::array<Tensor, 2> gru(const Tensor& x, const Tensor& h, const Tensor& w_ih, const Tensor& w_hh, const Tensor& b_ih,
                          const Tensor& b_hh) {
  check("gru", true, 3, x, h, nullptr, w_ih, w_hh, b_ih, b_hh);
  return run(Gru{}, x, h, w_ih, w_hh, b_ih, b_hh);
}

}  // namespace tapestry
