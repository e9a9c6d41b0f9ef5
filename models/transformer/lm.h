// The decoder-only language model: token embedding, blocks, final norm, head.
// Not here: its loss and training (../training/), sampling (sampler.h).
// Next: ../training/trainer.h.
#pragma once

#include "../../nn/containers.h"
#include "../../nn/embedding.h"
#include "block.h"

namespace tapestry {

struct TransformerArgs {
  Tensor positions = {};               ///< i64 (T) or (B, T); undefined for 0 … T−1
  std::vector<KeyValueStore*> stores;  ///< one per layer when decoding step by step, else empty
};

struct Transformer : Layer<Transformer> {
  TransformerConfig config;
  Embedding token_embedding;  // (V, D)
  List<TransformerBlock> layers;
  RMSNorm norm;
  Linear lm_head;  // (V, D)
  RotaryEmbedding rope;

  /// ValueError for an invalid config. Weights start as nn/init.h says.
  explicit Transformer(const TransformerConfig& c);
  /// Scores of the next token at every position: tokens i64 (B, T) to logits (B, T, V). ShapeError for T > max_seq_len.
  [[nodiscard]] Tensor forward(const Tensor& tokens, const TransformerArgs& args = {}) const;
  void visit(Visitor& v) override;
};

}  // namespace tapestry
