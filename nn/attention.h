// Multi-head attention with its projections; grouped and multi-query heads are the same with fewer keys and values.
// Not here: the product and its softmax (ops/attention.cpp), nor a cache (models/transformer/kv_cache.h).
// Next: containers.h.
#pragma once

#include <array>

#include "linear.h"
#include "rope.h"

namespace tapestry {

struct MultiHeadAttentionOptions {
  int64_t n_heads = 1;
  int64_t n_kv_heads = 0;  ///< 0: n_heads; must divide n_heads (Ainslie et al. 2023; 1: Shazeer 2019)
  int64_t head_dim = 0;    ///< 0: d_model / n_heads
  bool bias = false;       ///< of the four projections
};

/// What decoding step by step remembers: takes the new keys and values (B, Hkv, T, Dh), returns all so far.
class KeyValueStore {
 public:
  virtual ~KeyValueStore() = default;
  virtual std::array<Tensor, 2> extend(const Tensor& keys, const Tensor& values) = 0;
};

struct AttentionArgs {
  Tensor mask = {};                       ///< bool, true = may attend; shapes as scaled_dot_product_attention
  bool causal = false;                    ///< query i of T attends keys up to i + Tk − T
  const RotaryEmbedding* rope = nullptr;  ///< turns queries and keys, if given
  Tensor positions = {};                  ///< for rope: i64 (T) or (B, T); undefined for 0 … T−1
  Tensor context = {};  ///< (B, Tk, D) keys and values come from, instead of x; its positions are 0 … Tk−1
  KeyValueStore* store = nullptr;
};

/// o(softmax(q kᵀ/√Dh, masked) v) per head; Vaswani et al. 2017. (B, T, D) to (B, T, D), or (T, D) to (T, D).
struct MultiHeadAttention : Layer<MultiHeadAttention> {
  int64_t n_heads, n_kv_heads, head_dim;
  Linear q_proj, k_proj, v_proj, o_proj;  // (H·Dh, D), (Hkv·Dh, D) twice, (D, H·Dh)

  /// ValueError unless n_kv_heads divides n_heads and, where head_dim is not given, n_heads divides d_model.
  MultiHeadAttention(int64_t d_model, MultiHeadAttentionOptions options);
  [[nodiscard]] Tensor forward(const Tensor& x, const AttentionArgs& args = {}) const;
  void visit(Visitor& v) override;

 private:
  struct Sizes {
    int64_t n_heads, n_kv_heads, head_dim;
  };
  MultiHeadAttention(int64_t d_model, Sizes sizes, bool bias);
  static Sizes checked(int64_t d_model, const MultiHeadAttentionOptions& options);
};

}  // namespace tapestry
