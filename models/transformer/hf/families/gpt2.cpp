// GPT-2: LayerNorm, learned positions, biases everywhere, weights stored (in, out). Radford et al. 2019.
// Next: cs336.cpp.
#include "families.h"

namespace tapestry::hf {
namespace {

void fields(ConfigFields& f, TransformerConfig& c) {
  f.size("vocab_size", c.vocab_size);
  f.size("n_positions", c.max_seq_len);
  f.size("n_embd", c.d_model);
  f.size("n_layer", c.n_layers);
  f.size("n_head", c.n_heads);
  f.integer("n_inner", c.d_ff, 4 * c.d_model);
  f.activation("activation_function", c.activation, Activation::gelu_tanh, /*gpt2_names=*/true);
  f.number("layer_norm_epsilon", c.norm_eps, 1e-5);
  f.number("resid_pdrop", c.residual_dropout, 0.1);
  f.number("embd_pdrop", c.embedding_dropout, 0.1);
  f.number("attn_pdrop", c.attention_dropout, 0.1);
  bool scaled = c.attention_scale == 0;
  f.flag("scale_attn_weights", scaled, true);
  f.flag("tie_word_embeddings", c.tied_embeddings, true);
  f.must_be("scale_attn_by_inverse_layer_idx", "false", "all layers scale their scores alike here");
  f.harmless({"n_ctx", "reorder_and_upcast_attn", "summary_type", "summary_use_proj", "summary_activation",
              "summary_proj_to_labels", "summary_first_dropout"});
  if (!f.is_reading()) return;
  c.attention_scale = scaled ? 0 : 1;
  c.n_kv_heads = c.n_heads;
  c.norm_kind = NormKind::layer;
  c.positions = Positions::learned;
  c.gated = false;
  c.fused_qkv = true;
  c.q_bias = c.k_bias = c.v_bias = c.o_bias = c.up_bias = c.down_bias = true;
}

constexpr NameRow own_names[] = {{"token_embedding", "transformer.wte"},
                                 {"position_embedding", "transformer.wpe"},
                                 {"layers.{}.attention_norm", "transformer.h.{}.ln_1"},
                                 {"layers.{}.attention.q_proj", "transformer.h.{}.attn.c_attn", true},
                                 {"layers.{}.attention.k_proj", "transformer.h.{}.attn.c_attn", true},
                                 {"layers.{}.attention.v_proj", "transformer.h.{}.attn.c_attn", true},
                                 {"layers.{}.attention.o_proj", "transformer.h.{}.attn.c_proj", true},
                                 {"layers.{}.feed_forward_norm", "transformer.h.{}.ln_2"},
                                 {"layers.{}.feed_forward.up_proj", "transformer.h.{}.mlp.c_fc", true},
                                 {"layers.{}.feed_forward.down_proj", "transformer.h.{}.mlp.c_proj", true},
                                 {"norm", "transformer.ln_f"},
                                 {"lm_head", "lm_head"}};
constexpr std::span<const NameRow> names[] = {own_names};
constexpr std::string_view masks[] = {"transformer.h.{}.attn.bias", "transformer.h.{}.attn.masked_bias"};

}  // namespace

const Family gpt2{.model_type = "gpt2",
                  .architecture = "GPT2LMHeadModel",
                  .fields = fields,
                  .names = names,
                  .prefix = "transformer.",
                  .ignored = masks};

}  // namespace tapestry::hf
