// Golden ops of attention: rotary positions, the product, multi-head modules and blocks.
// Next: golden_model_ops.cpp.
#include <stdexcept>

#include "../models/transformer/block.h"
#include "golden_ops.h"

namespace tapestry::golden {
namespace {

RopeLayout layout(const Args& a) {
  return a.text(a.given("layout") ? "layout" : "rope_layout", "") == "half" ? RopeLayout::half : RopeLayout::adjacent;
}

/// One more than the last position.
int64_t n_positions(const Tensor& positions, int64_t otherwise) {
  return positions.defined() ? max(positions).item<int64_t>() + 1 : otherwise;
}

Tensor turned(const Args& a, const Tensor& x, const Tensor& positions) {
  const RopeTable table = rope_table(n_positions(positions, x.size(-2)), x.size(-1), a.number("theta", 0), a.dtype);
  return rope(x, table, positions, layout(a));
}

Tensor rope_scores(const Args& a, double shift) {
  const Tensor positions = a["pos"] + shift;
  return matmul(turned(a, a["q"], positions), mT(turned(a, a["k"], positions)));
}

/// True where the query may attend the key.
Tensor keep_mask(const Args& a) {
  if (a.has("masked")) return logical_not(a["masked"]);
  if (!a.given("window")) return a.find("keep");
  const int64_t queries = a["q"].size(-2), keys = a["k"].size(-2), window = a.integer("window", 0);
  const Tensor band = triu(tril(ones({queries, keys}), keys - queries), keys - queries - window + 1);
  return to(band, DType::boolean);
}

Tensor attend(const Args& a) {
  if (a.given("cap")) throw std::invalid_argument("attention with a soft cap");
  return scaled_dot_product_attention(
      a["q"], a["k"], a["v"],
      {.mask = keep_mask(a), .causal = a.flag("causal") && !a.given("window"), .scale = a.number("scale", 0)});
}

/// The projections of a module, from one matrix of q, k and v rows or from four.
std::map<std::string, Tensor> projections(const Args& a) {
  if (a.has("w_qkv")) {
    const Tensors rows = chunk(a["w_qkv"], 3);
    return {{"q_proj.weight", rows[0]},
            {"k_proj.weight", rows[1]},
            {"v_proj.weight", rows[2]},
            {"o_proj.weight", a["w_out"]}};
  }
  std::map<std::string, Tensor> values;
  for (const char* p : {"q", "k", "v", "o"}) {
    const std::string name = p;
    values[name + "_proj.weight"] = a["w" + name];
    if (a.has("b" + name)) values[name + "_proj.bias"] = a["b" + name];
  }
  return values;
}

MultiHeadAttention attention_module(const Args& a) {
  const MultiHeadAttentionOptions options{.n_heads = a.integer("heads", 1),
                                          .n_kv_heads = a.integer("kv_heads", 0),
                                          .head_dim = a.integer("head_dim", 0),
                                          .q_bias = a.has("bq"),
                                          .k_bias = a.has("bk"),
                                          .v_bias = a.has("bv"),
                                          .o_bias = a.has("bo")};
  return bound(MultiHeadAttention(a["x"].size(-1), options), projections(a));
}

Tensor multi_head(const Args& a) { return attention_module(a)(a["x"], AttentionArgs{.causal = a.flag("causal")}); }

Tensor multi_head_rope(const Args& a) {
  const Tensor &x = a["x"], positions = a.find("pos");
  const RotaryEmbedding rotary(x.size(-1) / a.integer("heads", 1), n_positions(positions, x.size(-2)),
                               RotaryOptions{.theta = a.number("theta", 0), .layout = layout(a)});
  return attention_module(a)(
      x, AttentionArgs{.mask = keep_mask(a), .causal = a.flag("causal"), .rope = &rotary, .positions = positions});
}

/// Attention of a block on h, with rotary positions unless the block is one of the older kinds.
Tensor branch(const Args& a, const Tensor& h, bool rotary = true) {
  const RotaryEmbedding turn(h.size(-1) / a.integer("heads", 1), h.size(-2),
                             RotaryOptions{.theta = a.number("theta", 0)});
  return attention_module(a)(h, AttentionArgs{.causal = true, .rope = rotary ? &turn : nullptr});
}
Tensor gated(const Args& a, const Tensor& h) { return linear(swiglu(linear(h, a["w1"]), linear(h, a["w3"])), a["w2"]); }
Tensor plain(const Args& a, const Tensor& h) { return linear(gelu(linear(h, a["w1"], a["b1"])), a["w2"], a["b2"]); }
Tensor rms(const Args& a, const Tensor& h, const char* gain) { return rms_norm(h, a[gain], a.number("eps", 0)); }
Tensor centred(const Args& a, const Tensor& h, const char* gain, const char* bias) {
  return layer_norm(h, a[gain], a[bias], a.number("eps", 0));
}

Tensor pre_norm_block(const Args& a) {
  const Tensor& x = a["x"];
  const TransformerConfig config{.max_seq_len = x.size(1),
                                 .n_layers = 1,
                                 .n_heads = a.integer("heads", 1),
                                 .n_kv_heads = a.integer("heads", 1),
                                 .d_model = x.size(2),
                                 .d_ff = a["w1"].size(0),
                                 .norm_eps = a.number("eps", 0),
                                 .rope_theta = a.number("theta", 0)};
  std::map<std::string, Tensor> values{{"attention_norm.weight", a["g1"]},
                                       {"feed_forward_norm.weight", a["g2"]},
                                       {"feed_forward.gate_proj.weight", a["w1"]},
                                       {"feed_forward.up_proj.weight", a["w3"]},
                                       {"feed_forward.down_proj.weight", a["w2"]}};
  for (const auto& [name, value] : projections(a)) values["attention." + name] = value;
  const RotaryEmbedding rotary(config.head_width(), x.size(1), RotaryOptions{.theta = config.rope_theta});
  return bound(TransformerBlock(config), values)(x, BlockArgs{.rope = &rotary});
}

constexpr Op rows[] = {
    {"rope", [](const Args& a) { return turned(a, a["x"], a.find("pos")); }},
    {"rope: rope(x)^2", [](const Args& a) { return square(turned(a, a["x"], {})); }},
    {"rope_relative",
     [](const Args& a) {
       return Outputs{{"scores", rope_scores(a, 0)}, {"scores_shifted", rope_scores(a, a.number("shift", 0))}};
     }},
    {"rope_norm", [](const Args& a) { return sum(square(turned(a, a["x"], a["pos"])), {-1}); }},
    {"sdpa", attend},
    {"gqa_sdpa", attend},
    {"attention", attend},
    {"gqa_attention", [](const Args& a) { return attention_module(a)(a["x"], AttentionArgs{.causal = true}); }},
    {"mha", multi_head},
    {"mha_rope", multi_head_rope},
    {"mha_rope_seed002", multi_head_rope},
    {"self_attention_permutation",
     [](const Args& a) {
       const MultiHeadAttention attention = attention_module(a);
       return Outputs{{"y", attention(a["x"])}, {"y_perm", attention(index_select(a["x"], 1, a["perm"]))}};
     }},
    {"block_pre_norm", pre_norm_block},
    {"block_post_norm",
     [](const Args& a) {
       const Tensor z = centred(a, a["x"] + branch(a, a["x"], false), "g1", "c1");
       return centred(a, z + plain(a, z), "g2", "c2");
     }},
    {"block_pre_norm_ln",
     [](const Args& a) {
       const Tensor z = a["x"] + branch(a, centred(a, a["x"], "g1", "c1"), false);
       return z + plain(a, centred(a, z, "g2", "c2"));
     }},
    {"block_double_norm",
     [](const Args& a) {
       const Tensor z = a["x"] + rms(a, branch(a, rms(a, a["x"], "g1")), "g1p");
       return z + rms(a, gated(a, rms(a, z, "g2")), "g2p");
     }},
    {"block_nonresidual_post_norm",
     [](const Args& a) {
       const Tensor z = a["x"] + rms(a, branch(a, a["x"]), "g1p");
       return z + rms(a, gated(a, z), "g2p");
     }},
};

}  // namespace

std::span<const Op> attention_ops() { return rows; }

}  // namespace tapestry::golden
