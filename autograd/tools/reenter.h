// A tensor entered into a function as an independent variable, so that what is computed from it can be differentiated at it alone.
// Not public API: functional.cpp and checkpoint.cpp share it.
#pragma once

#include "../function.h"

namespace tapestry::detail {

struct Reenter {
  static constexpr std::string_view name = "identity", formula = "x", vjp = "g";
  Tensor forward(Context&, const Tensor& t) const { return t.detach(); }
  Grads backward(Context&, const Tensor& g) const { return {g}; }
};

/// The same values as a new leaf; or, with `keep_history` and where x has one, behind an identity node, so that derivatives lead on to what x came from.
/// Tensors of integers or booleans are only detached.
inline Tensor reenter(const Tensor& x, bool keep_history) {
  if (!x.defined() || !is_floating(x.dtype())) return x.defined() ? x.detach() : x;
  if (keep_history && x.requires_grad()) return apply(Reenter{}, x);
  return x.detach().requires_grad_();
}

}  // namespace tapestry::detail
