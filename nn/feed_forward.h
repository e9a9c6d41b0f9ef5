// The position-wise network of a Transformer block: plain, or with a gate.
// Not here: residuals and norms around it, or a choice among several (models/transformer/experts.h).
// Next: rope.h.
#pragma once

#include <optional>

#include "activation.h"
#include "linear.h"

namespace tapestry {

struct FeedForwardOptions {
  Activation activation = Activation::silu;
  bool gated = true;
  bool gate_bias = false, up_bias = false, down_bias = false;
  bool fused_gate_up = false;  ///< one projection gate_up_proj, rows of gate, then up; it has a bias if either has
};

/// Plain (Vaswani et al. 2017): down(act(up x)). Gated (Shazeer 2020): down(act(gate x) · up x), which is GLU for
/// sigmoid, ReGLU for relu, GeGLU for gelu and SwiGLU for silu, the default. (…, D) to (…, D) through (…, F).
struct FeedForward : Layer<FeedForward> {
  std::optional<Linear> gate_proj, up_proj;  // (F, D)
  std::optional<Linear> gate_up_proj;        // (2·F, D)
  Linear down_proj;                          // (D, F)
  Activation activation;

  FeedForward(int64_t d_model, int64_t d_ff, FeedForwardOptions options = {});
  [[nodiscard]] Tensor forward(const Tensor& x) const;
  void visit(Visitor& v) override;
};

/// 8/3·d_model rounded up to a multiple: the width at which a gated network has as many parameters as a plain one of
/// width 4·d_model.
int64_t gated_width(int64_t d_model, int64_t multiple = 64);

}  // namespace tapestry
