// The model of Stanford's course CS336, under the course's names: adjacent rotary pairs, SwiGLU, RMSNorm.
// Next: ../folder.h.
#include "families.h"

namespace tapestry::hf {
namespace {

void fields(ConfigFields& f, TransformerConfig& c) {
  f.size("vocab_size", c.vocab_size);
  f.size("context_length", c.max_seq_len);
  f.size("d_model", c.d_model);
  f.size("num_layers", c.n_layers);
  f.size("num_heads", c.n_heads);
  f.size("d_ff", c.d_ff);
  f.number("rope_theta", c.rope_theta, 10000);
  bool post = c.norm_placement == NormPlacement::post, no_rope = c.positions == Positions::none;
  f.flag("use_post_norm", post, false);
  f.flag("remove_rope", no_rope, false);
  f.must_be("remove_rmsnorm", "false", "blocks without norms are not here");
  f.must_be("ffn_type", "null", "it is SwiGLU here");
  if (!f.is_reading()) return;
  c.n_kv_heads = c.n_heads;
  if (post) c.norm_placement = NormPlacement::post;
  if (no_rope) c.positions = Positions::none;
}

constexpr NameRow own_names[] = {{"token_embedding", "token_embeddings"},
                                 {"layers.{}.attention_norm", "layers.{}.ln1"},
                                 {"layers.{}.attention.q_proj", "layers.{}.attn.q_proj"},
                                 {"layers.{}.attention.k_proj", "layers.{}.attn.k_proj"},
                                 {"layers.{}.attention.v_proj", "layers.{}.attn.v_proj"},
                                 {"layers.{}.attention.o_proj", "layers.{}.attn.output_proj"},
                                 {"layers.{}.feed_forward_norm", "layers.{}.ln2"},
                                 {"layers.{}.feed_forward.gate_proj", "layers.{}.ffn.w1"},
                                 {"layers.{}.feed_forward.up_proj", "layers.{}.ffn.w3"},
                                 {"layers.{}.feed_forward.down_proj", "layers.{}.ffn.w2"},
                                 {"norm", "ln_final"},
                                 {"lm_head", "lm_head"}};
constexpr std::span<const NameRow> names[] = {own_names};

}  // namespace

const Family cs336{.model_type = "cs336",
                   .architecture = "",
                   .fields = fields,
                   .names = names,
                   .prefix = "",
                   .rope_layout = RopeLayout::adjacent};

}  // namespace tapestry::hf
