// Phi-3: Llama with fused projections, and heads that may turn in part. Abdin et al. 2024.
// Next: smollm3.cpp.
#include "../common_fields.h"
#include "../names.h"
#include "families.h"

namespace tapestry::hf {
namespace {

/// Scaled frequencies are longrope here, whatever the file calls them, and that is not among the rules.
void unscaled_rope_fields(ConfigFields& f, TransformerConfig& c) {
  f.number("partial_rotary_factor", c.rotary_fraction, 1);
  f.number("rope_theta", c.rope_theta, 10000);
  if (!f.is_reading()) return f.put("rope_scaling", "null");
  for (const char* name : {"rope_scaling", "rope_parameters"}) {
    auto o = f.object(name);
    if (!o) continue;
    const double theta = c.rope_theta, fraction = c.rotary_fraction;
    o->number("partial_rotary_factor", c.rotary_fraction, fraction);
    read_rope_object(*o, c, c.rope_theta, c.rope_scaling);
    if (c.rope_scaling.rule != RopeScalingRule::none) f.refuse(name, "scaled frequencies of phi3 are not here");
    if ((f.given("rope_theta") && c.rope_theta != theta) ||
        (f.given("partial_rotary_factor") && c.rotary_fraction != fraction))
      f.refuse(name, "but rope_theta and partial_rotary_factor say something else");
  }
}

void fields(ConfigFields& f, TransformerConfig& c) {
  size_fields(f, c, {.norm_eps = 1e-5});
  head_dim_field(f, c);
  if (f.is_reading()) c.fused_qkv = c.fused_gate_up = true;
  f.activation("hidden_act", c.activation, Activation::silu);
  unscaled_rope_fields(f, c);
  f.harmless({"original_max_position_embeddings"});  // of scaled frequencies alone
  window_field(f, c);
  f.must_be("attention_bias", "false", "no projection of this family has one");
  f.number("embd_pdrop", c.embedding_dropout, 0);
  f.number("resid_pdrop", c.residual_dropout, 0);
  f.number("attention_dropout", c.attention_dropout, 0);
  f.flag("tie_word_embeddings", c.tied_embeddings, false);
}

constexpr NameRow own_names[] = {{"layers.{}.attention.q_proj", "model.layers.{}.self_attn.qkv_proj"},
                                 {"layers.{}.attention.k_proj", "model.layers.{}.self_attn.qkv_proj"},
                                 {"layers.{}.attention.v_proj", "model.layers.{}.self_attn.qkv_proj"},
                                 {"layers.{}.attention.o_proj", "model.layers.{}.self_attn.o_proj"},
                                 {"layers.{}.feed_forward.gate_proj", "model.layers.{}.mlp.gate_up_proj"},
                                 {"layers.{}.feed_forward.up_proj", "model.layers.{}.mlp.gate_up_proj"},
                                 {"layers.{}.feed_forward.down_proj", "model.layers.{}.mlp.down_proj"}};
constexpr std::span<const NameRow> names[] = {embedding_names, pre_norm_names, own_names};

}  // namespace

const Family phi3{
    .model_type = "phi3", .architecture = "Phi3ForCausalLM", .fields = fields, .names = names, .ignored = rope_buffers};

}  // namespace tapestry::hf
