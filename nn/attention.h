// Multi-head attention with its projections; grouped and multi-query heads are the same with fewer keys and values.
// Not here: the product and its softmax (ops/attention.cpp), nor a cache (models/transformer/kv_cache.h).
// Next: containers.h.
#pragma once

#include <optional>
#include <string_view>

#include "linear.h"
#include "norm.h"
#include "rope.h"

namespace tapestry {

/// What queries and keys are normalised over before they turn (Henry et al. 2020; Dehghani et al. 2023).
enum class QkNorm {
  none,
  head,       ///< every head over its Dh entries, with one gain (Dh) for all heads
  projection  ///< the whole projected row, before it is cut into heads: gains (H·Dh) and (Hkv·Dh)
};
std::string_view name_of(QkNorm kind);

struct MultiHeadAttentionOptions {
  int64_t n_heads = 1;
  int64_t n_kv_heads = 0;  ///< 0: n_heads; must divide n_heads (Ainslie et al. 2023; 1: Shazeer 2019)
  int64_t head_dim = 0;    ///< 0: d_model / n_heads
  bool q_bias = false, k_bias = false, v_bias = false, o_bias = false;
  bool fused_qkv = false;  ///< one projection qkv_proj, rows of q, then k, then v; it has a bias if q, k or v has
  QkNorm qk_norm = QkNorm::none;
  NormKind qk_norm_kind = NormKind::rms;
  double qk_norm_eps = 1e-5;
  double scale = 0;     ///< of the scores; 0: 1/√Dh
  double soft_cap = 0;  ///< of the scaled scores; 0: none
  int64_t window = 0;   ///< W > 0: a causal query sees W keys, its own among them; 0: all before it
  double dropout = 0;   ///< of the probabilities while training
};

/// All keys and values a query may look at.
struct StoredKeys {
  Tensor keys, values;  ///< (B, Hkv, Tk, Dh)
  Tensor mask = {};     ///< bool (B, 1, 1, Tk), true where a key stands for a token; undefined if all do
};

/// What decoding step by step remembers.
class KeyValueStore {
 public:
  virtual ~KeyValueStore() = default;
  /// Takes the new keys and values (B, Hkv, T, Dh), returns all so far. They are in order of time unless T = 1, whose
  /// query sees them all.
  virtual StoredKeys extend(const Tensor& keys, const Tensor& values) = 0;
  /// The columns of a mask (…, tokens so far) that stand for the keys last returned.
  [[nodiscard]] virtual Tensor mask_columns(const Tensor& mask) const { return mask; }
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
  MultiHeadAttentionOptions options;             ///< with n_kv_heads and head_dim filled in
  std::optional<Linear> q_proj, k_proj, v_proj;  // (H·Dh, D), (Hkv·Dh, D) twice
  std::optional<Linear> qkv_proj;                // ((H + 2·Hkv)·Dh, D)
  Linear o_proj;                                 // (D, H·Dh)
  std::optional<Norm> q_norm, k_norm;

  /// ValueError unless n_kv_heads divides n_heads and, where head_dim is not given, n_heads divides d_model.
  MultiHeadAttention(int64_t d_model, const MultiHeadAttentionOptions& o);
  [[nodiscard]] Tensor forward(const Tensor& x, const AttentionArgs& args = {}) const;
  void visit(Visitor& v) override;

 private:
  struct Heads {
    Tensor q, k, v;  // (B, H or Hkv, T, Dh)
  };
  [[nodiscard]] Heads project(const Tensor& queries, const Tensor& source) const;
};

}  // namespace tapestry
