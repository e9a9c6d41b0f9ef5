// Llama 2 and 3, and what shares their architecture (SmolLM, TinyLlama). Touvron et al. 2023; Grattafiori et al. 2024.
// Next: qwen3.cpp.
#include "../common_fields.h"
#include "../names.h"
#include "families.h"

namespace tapestry::hf {
namespace {

void fields(ConfigFields& f, TransformerConfig& c) {
  size_fields(f, c, {.norm_eps = 1e-6});
  head_dim_field(f, c);
  f.activation("hidden_act", c.activation, Activation::silu);
  rope_fields(f, c, 10000);
  attention_bias_field(f, c);
  mlp_bias_field(f, c);
  f.number("attention_dropout", c.attention_dropout, 0);
  f.flag("tie_word_embeddings", c.tied_embeddings, false);
  f.harmless({"is_llama_config"});
  f.must_be("rope_interleaved", "false", "published weights are in the half layout");
  f.must_be("partial_rotary_factor", "1.0", "heads of this family turn whole");
}

}  // namespace

const Family llama{.model_type = "llama",
                   .architecture = "LlamaForCausalLM",
                   .fields = fields,
                   .names = llama_names,
                   .ignored = rope_buffers};

}  // namespace tapestry::hf
