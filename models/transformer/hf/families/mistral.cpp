// Mistral: Llama with a window in every layer. Jiang et al. 2023.
// Next: mixtral.cpp.
#include "../common_fields.h"
#include "../names.h"
#include "families.h"

namespace tapestry::hf {
namespace {

void fields(ConfigFields& f, TransformerConfig& c) {
  size_fields(f, c, {.norm_eps = 1e-6, .kv_heads_may_be_absent = false});
  head_dim_field(f, c);
  f.activation("hidden_act", c.activation, Activation::silu);
  rope_fields(f, c, 10000);
  window_field(f, c);
  if (f.is_reading() && !f.present("sliding_window")) c.window = 4096;
  f.number("attention_dropout", c.attention_dropout, 0);
  f.flag("tie_word_embeddings", c.tied_embeddings, false);
}

}  // namespace

const Family mistral{.model_type = "mistral",
                     .architecture = "MistralForCausalLM",
                     .fields = fields,
                     .names = llama_names,
                     .ignored = rope_buffers};

}  // namespace tapestry::hf
