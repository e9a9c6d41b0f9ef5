// What a decoder-only Transformer is made of, in numbers; read from and written to JSON.
// Not how it is trained (../training/config.h).
// Next: block.h.
#pragma once

#include <cstdint>
#include <string>

namespace tapestry {

/// The seed architecture: pre-norm residual blocks of RMSNorm, causal attention with rotary positions, and SwiGLU; no biases.
struct TransformerConfig {
  int64_t vocab_size = 256;   ///< V
  int64_t max_seq_len = 256;  ///< longest T, the rows of the rotary table
  int64_t n_layers = 6;       ///< blocks
  int64_t n_heads = 6;        ///< H, query heads
  int64_t n_kv_heads = 6;     ///< key and value heads; divides n_heads (Ainslie et al. 2023)
  int64_t d_model = 384;      ///< D, width of the residual stream; n_heads divides it
  int64_t d_ff =
      1024;  ///< F, width of the gated feed-forward; gated_width(d_model) (nn/feed_forward.h) keeps the budget of a plain 4·D one
  double rope_theta = 10000.0;  ///< base of the rotary frequencies
  double norm_eps = 1e-5;       ///< added to the mean square inside the root

  [[nodiscard]] int64_t head_dim() const { return d_model / n_heads; }
  /// ValueError naming the first field out of its domain.
  void validate() const;
  [[nodiscard]] std::string to_json() const;
  /// Every field must be there; an unknown one is refused by name, since it could change the mathematics. FormatError.
  static TransformerConfig from_json(const std::string& text);
  friend bool operator==(const TransformerConfig&, const TransformerConfig&) = default;
};

}  // namespace tapestry
