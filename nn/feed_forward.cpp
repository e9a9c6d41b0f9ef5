// Construction and the call of FeedForward.
#include "feed_forward.h"

#include "../autograd/error.h"

namespace tapestry {

FeedForward::FeedForward(int64_t d_model, int64_t d_ff, FeedForwardOptions o)
    : down_proj(d_ff, d_model, LinearOptions{.bias = o.down_bias}), activation(o.activation) {
  if (o.fused_gate_up && !o.gated) fail<ValueError>("FeedForward: fused_gate_up is set, but gated is not");
  if (o.fused_gate_up) {
    gate_up_proj.emplace(d_model, 2 * d_ff, LinearOptions{.bias = o.gate_bias || o.up_bias});
    return;
  }
  if (o.gated) gate_proj.emplace(d_model, d_ff, LinearOptions{.bias = o.gate_bias});
  up_proj.emplace(d_model, d_ff, LinearOptions{.bias = o.up_bias});
}

Tensor FeedForward::forward(const Tensor& x) const {
  if (!gate_proj && !gate_up_proj) return down_proj(activate(activation, (*up_proj)(x)));
  Tensor gate, up;  // (…, F)
  if (gate_up_proj) {
    const Tensors halves = chunk((*gate_up_proj)(x), 2, -1);
    gate = halves[0], up = halves[1];
  } else {
    gate = (*gate_proj)(x), up = (*up_proj)(x);
  }
  return down_proj(activation == Activation::silu ? swiglu(gate, up) : activate(activation, gate) * up);
}

void FeedForward::visit(Visitor& v) {
  if (gate_proj) v.child("gate_proj", *gate_proj);
  if (up_proj) v.child("up_proj", *up_proj);
  if (gate_up_proj) v.child("gate_up_proj", *gate_up_proj);
  v.child("down_proj", down_proj);
}

int64_t gated_width(int64_t d_model, int64_t multiple) {
  if (d_model < 1 || multiple < 1)
    fail<ValueError>("gated_width: d_model {} and multiple {} must be positive", d_model, multiple);
  return (8 * d_model + 3 * multiple - 1) / (3 * multiple) * multiple;
}

}  // namespace tapestry
