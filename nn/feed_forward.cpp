// Construction and the call of FeedForward.
#include "feed_forward.h"

#include "../autograd/error.h"

namespace tapestry {

FeedForward::FeedForward(int64_t d_model, int64_t d_ff, FeedForwardOptions options)
    : gate_proj(options.gated ? std::optional(Linear(d_model, d_ff, LinearOptions{.bias = options.bias}))
                              : std::nullopt),
      up_proj(d_model, d_ff, LinearOptions{.bias = options.bias}),
      down_proj(d_ff, d_model, LinearOptions{.bias = options.bias}),
      activation(options.activation) {}

Tensor FeedForward::forward(const Tensor& x) const {
  if (!gate_proj) return down_proj(activate(activation, up_proj(x)));
  const Tensor gate = (*gate_proj)(x), up = up_proj(x);  // (…, F)
  return down_proj(activation == Activation::silu ? swiglu(gate, up) : activate(activation, gate) * up);
}

void FeedForward::visit(Visitor& v) {
  if (gate_proj) v.child("gate_proj", *gate_proj);
  v.child("up_proj", up_proj);
  v.child("down_proj", down_proj);
}

int64_t gated_width(int64_t d_model, int64_t multiple) {
  if (d_model < 1 || multiple < 1)
    fail<ValueError>("gated_width: d_model {} and multiple {} must be positive", d_model, multiple);
  return (8 * d_model + 3 * multiple - 1) / (3 * multiple) * multiple;
}

}  // namespace tapestry
