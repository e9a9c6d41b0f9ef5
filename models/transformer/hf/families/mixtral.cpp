// Mixtral: Mistral with experts. Jiang et al. 2024.
// Next: qwen3_moe.cpp.
#include "../common_fields.h"
#include "../names.h"
#include "families.h"

namespace tapestry::hf {
namespace {

void fields(ConfigFields& f, TransformerConfig& c) {
  size_fields(f, c, {.norm_eps = 1e-5, .kv_heads_may_be_absent = false});
  head_dim_field(f, c);
  f.activation("hidden_act", c.activation, Activation::silu);
  rope_fields(f, c, 1e6);
  window_field(f, c);
  f.integer("num_local_experts", c.n_experts);
  f.integer("num_experts_per_tok", c.experts_per_token);
  f.harmless({"output_router_logits", "router_aux_loss_coef"});
  f.must_be("router_jitter_noise", "0.0", "routers are not disturbed here");
  f.number("attention_dropout", c.attention_dropout, 0);
  f.flag("tie_word_embeddings", c.tied_embeddings, false);
}

constexpr NameRow own_names[] = {
    {"layers.{}.feed_forward.router", "model.layers.{}.block_sparse_moe.gate"},
    {"layers.{}.feed_forward.experts.{}.gate_proj", "model.layers.{}.block_sparse_moe.experts.{}.w1"},
    {"layers.{}.feed_forward.experts.{}.up_proj", "model.layers.{}.block_sparse_moe.experts.{}.w3"},
    {"layers.{}.feed_forward.experts.{}.down_proj", "model.layers.{}.block_sparse_moe.experts.{}.w2"}};
constexpr std::span<const NameRow> names[] = {embedding_names, pre_norm_names, attention_names, own_names};

}  // namespace

const Family mixtral{.model_type = "mixtral",
                     .architecture = "MixtralForCausalLM",
                     .fields = fields,
                     .names = names,
                     .ignored = rope_buffers};

}  // namespace tapestry::hf
