// What a Transformer computes: floating-point operations by matrix product, and what decoding a token reads.
// Not a measurement (ops/flop_counter.h, which it is tested against), nor time (machine_profile.h).
// Next: accounting_memory.h.
#pragma once

#include <string_view>
#include <vector>

#include "config.h"

namespace tapestry {

/// Which pairs of query and key count. A kernel may compute more than the attended ones, as blocks are rectangles.
enum class AttentionPairs {
  dense,    ///< all T·T, as tables of FLOPs usually do
  attended  ///< those that causality and the layer's window leave
};

struct FlopRow {
  std::string_view product;  ///< "q_proj", "attention_scores", …
  int64_t flops;             ///< of one forward pass, all layers together
};

/// 2·m·n·p for every product (m, n)·(n, p) of a forward pass; all else is not counted.
struct FlopTable {
  std::vector<FlopRow> rows;  ///< products the model has, in the order they run
  [[nodiscard]] int64_t forward_pass() const;
  /// Forward and backward of a training step: a product's two gradients cost what it cost.
  [[nodiscard]] int64_t training() const { return 3 * forward_pass(); }
  /// Of the product of that name; 0 if there is none.
  [[nodiscard]] int64_t of(std::string_view product) const;
};

/// For `rows` sequences of `length` tokens. ValueError as check_countable.
FlopTable flop_table(const TransformerConfig& c, int64_t rows, int64_t length,
                     AttentionPairs pairs = AttentionPairs::dense);

/// For one token of each of `rows` sequences, the last of `length`, with the keys and values of the others in a cache.
FlopTable decode_flop_table(const TransformerConfig& c, int64_t rows, int64_t length);

/// What FlopCounter counts over a training step with all parameters trained: training(), the attention scores once more, which the fused
/// backward computes again (not where attention_dropout keeps them), and with `recompute` the blocks' forward once more.
int64_t executed_training_flops(const TransformerConfig& c, int64_t rows, int64_t length, bool recompute = false);

/// 6·N·D: what training on D tokens costs by the rule that a parameter costs 6 FLOPs a token, N those a
/// token meets without the embeddings (Kaplan et al. 2020).
int64_t six_n_d(const TransformerConfig& c, int64_t tokens);

/// Pairs of query and key that causality and a window of W keys (0: none) leave of length².
int64_t attended_pairs(int64_t length, int64_t window);

}  // namespace tapestry
