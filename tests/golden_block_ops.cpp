// Golden ops of the Transformer's parts as its configuration makes them: blocks with every placement of norms, QK norm,
// the two rotary layouts of one projection, adapters.
// Next: golden_model_ops.cpp.
#include "../models/transformer/block.h"
#include "../nn/linear.h"
#include "golden_ops.h"

namespace tapestry::golden {
namespace {

using Weights = std::map<std::string, Tensor>;

/// Adds a[from] to `to` under a name, if the case has it.
void put(Weights& to, const std::string& name, const Args& a, const char* from) {
  if (a.has(from)) to[name] = a[from];
}

Tensor block(const Args& a, NormPlacement placement, NormKind kind, bool rotary, bool gated) {
  const Tensor& x = a["x"];
  const int64_t heads = a.integer("heads", 1);
  const TransformerConfig config{.max_seq_len = x.size(1),
                                 .n_layers = 1,
                                 .n_heads = heads,
                                 .n_kv_heads = heads,
                                 .d_model = x.size(2),
                                 .d_ff = a["w1"].size(0),
                                 .norm_placement = placement,
                                 .norm_kind = kind,
                                 .norm_eps = a.number("eps", 0),
                                 .activation = gated ? Activation::silu : Activation::gelu,
                                 .gated = gated,
                                 .up_bias = !gated,
                                 .down_bias = !gated};
  Weights w;
  for (const auto& [name, value] : attention_projections(a)) w["attention." + name] = value;
  put(w, "attention_norm.weight", a, "g1"), put(w, "attention_norm.bias", a, "c1");
  put(w, "feed_forward_norm.weight", a, "g2"), put(w, "feed_forward_norm.bias", a, "c2");
  put(w, "attention_post_norm.weight", a, "g1p"), put(w, "feed_forward_post_norm.weight", a, "g2p");
  w[gated ? "feed_forward.gate_proj.weight" : "feed_forward.up_proj.weight"] = a["w1"];
  put(w, "feed_forward.up_proj.weight", a, "w3"), put(w, "feed_forward.up_proj.bias", a, "b1");
  w["feed_forward.down_proj.weight"] = a["w2"], put(w, "feed_forward.down_proj.bias", a, "b2");
  const RotaryEmbedding rope(config.head_width(), x.size(1), RotaryOptions{.theta = a.number("theta", 0)});
  return bound(TransformerBlock(config), w)(x, BlockArgs{.rope = rotary ? &rope : nullptr});
}

Tensor qk_norm(const Args& a) {
  const Tensor& x = a["x"];
  const std::string kind = a.text("kind", "");
  Weights w = attention_projections(a);
  w["q_norm.weight"] = a["qn"], w["k_norm.weight"] = a["kn"];
  const MultiHeadAttention attention = bound(
      MultiHeadAttention(
          x.size(-1),
          MultiHeadAttentionOptions{.n_heads = a.integer("heads", 1),
                                    .n_kv_heads = a.integer("kv_heads", 0),
                                    .head_dim = a.integer("head_dim", 0),
                                    .qk_norm = QkNorm::head,
                                    .qk_norm_kind = kind.starts_with("layer") ? NormKind::layer_no_bias : NormKind::rms,
                                    .qk_norm_eps = a.number("eps", 0)}),
      w);
  const RotaryEmbedding rope(a.integer("head_dim", 0), x.size(-2),
                             RotaryOptions{.theta = a.number("theta", 0), .layout = RopeLayout::half});
  return attention(x, AttentionArgs{.causal = true, .rope = kind.ends_with("no_rope") ? nullptr : &rope});
}

/// Scores of two heads from the same weights in either layout; the reordering must be the stored one.
Outputs rope_layout_conversion(const Args& a) {
  const int64_t heads = a.integer("heads", 1), dh = a.integer("head_dim", 0);
  const Tensor& x = a["x"];
  const auto scores = [&](const Tensor& wq, const Tensor& wk, RopeLayout layout) {
    const RotaryEmbedding rope(dh, max(a["pos"]).item<int64_t>() + 1,
                               RotaryOptions{.theta = a.number("theta", 0), .layout = layout});
    const auto turned = [&](const Tensor& w) {
      const Tensor rows = linear(x, w);
      return rope(transpose(reshape(rows, {x.size(0), x.size(1), heads, dh}), 1, 2), a["pos"]);
    };
    return matmul(turned(wq), mT(turned(wk)));
  };
  const auto half = [&](const Tensor& w) { return to_rope_layout(w, RopeLayout::half, dh, dh); };
  const auto back = [&](const Tensor& w) { return to_rope_layout(half(w), RopeLayout::adjacent, dh, dh); };
  return {{"scores_adjacent", scores(back(a["wq"]), back(a["wk"]), RopeLayout::adjacent)},
          {"scores_half", scores(half(a["wq"]), half(a["wk"]), RopeLayout::half)}};
}

Tensor lora_linear(const Args& a) {
  const Tensor& w = a["w"];
  Linear layer(w.size(1), w.size(0), LinearOptions{.bias = false});
  layer.adapter = LowRankAdapter{
      .a = Parameter(a["a"]), .b = Parameter(a["b"]), .scale = a.number("alpha", 0) / a.number("r", 1), .unmerged = {}};
  return bound(layer, {{"weight", w}, {"lora_A.weight", a["a"]}, {"lora_B.weight", a["b"]}})(a["x"]);
}

constexpr Op rows[] = {
    {"block_pre_norm", [](const Args& a) { return block(a, NormPlacement::pre, NormKind::rms, true, true); }},
    {"block_post_norm", [](const Args& a) { return block(a, NormPlacement::post, NormKind::layer, false, false); }},
    {"block_pre_norm_ln", [](const Args& a) { return block(a, NormPlacement::pre, NormKind::layer, false, false); }},
    {"block_double_norm",
     [](const Args& a) { return block(a, NormPlacement::double_norm, NormKind::rms, true, true); }},
    {"block_nonresidual_post_norm",
     [](const Args& a) { return block(a, NormPlacement::non_residual_post, NormKind::rms, true, true); }},
    {"qk_norm", qk_norm},
    {"rope_layout_conversion", rope_layout_conversion},
    {"lora_linear", lora_linear},
};

}  // namespace

std::span<const Op> block_ops() { return rows; }

}  // namespace tapestry::golden
