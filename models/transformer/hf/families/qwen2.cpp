// Qwen 2 and 2.5: biases on q, k and v, which no field tells of. Yang et al. 2024.
// Next: qwen3.cpp.
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
  qwen_window_fields(f, c);
  f.must_be("use_mrope", "false", "rotary positions of pictures are not here");
  f.number("attention_dropout", c.attention_dropout, 0);
  f.flag("tie_word_embeddings", c.tied_embeddings, false);
  if (f.is_reading()) c.q_bias = c.k_bias = c.v_bias = true;
}

}  // namespace

const Family qwen2{.model_type = "qwen2",
                   .architecture = "Qwen2ForCausalLM",
                   .fields = fields,
                   .names = llama_names,
                   .ignored = rope_buffers};

}  // namespace tapestry::hf
