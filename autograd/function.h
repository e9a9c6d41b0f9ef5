// Recording: apply() runs an op's forward and, where a gradient is needed, leaves a node on the tape.
// The library's own ops and a user's custom ops use exactly this.
// Next: engine.h.
#pragma once

#include <array>
#include <concepts>

#include "context.h"
#include "grad_mode.h"
#include "observer.h"

namespace tapestry {

// An op is a struct:
//
//   struct Square {
//     static constexpr std::string_view name = "square", formula = "x²", vjp = "2·g·x";  // the last two are optional
//     Tensor forward(Context& c, const Tensor& x) const { c.save(x); return …; }          // raw kernels; nothing is recorded inside
//     Grads backward(Context& c, const Tensor& g) const { return {2.0 * c.saved(0) * g}; }  // in plain ops, so that every order works
//   };
//   Tensor square(const Tensor& x) { return apply(Square{}, x); }
//
// forward takes a fixed number of tensors or one std::span<const Tensor>, and returns a Tensor, a std::array<Tensor, N> or Tensors. With several outputs
// backward takes a std::span<const Tensor> (undefined where no gradient arrived). Outputs of integer or bool dtype get no edge.
// `composite(inputs…)` (optional) is the same function in plain differentiable ops: with it backward may be a raw kernel, all inputs are saved
// (Context::input(i)), and a recording walk differentiates the composite. Without a backward the composite alone is used.

namespace detail {

/// Throws the AutogradError of an op that has no derivative.
[[noreturn]] void refuse_gradient(std::string_view op);
/// Does recording this call make sense: recording is on and an input has an edge?
bool wants_record(std::span<const Tensor* const> inputs);
/// Fills node.inputs; AutogradError for an integer input with an edge cannot happen (such leaves are refused).
void connect(Node& node, std::span<const Tensor* const> inputs);
void save_inputs(Node& node, std::span<const Tensor* const> inputs);
/// Sets the outputs' metas and edges, and turns saved outputs into edge-less ones.
void finish(Node& node, std::span<const Tensor* const> inputs, std::span<Tensor> outputs);
/// Differentiates `composite` at the saved inputs through identity nodes, with a walk that stops at them.
Grads through_composite(Context& c, int inputs, const std::function<Tensors(std::span<const Tensor>)>& composite,
                        std::span<const Tensor> gs);

inline std::span<Tensor> as_span(Tensor& t) { return {&t, 1}; }
inline std::span<Tensor> as_span(Tensors& t) { return {t.data(), t.size()}; }
template <size_t N>
std::span<Tensor> as_span(std::array<Tensor, N>& t) {
  return t;
}

template <class Result>
Tensors as_tensors(Result&& result) {
  auto local = std::forward<Result>(result);
  Tensors list;
  for (Tensor& t : as_span(local)) list.push_back(std::move(t));
  return list;
}

template <class Op>
concept TakesSpan = requires(const Op& op, Context& c, std::span<const Tensor> xs) {
  op.forward(c, xs);
};
template <class Op>
concept SpanComposite = requires(const Op& op, std::span<const Tensor> xs) {
  op.composite(xs);
};
template <class Op>
concept HasComposite = SpanComposite<Op> || requires {
  &Op::composite;
};
template <class Op>
concept SpanBackward = requires(const Op& op, Context& c, std::span<const Tensor> gs) {
  op.backward(c, gs);
};
template <class Op>
concept SingleBackward = requires(const Op& op, Context& c, const Tensor& g) {
  op.backward(c, g);
};
template <class Op>
concept HasBackward = SpanBackward<Op> || SingleBackward<Op>;

/// Without a derivative an op may still give integers and booleans; a floating output is refused at the call.
template <class Op, class Result>
auto without_derivative(Result result) {
  for (const Tensor& t : as_span(result))
    if (is_floating(t.dtype())) refuse_gradient(Op::name);
  return result;
}

/// Calls f(xs[0], xs[1], …) with as many arguments as the member function takes.
template <class Op, class R, class... A>
Tensors call_composite(const Op& op, R (Op::*f)(A...) const, std::span<const Tensor> xs) {
  return [&]<size_t... I>(std::index_sequence<I...>) { return as_tensors((op.*f)(xs[I]...)); }
  (std::index_sequence_for<A...>{});
}

}  // namespace detail

template <class Op>
class OpNode final : public Node {
 public:
  explicit OpNode(Op o) : op(std::move(o)) {}
  [[nodiscard]] std::string_view name() const override { return op.name; }
  [[nodiscard]] std::string_view formula() const override {
    if constexpr (requires { op.formula; })
      return op.formula;
    else if constexpr (requires { op.row.formula; })
      return op.row.formula;
    else
      return {};
  }
  [[nodiscard]] std::string_view vjp() const override {
    if constexpr (requires { op.vjp; })
      return op.vjp;
    else if constexpr (requires { op.row.vjp; })
      return op.row.vjp;
    else
      return {};
  }

  Grads backward(const Walk& walk, Grads gs) override {
    Context c(*this, walk);
    if constexpr (detail::HasComposite<Op>) {
      if (grad_enabled() || !detail::HasBackward<Op>) {
        return detail::through_composite(
            c, static_cast<int>(inputs.size()),
            [this](std::span<const Tensor> xs) {
              if constexpr (detail::SpanComposite<Op>)
                return detail::as_tensors(op.composite(xs));
              else
                return detail::call_composite(op, &Op::composite, xs);
            },
            gs);
      }
    }
    if constexpr (detail::SpanBackward<Op>) {
      return op.backward(c, std::span<const Tensor>(gs));
    } else if constexpr (detail::SingleBackward<Op>) {
      return op.backward(c, gs[0]);
    } else {
      return {};
    }
  }

  Op op;
};

namespace detail {

/// The path of every apply(): forward(op, context) runs the op, on a node where an input needs a gradient.
template <class Op, class Forward>
auto run(Op op, std::span<const Tensor* const> inputs, const Forward& forward) {
  const auto unrecorded = [&] {
    Context nothing;
    auto result = forward(op, nothing);
    if (observer != nullptr) [[unlikely]]
      observe_forward(op.name, inputs, as_span(result));
    return result;
  };
  if (!wants_record(inputs)) return unrecorded();
  if constexpr (!HasBackward<Op> && !HasComposite<Op>) {
    return without_derivative<Op>(unrecorded());
  } else {
    auto* made = new OpNode<Op>(std::move(op));
    const Ref<Node> node(made);
    connect(*made, inputs);
    if constexpr (HasComposite<Op>) save_inputs(*made, inputs);
    Context c(*made);
    auto result = [&] {
      const NoGrad raw;
      return forward(made->op, c);
    }();
    finish(*made, inputs, as_span(result));
    if (observer != nullptr) [[unlikely]]
      observe_forward(made->op.name, inputs, as_span(result));
    return result;
  }
}

}  // namespace detail

/// Runs op.forward(inputs…) and records it where an input needs a gradient.
template <class Op, class... T>
requires(std::same_as<T, Tensor>&&...) auto apply(Op op, const T&... inputs) {
  const Tensor* const list[] = {&inputs...};
  return detail::run(std::move(op), list, [&](const Op& o, Context& c) { return o.forward(c, inputs...); });
}

/// As above for an op that takes any number of inputs.
template <detail::TakesSpan Op>
auto apply(Op op, std::span<const Tensor> inputs) {
  SmallVector<const Tensor*, 8> list;
  for (const Tensor& t : inputs) list.push_back(&t);
  return detail::run(std::move(op), list, [&](const Op& o, Context& c) { return o.forward(c, inputs); });
}

}  // namespace tapestry
