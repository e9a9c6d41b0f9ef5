// MiniMind: Qwen 3 without windows, with or without experts.
// Next: ../folder.h.
#include "../common_fields.h"
#include "../names.h"
#include "families.h"

namespace tapestry::hf {
namespace {

/// What inference_rope_scaling stands for: four words for 32,768 positions from 2,048.
constexpr RopeScaling long_context{
    .rule = RopeScalingRule::yarn, .factor = 16, .original_max_seq_len = 2048, .attention_factor = 1};

void scaling_fields(ConfigFields& f, TransformerConfig& c) {
  bool scaled = c.rope_scaling == long_context;
  f.number("rope_theta", c.rope_theta, 1e6);
  f.flag("inference_rope_scaling", scaled, false);
  if (!f.is_reading()) return f.put("rope_scaling", "null");
  if (scaled) c.rope_scaling = long_context;
  auto o = f.object("rope_scaling");
  if (!o) return;
  RopeScaling stated;
  read_rope_object(*o, c, c.rope_theta, stated);
  if (!(stated == c.rope_scaling)) f.refuse("rope_scaling", "inference_rope_scaling alone decides here");
}

void fields(ConfigFields& f, TransformerConfig& c) {
  size_fields(f, c, {.norm_eps = 1e-5, .kv_heads_may_be_absent = false});
  head_dim_field(f, c);
  if (f.is_reading()) c.qk_norm = QkNorm::head;
  f.activation("hidden_act", c.activation, Activation::silu);
  scaling_fields(f, c);
  double dropout = c.residual_dropout;
  f.number("dropout", dropout, 0);
  if (f.is_reading()) c.attention_dropout = c.residual_dropout = c.embedding_dropout = dropout;
  f.flag("tie_word_embeddings", c.tied_embeddings, true);
  bool experts = c.n_experts > 0;
  f.flag("use_moe", experts, false);
  if (experts)
    expert_fields(f, c, /*absent_normalise=*/true);
  else
    f.harmless(
        {"num_experts", "num_experts_per_tok", "moe_intermediate_size", "norm_topk_prob", "router_aux_loss_coef"});
  f.harmless({"flash_attn"});
}

}  // namespace

const Family minimind{.model_type = "minimind",
                      .architecture = "MiniMindForCausalLM",
                      .fields = fields,
                      .names = qwen3_moe_names,
                      .ignored = rope_buffers};

}  // namespace tapestry::hf
