// The Transformer block: two residual branches, each with its norm where the configuration puts it.
// Not here: attention and feed-forward themselves (nn/).
// Next: lm.h.
#pragma once

#include "../../nn/attention.h"
#include "../../nn/dropout.h"
#include "../../nn/norm.h"
#include "config.h"
#include "experts.h"

namespace tapestry {

struct BlockArgs {
  const RotaryEmbedding* rope = nullptr;  ///< turns queries and keys, where this layer does
  Tensor positions = {};                  ///< i64 (T) or (B, T); undefined for 0 … T−1
  Tensor mask = {};                       ///< bool, beside causality; shapes as scaled_dot_product_attention
  KeyValueStore* store = nullptr;         ///< this layer's keys and values when decoding step by step
  BalanceLoss* balance = nullptr;         ///< collects the routers' loss, if given
};

/// One layer of the Transformer. (B, T, D) to (B, T, D); NormPlacement says what happens around the two branches.
struct TransformerBlock : Layer<TransformerBlock> {
  NormPlacement placement;
  std::optional<Norm> attention_norm, attention_post_norm;
  MultiHeadAttention attention;
  std::optional<Norm> feed_forward_norm, feed_forward_post_norm;
  std::optional<FeedForward> feed_forward;
  std::optional<MixtureOfExperts> experts;  // in its place
  Dropout dropout;

  explicit TransformerBlock(const TransformerConfig& c, int64_t layer = 0);
  [[nodiscard]] Tensor forward(const Tensor& x, const BlockArgs& args) const;
  void visit(Visitor& v) override;
};

}  // namespace tapestry
