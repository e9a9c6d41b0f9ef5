// The Transformer block: two residual branches, each behind its norm.
// Not here: attention and feed-forward themselves (nn/).
// Next: lm.h.
#pragma once

#include "../../nn/attention.h"
#include "../../nn/feed_forward.h"
#include "../../nn/norm.h"
#include "config.h"

namespace tapestry {

struct BlockArgs {
  const RotaryEmbedding& rope;
  Tensor positions = {};           ///< i64 (T) or (B, T); undefined for 0 … T−1
  KeyValueStore* store = nullptr;  ///< this layer's keys and values when decoding step by step
};

/// Pre-norm (Xiong et al. 2020): the residual stream x → z → y is never normalised itself. (B, T, D) to (B, T, D).
struct TransformerBlock : Layer<TransformerBlock> {
  RMSNorm attention_norm;
  MultiHeadAttention attention;
  RMSNorm feed_forward_norm;
  FeedForward feed_forward;

  explicit TransformerBlock(const TransformerConfig& c);
  [[nodiscard]] Tensor forward(const Tensor& x, const BlockArgs& args) const;
  void visit(Visitor& v) override;
};

}  // namespace tapestry
