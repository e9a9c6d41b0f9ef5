// What a decoder-only Transformer is made of: every structural choice is one field; read from and written to JSON.
// Not how it is trained (../training/config.h), nor why one would choose what (config_options.h).
// Next: block.h.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "../../nn/activation.h"
#include "../../nn/attention.h"
#include "../../nn/norm.h"
#include "../../nn/rope.h"

namespace tapestry {

/// Where a branch F (attention or feed-forward) is normalised.
enum class NormPlacement {
  pre,               ///< h + F(Norm(h)); Xiong et al. 2020
  post,              ///< Norm(h + F(h)); Vaswani et al. 2017
  double_norm,       ///< h + Norm(F(Norm(h))); Gemma 2
  non_residual_post  ///< h + Norm(F(h)); OLMo 2
};
/// How a token knows its place.
enum class Positions { rope, learned, sinusoidal, none };
/// Which keys a layer's queries see: all before them, or the last `window`.
enum class AttentionSpan { full, sliding };

/// Defaults are the seed architecture: pre-norm residual blocks of RMSNorm, causal attention with rotary positions, and
/// SwiGLU; no biases. Field by field in docs/transformer_config.md.
struct TransformerConfig {
  int64_t vocab_size = 256;   ///< V
  int64_t max_seq_len = 256;  ///< longest T, the rows of the rotary and position tables
  int64_t n_layers = 6;       ///< blocks
  int64_t n_heads = 6;        ///< H, query heads
  int64_t n_kv_heads = 6;     ///< Hkv, key and value heads; divides n_heads (Ainslie et al. 2023)
  int64_t d_model = 384;      ///< D, width of the residual stream
  int64_t head_dim = 0;       ///< Dh; 0: d_model / n_heads, which must then be whole
  int64_t d_ff = 1024;        ///< F; feed_forward_width(config) keeps the budget of a plain 4·D network

  NormPlacement norm_placement = NormPlacement::pre;
  NormKind norm_kind = NormKind::rms;
  double norm_eps = 1e-5;  ///< added to the mean square or the variance, inside the root
  bool final_norm = true;  ///< a norm between the last block and the head

  Positions positions = Positions::rope;
  RopeLayout rope_layout = RopeLayout::adjacent;  ///< half for Hugging Face weights
  double rope_theta = 10000.0;                    ///< base of the rotary frequencies
  double rope_local_theta = 0;                    ///< base in sliding layers, never scaled; 0: rope_theta, scaled alike
  double rotary_fraction = 1;          ///< the first ⌊fraction·Dh⌋ entries of a head turn, an even number
  RopeScaling rope_scaling = {};       ///< for contexts longer than trained
  std::vector<bool> rope_layers = {};  ///< layers that turn; empty: all

  int64_t window = 0;                           ///< W keys a sliding layer's query sees, its own among them
  std::vector<AttentionSpan> layer_types = {};  ///< empty: all sliding if there is a window, else all full
  bool fused_qkv = false;                       ///< one projection with the rows of q, then k, then v
  QkNorm qk_norm = QkNorm::none;                ///< norm of queries and keys before they turn
  NormKind qk_norm_kind = NormKind::rms;
  double attention_scale = 0;     ///< scores are q·k times it; 0: 1/√Dh
  double attention_soft_cap = 0;  ///< scores become cap·tanh(score/cap) before the mask; 0: none

  Activation activation = Activation::silu;
  bool gated = true;           ///< down(act(gate x)·up x), else down(act(up x))
  bool fused_gate_up = false;  ///< one projection with the rows of gate, then up

  int64_t n_experts = 0;                 ///< E feed-forward networks a router chooses from; 0: one and no router
  int64_t experts_per_token = 2;         ///< k of them for each token
  int64_t d_expert = 0;                  ///< their width; 0: d_ff
  bool normalise_experts = true;         ///< the k weights are divided by their sum
  int64_t n_shared_experts = 0;          ///< width of a network every token takes beside, in units of d_expert
  std::vector<bool> expert_layers = {};  ///< layers with experts; empty: all

  bool q_bias = false, k_bias = false, v_bias = false, o_bias = false;
  bool gate_bias = false, up_bias = false, down_bias = false;
  bool head_bias = false;

  bool tied_embeddings = false;  ///< the head's weight is the embedding's
  bool scale_embedding = false;  ///< embeddings times √D
  double final_soft_cap = 0;     ///< logits become cap·tanh(logit/cap); 0: none

  double attention_dropout = 0;  ///< of the attention probabilities
  double residual_dropout = 0;   ///< of what a branch adds
  double embedding_dropout = 0;  ///< of what enters the first block

  [[nodiscard]] int64_t head_width() const { return head_dim != 0 ? head_dim : d_model / n_heads; }
  /// Entries of a head that turn.
  [[nodiscard]] int64_t rotary_dim() const {
    return static_cast<int64_t>(rotary_fraction * static_cast<double>(head_width()));
  }
  [[nodiscard]] int64_t expert_width() const { return d_expert != 0 ? d_expert : d_ff; }
  [[nodiscard]] bool is_sliding(int64_t layer) const;
  [[nodiscard]] bool has_rope(int64_t layer) const;
  [[nodiscard]] bool has_experts(int64_t layer) const;

  /// ValueError naming the first field, or pair of fields, out of its domain.
  void validate() const;
  [[nodiscard]] std::string to_json() const;
  /// Missing fields keep their defaults but for vocab_size, max_seq_len, n_layers, n_heads, n_kv_heads, d_model and d_ff;
  /// an unknown one is refused by name, since it could change the mathematics. FormatError or ValueError.
  static TransformerConfig from_json(const std::string& text);
  friend bool operator==(const TransformerConfig&, const TransformerConfig&) = default;
};

/// Width at which the feed-forward network of this config has the parameters of a plain one of width 4·d_model: that,
/// or gated_width(d_model, multiple).
int64_t feed_forward_width(const TransformerConfig& c, int64_t multiple = 64);
/// Layer i of n is full where (i + 1) mod k = 0, else sliding. ValueError unless both are positive.
std::vector<AttentionSpan> every_kth_full(int64_t n_layers, int64_t k);

}  // namespace tapestry
