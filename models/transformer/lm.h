// The decoder-only language model: token embedding, blocks, final norm, head; its loss.
// Not here: its training (../training/), sampling (sampler.h).
// Next: ../training/trainer.h.
#pragma once

#include "../../nn/containers.h"
#include "../../nn/embedding.h"
#include "block.h"
#include "kv_cache.h"

namespace tapestry {

struct TransformerArgs {
  Tensor positions = {};           ///< i64 (T) or (B, T); undefined for 0 … T−1, or what follows in the cache
  Tensor mask = {};                ///< bool, true = may attend, beside causality: (T, Tk), (B, T, Tk) or (B, H, T, Tk)
  KeyValueCache* cache = nullptr;  ///< what was read before, which this call extends
  bool head = true;                ///< false: the hidden states (B, T, D) the head would read
  bool last_only = false;          ///< of the last token alone: (B, 1, V) or (B, 1, D)
  BalanceLoss* balance = nullptr;  ///< collects the routers' loss, if given
};

struct LanguageModelLossOptions {
  int64_t ignore_index = -100;  ///< targets without loss
  Reduction reduction = Reduction::mean;
  double label_smoothing = 0;
  double z_loss = 0;        ///< times the squared log-sum-exp of the logits; Chowdhery et al. 2022
  double balance_loss = 0;  ///< times the experts' balance (experts.h), once a kept target
  Tensor mask = {};         ///< as TransformerArgs'
};

struct Transformer : Layer<Transformer> {
  TransformerConfig config;
  Embedding token_embedding;                    // (V, D)
  std::optional<Embedding> position_embedding;  // (max_seq_len, D)
  Dropout dropout;
  List<TransformerBlock> layers;
  std::optional<Norm> norm;
  std::optional<Linear> lm_head;                    // (V, D); a tied head is the token embedding
  std::optional<RotaryEmbedding> rope, rope_local;  // of full and of sliding layers, where these differ
  Tensor sinusoids;                                 // (max_seq_len, D) f64, in no state dict
  /// Keep of each block its input alone while recording, and compute the block again in backward: the same gradients bit
  /// for bit, for less memory and a third more time (Chen et al. 2016).
  bool recompute = false;

  /// ValueError for an invalid config. Weights start as nn/init.h says.
  explicit Transformer(const TransformerConfig& c);
  /// Scores of the next token at every position: tokens i64 (B, T) to logits (B, T, V). ShapeError where the tokens,
  /// with those in the cache, are more than max_seq_len.
  [[nodiscard]] Tensor forward(const Tensor& tokens, const TransformerArgs& args = {}) const;
  /// Cross-entropy of the logits against targets i64 (B, T), in nats, without holding the logits
  /// (linear_cross_entropy) unless the head has an adapter. f32 also of a bf16 model.
  [[nodiscard]] Tensor loss(const Tensor& tokens, const Tensor& targets,
                            const LanguageModelLossOptions& options = {}) const;
  void visit(Visitor& v) override;

 private:
  [[nodiscard]] Tensor embed(const Tensor& tokens, const Tensor& positions) const;
  [[nodiscard]] Tensor run(const Tensor& tokens, const Tensor& positions, const TransformerArgs& args) const;
  [[nodiscard]] Tensor recomputed(const TransformerBlock& block, const Tensor& x, const BlockArgs& args) const;
  [[nodiscard]] Tensor logits(const Tensor& hidden) const;
  [[nodiscard]] Tensor cross_entropy_of(const Tensor& hidden, const Tensor& targets,
                                        const LanguageModelLossOptions& o) const;
};

/// Mask for sequences that hold several documents: documents i64 (B, T) to bool (B, T, T), true where query and key are
/// of the same document.
Tensor document_mask(const Tensor& documents);

}  // namespace tapestry
