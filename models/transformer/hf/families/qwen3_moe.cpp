// Qwen 3 with experts. Yang et al. 2025.
// Next: minimind.cpp.
#include <algorithm>

#include "../common_fields.h"
#include "../names.h"
#include "families.h"

namespace tapestry::hf {
namespace {

/// A layer has experts unless it is listed, and where decoder_sparse_step divides its number counted from 1.
void expert_layer_fields(ConfigFields& f, TransformerConfig& c) {
  std::vector<int64_t> plain;
  int64_t step = 1;
  if (!f.is_reading())
    for (int64_t i = 0; i < c.n_layers; ++i)
      if (!c.has_experts(i)) plain.push_back(i);
  f.integers("mlp_only_layers", plain);
  f.integer("decoder_sparse_step", step, 1);
  if (!f.is_reading()) return;
  if (step < 1) f.refuse("decoder_sparse_step", "it must be at least 1");
  for (int64_t i = 0; i < c.n_layers; ++i)
    c.expert_layers.push_back((i + 1) % step == 0 && std::find(plain.begin(), plain.end(), i) == plain.end());
}

void fields(ConfigFields& f, TransformerConfig& c) {
  size_fields(f, c, {.norm_eps = 1e-6, .kv_heads_may_be_absent = false});
  head_dim_field(f, c);
  if (f.is_reading()) c.qk_norm = QkNorm::head;
  f.activation("hidden_act", c.activation, Activation::silu);
  rope_fields(f, c, 10000);
  qwen_window_fields(f, c);
  attention_bias_field(f, c);
  expert_fields(f, c, /*absent_normalise=*/false);
  expert_layer_fields(f, c);
  f.number("attention_dropout", c.attention_dropout, 0);
  f.flag("tie_word_embeddings", c.tied_embeddings, false);
}

}  // namespace

const Family qwen3_moe{.model_type = "qwen3_moe",
                       .architecture = "Qwen3MoeForCausalLM",
                       .fields = fields,
                       .names = qwen3_moe_names,
                       .ignored = rope_buffers};

}  // namespace tapestry::hf
