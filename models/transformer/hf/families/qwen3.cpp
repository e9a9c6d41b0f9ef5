// Qwen 3: queries and keys normalised per head. Yang et al. 2025.
// Next: qwen3_moe.cpp.
#include "../common_fields.h"
#include "../names.h"
#include "families.h"

namespace tapestry::hf {
namespace {

void fields(ConfigFields& f, TransformerConfig& c) {
  size_fields(f, c, {.norm_eps = 1e-6, .kv_heads_may_be_absent = false});
  head_dim_field(f, c, /*needed=*/true);
  if (f.is_reading()) c.qk_norm = QkNorm::head;
  f.activation("hidden_act", c.activation, Activation::silu);
  rope_fields(f, c, 10000);
  qwen_window_fields(f, c);
  attention_bias_field(f, c);
  f.number("attention_dropout", c.attention_dropout, 0);
  f.flag("tie_word_embeddings", c.tied_embeddings, false);
}

}  // namespace

const Family qwen3{.model_type = "qwen3",
                   .architecture = "Qwen3ForCausalLM",
                   .fields = fields,
                   .names = qwen3_names,
                   .ignored = rope_buffers};

}  // namespace tapestry::hf
