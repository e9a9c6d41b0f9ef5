// What a Transformer holds in memory: the KV cache, what a decoded token reads, the optimizer's state, and the usual list of activations.
// Not here: what this implementation really holds at the peak of a training step (accounting_peak.h).
// Next: accounting_peak.h.
#pragma once

#include <string_view>
#include <vector>

#include "../../autograd/dtype.h"
#include "config.h"

namespace tapestry {

/// Bytes of a KeyValueCache for `rows` sequences of `tokens` tokens: a sliding layer holds its window only.
int64_t kv_cache_bytes(const TransformerConfig& c, int64_t rows, int64_t tokens, DType dtype = DType::bf16);
/// What one more token of one sequence takes while no window is full.
int64_t kv_cache_bytes_per_token(const TransformerConfig& c, DType dtype = DType::bf16);

/// What one step of decoding moves and computes: one token for each of `rows` sequences.
struct DecodeCost {
  int64_t weight_bytes = 0;  ///< every weight a token meets, once for all rows; of embeddings only the rows looked up
  int64_t cache_bytes = 0;   ///< keys and values of all tokens before, and the new ones
  int64_t flops = 0;
  [[nodiscard]] int64_t bytes() const { return weight_bytes + cache_bytes; }
  /// FLOPs a byte: below what the machine computes while it reads one, memory sets the pace.
  [[nodiscard]] double intensity() const { return static_cast<double>(flops) / static_cast<double>(bytes()); }
};
/// For the last of `length` tokens of each of `rows` sequences. With experts the rows are taken to choose different ones as long as there are any.
DecodeCost decode_cost(const TransformerConfig& c, int64_t rows, int64_t length, DType weights, DType cache);

/// AdamW's two moments of all parameters.
int64_t optimizer_bytes(const TransformerConfig& c);

struct ActivationRow {
  std::string_view name;
  int64_t elements;  ///< of all layers together
};
/// The usual list: every intermediate result of a plain implementation, once. It holds the (T, T) scores and their
/// softmax, which a fused attention does not.
struct ActivationList {
  std::vector<ActivationRow> rows;
  [[nodiscard]] int64_t elements() const;
};
ActivationList activation_list(const TransformerConfig& c, int64_t rows, int64_t length);

}  // namespace tapestry
