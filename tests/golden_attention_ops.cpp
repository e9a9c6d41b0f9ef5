// Golden ops of attention: rotary positions, the product, multi-head modules.
// Next: golden_block_ops.cpp.
#include "../nn/attention.h"
#include "../nn/rope.h"
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
Tensor keep_mask(const Args& a) { return a.has("masked") ? logical_not(a["masked"]) : a.find("keep"); }

Tensor attend(const Args& a) {
  return scaled_dot_product_attention(a["q"], a["k"], a["v"],
                                      {.mask = keep_mask(a),
                                       .causal = a.flag("causal") || a.given("window"),
                                       .scale = a.number("scale", 0),
                                       .window = a.integer("window", 0),
                                       .soft_cap = a.number("cap", 0)});
}

Outputs sliding_window(const Args& a) {
  const int64_t queries = a["q"].size(-2), keys = a["k"].size(-2), late = a.integer("q_offset", 0);
  const Tensor band = triu(tril(ones({queries, keys}), late), late - a.integer("window", 0) + 1);
  return {{"y", attend(a)}, {"masked", logical_not(to(band, DType::boolean))}};
}

RopeScaling rope_scaling(const Args& a) {
  const std::string type = a.text("rope_type", "default");
  RopeScaling s{.factor = a.number("factor", 1),
                .original_max_seq_len = a.integer("original_max_position_embeddings", 0),
                .low_freq_factor = a.number("low_freq_factor", 1),
                .high_freq_factor = a.number("high_freq_factor", 4),
                .beta_fast = a.number("beta_fast", 32),
                .beta_slow = a.number("beta_slow", 1),
                .truncate = !a.given("truncate") || a.flag("truncate")};
  using enum RopeScalingRule;
  for (const RopeScalingRule rule : {linear, ntk, dynamic, yarn, yarn_simple, llama3})
    if (type == name_of(rule)) s.rule = rule;
  if (s.rule == dynamic) s.original_max_seq_len = a.integer("max_position_embeddings", 0);
  if (s.rule == yarn_simple) {
    s.original_max_seq_len = a.integer("train_len", 0);
    s.factor = a.number("target_len", 0) / a.number("train_len", 1);
  }
  return s;
}

Outputs scaled_rope(const Args& a) {
  const Tensor &x = a["x"], &positions = a["pos"];
  const RopeFrequencies frequencies =
      rope_frequencies(a.integer("dim", 0), a.number("theta", 0), rope_scaling(a), a.integer("seq_len", 0));
  const RopeTable table =
      rope_table(n_positions(positions, x.size(-2)), frequencies.values, frequencies.factor, a.dtype);
  return {{"inv_freq", from(frequencies.values)},
          {"y_adjacent", rope(x, table, positions, RopeLayout::adjacent)},
          {"y_half", rope(x, table, positions, RopeLayout::half)}};
}

MultiHeadAttention attention_module(const Args& a) {
  const MultiHeadAttentionOptions options{.n_heads = a.integer("heads", 1),
                                          .n_kv_heads = a.integer("kv_heads", 0),
                                          .head_dim = a.integer("head_dim", 0),
                                          .q_bias = a.has("bq"),
                                          .k_bias = a.has("bk"),
                                          .v_bias = a.has("bv"),
                                          .o_bias = a.has("bo")};
  return bound(MultiHeadAttention(a["x"].size(-1), options), attention_projections(a));
}

Tensor multi_head(const Args& a) { return attention_module(a)(a["x"], AttentionArgs{.causal = a.flag("causal")}); }

Tensor multi_head_rope(const Args& a) {
  const Tensor &x = a["x"], positions = a.find("pos");
  const RotaryEmbedding rotary(x.size(-1) / a.integer("heads", 1), n_positions(positions, x.size(-2)),
                               RotaryOptions{.theta = a.number("theta", 0), .layout = layout(a)});
  return attention_module(a)(
      x, AttentionArgs{.mask = keep_mask(a), .causal = a.flag("causal"), .rope = &rotary, .positions = positions});
}

constexpr Op rows[] = {
    {"rope", [](const Args& a) { return turned(a, a["x"], a.find("pos")); }},
    {"rope: rope(x)^2", [](const Args& a) { return square(turned(a, a["x"], {})); }},
    {"rope_relative",
     [](const Args& a) {
       return Outputs{{"scores", rope_scores(a, 0)}, {"scores_shifted", rope_scores(a, a.number("shift", 0))}};
     }},
    {"rope_norm", [](const Args& a) { return sum(square(turned(a, a["x"], a["pos"])), {-1}); }},
    {"rope_scaling", scaled_rope},
    {"sliding_window", sliding_window},
    {"capped_attention",
     [](const Args& a) {
       return scaled_dot_product_attention(a["q"], a["k"], a["v"], {.causal = true, .soft_cap = a.number("cap", 0)});
     }},
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
};

}  // namespace

std::span<const Op> attention_ops() { return rows; }

std::map<std::string, Tensor> attention_projections(const Args& a) {
  if (a.has("w_qkv")) {
    const Tensors parts = chunk(a["w_qkv"], 3);
    return {{"q_proj.weight", parts[0]},
            {"k_proj.weight", parts[1]},
            {"v_proj.weight", parts[2]},
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

}  // namespace tapestry::golden
