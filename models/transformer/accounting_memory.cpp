// Products of sizes. Next: accounting_peak.cpp.
#include "accounting_memory.h"

#include <algorithm>

#include "accounting_flops.h"
#include "accounting_parameters.h"

namespace tapestry {
namespace {

/// Keys and values that layer i holds of a sequence.
int64_t slots(const TransformerConfig& c, int64_t layer, int64_t tokens) {
  return c.is_sliding(layer) ? std::min(c.window, tokens) : tokens;
}

/// Bytes of the keys and values of one token in one layer.
int64_t pair_bytes(const TransformerConfig& c, DType dtype) {
  return 2 * c.n_kv_heads * c.head_width() * static_cast<int64_t>(size_of(dtype));
}

/// Width of all the networks one token goes through, all layers together.
int64_t width_per_token(const TransformerConfig& c) {
  int64_t width = 0;
  for (int64_t i = 0; i < c.n_layers; ++i)
    width += c.has_experts(i) ? (c.experts_per_token + c.n_shared_experts) * c.expert_width() : c.d_ff;
  return width;
}

}  // namespace

int64_t kv_cache_bytes(const TransformerConfig& c, int64_t rows, int64_t tokens, DType dtype) {
  check_countable(c, rows, tokens);
  int64_t all = 0;
  for (int64_t i = 0; i < c.n_layers; ++i) all += slots(c, i, tokens);
  return rows * all * pair_bytes(c, dtype);
}

int64_t kv_cache_bytes_per_token(const TransformerConfig& c, DType dtype) { return c.n_layers * pair_bytes(c, dtype); }

DecodeCost decode_cost(const TransformerConfig& c, int64_t rows, int64_t length, DType weights, DType cache) {
  const ParameterTable p = parameter_table(c);
  int64_t elements = p.final_norm + (c.tied_embeddings ? p.token_embedding : p.lm_head);
  elements += rows * c.d_model * (c.positions == Positions::learned ? 2 : 1);
  for (const LayerParameters& layer : p.layers)
    elements += layer.total() - layer.experts + std::min(layer.experts, rows * layer.experts_per_token);
  return {.weight_bytes = elements * static_cast<int64_t>(size_of(weights)),
          .cache_bytes = kv_cache_bytes(c, rows, length, cache),
          .flops = decode_flop_table(c, rows, length).forward_pass()};
}

int64_t optimizer_bytes(const TransformerConfig& c) {
  return 2 * parameter_table(c).total() * static_cast<int64_t>(sizeof(float));
}

int64_t ActivationList::elements() const {
  int64_t sum = 0;
  for (const ActivationRow& row : rows) sum += row.elements;
  return sum;
}

ActivationList activation_list(const TransformerConfig& c, int64_t rows, int64_t length) {
  check_countable(c, rows, length);
  const int64_t n = rows * length, each = c.n_layers * n, dh = c.head_width(), scores = each * c.n_heads * length;
  const int64_t norms = c.norm_placement == NormPlacement::double_norm ? 4 : 2;
  return {{{"norms", norms * each * c.d_model},
           {"qkv", each * (c.n_heads + 2 * c.n_kv_heads) * dh},
           {"scores", scores},
           {"softmax", scores},
           {"values", each * c.n_heads * dh},
           {"out_proj", each * c.d_model},
           {"ffn_hidden", (c.gated ? 4 : 2) * n * width_per_token(c)},
           {"ffn_out", each * c.d_model},
           {"final_norm", c.final_norm ? n * c.d_model : 0},
           {"logits", n * c.vocab_size},
           {"cross_entropy", n * c.vocab_size}}};
}

}  // namespace tapestry
