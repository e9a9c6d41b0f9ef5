// OLMo 2: norms after each branch only, queries and keys normalised over the whole row. OLMo Team 2024.
// Next: phi3.cpp.
#include "../common_fields.h"
#include "../names.h"
#include "families.h"

namespace tapestry::hf {
namespace {

void fields(ConfigFields& f, TransformerConfig& c) {
  size_fields(f, c, {.norm_eps = 1e-5});
  head_dim_field(f, c);
  if (f.is_reading()) c.norm_placement = NormPlacement::non_residual_post, c.qk_norm = QkNorm::projection;
  f.activation("hidden_act", c.activation, Activation::silu);
  rope_fields(f, c, 10000);
  attention_bias_field(f, c);
  f.number("attention_dropout", c.attention_dropout, 0);
  f.flag("tie_word_embeddings", c.tied_embeddings, false);
}

constexpr NameRow own_names[] = {{"layers.{}.attention_post_norm", "model.layers.{}.post_attention_layernorm"},
                                 {"layers.{}.feed_forward_post_norm", "model.layers.{}.post_feedforward_layernorm"}};
constexpr std::span<const NameRow> names[] = {embedding_names, attention_names, qk_norm_names, feed_forward_names,
                                              own_names};

}  // namespace

const Family olmo2{.model_type = "olmo2",
                   .architecture = "Olmo2ForCausalLM",
                   .fields = fields,
                   .names = names,
                   .ignored = rope_buffers};

}  // namespace tapestry::hf
