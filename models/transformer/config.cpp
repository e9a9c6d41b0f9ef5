// Checking the fields against each other, with messages that name them. Next: config_json.cpp.
#include "config.h"

#include <cmath>

#include "../../autograd/error.h"
#include "../../nn/feed_forward.h"

namespace tapestry {
namespace {

constexpr int64_t largest = int64_t{1} << 31;  // keeps every product of two fields inside 63 bits

void check_range(std::string_view name, int64_t value, int64_t least) {
  if (value < least || value > largest)
    fail<ValueError>("config: {} is {}; it must be {} to {}", name, value, least, largest);
}

void check_lists(const TransformerConfig& c) {
  const auto per_layer = [&](const char* name, size_t n) {
    if (n != 0 && n != static_cast<size_t>(c.n_layers))
      fail<ValueError>("config: {} has {} entries for {} layers; give one a layer, or none", name, n, c.n_layers);
  };
  per_layer("layer_types", c.layer_types.size());
  per_layer("rope_layers", c.rope_layers.size());
  per_layer("expert_layers", c.expert_layers.size());
  for (size_t i = 0; i < c.layer_types.size(); ++i)
    if (c.layer_types[i] == AttentionSpan::sliding && c.window == 0)
      fail<ValueError>("config: layer {} is sliding_attention, but window is 0; give the number of keys", i);
}

void check_attention(const TransformerConfig& c) {
  if (c.head_dim == 0 && c.d_model % c.n_heads != 0)
    fail<ValueError>("config: n_heads {} does not divide d_model {}", c.n_heads, c.d_model);
  if (c.n_heads % c.n_kv_heads != 0)
    fail<ValueError>("config: n_kv_heads {} does not divide n_heads {}", c.n_kv_heads, c.n_heads);
  if (c.positions != Positions::rope) return;
  if (!(c.rotary_fraction > 0 && c.rotary_fraction <= 1))
    fail<ValueError>("config: rotary_fraction is {}; it must be above 0 and at most 1", c.rotary_fraction);
  if (c.rotary_dim() % 2 != 0 || c.rotary_dim() == 0)
    fail<ValueError>("config: {} of a head's {} entries turn; rotary positions need an even number", c.rotary_dim(),
                     c.head_width());
}

void check_feed_forward(const TransformerConfig& c) {
  if (c.n_experts > 0 && c.experts_per_token > c.n_experts)
    fail<ValueError>("config: experts_per_token {} are more than n_experts {}", c.experts_per_token, c.n_experts);
  if (c.head_bias && c.tied_embeddings)
    fail<ValueError>("config: head_bias is set, but tied_embeddings leave no head to have one");
  if (c.fused_gate_up && !c.gated) fail<ValueError>("config: fused_gate_up is set, but gated is not");
  if (c.gate_bias && !c.gated) fail<ValueError>("config: gate_bias is set, but gated is not");
  if (c.fused_gate_up && c.gate_bias != c.up_bias)
    fail<ValueError>("config: fused_gate_up has one bias; set both of gate_bias and up_bias, or neither");
  if (c.fused_qkv && (c.q_bias != c.k_bias || c.k_bias != c.v_bias))
    fail<ValueError>("config: fused_qkv has one bias; set all of q_bias, k_bias and v_bias, or none");
}

}  // namespace

bool TransformerConfig::is_sliding(int64_t layer) const {
  if (layer_types.empty()) return window > 0;
  return layer_types[static_cast<size_t>(layer)] == AttentionSpan::sliding;
}
bool TransformerConfig::has_rope(int64_t layer) const {
  return positions == Positions::rope && (rope_layers.empty() || rope_layers[static_cast<size_t>(layer)]);
}
bool TransformerConfig::has_experts(int64_t layer) const {
  return n_experts > 0 && (expert_layers.empty() || expert_layers[static_cast<size_t>(layer)]);
}

void TransformerConfig::validate() const {
  for (const auto& [name, value] : {std::pair{"vocab_size", vocab_size},
                                    {"max_seq_len", max_seq_len},
                                    {"n_layers", n_layers},
                                    {"n_heads", n_heads},
                                    {"n_kv_heads", n_kv_heads},
                                    {"d_model", d_model},
                                    {"d_ff", d_ff},
                                    {"experts_per_token", experts_per_token}})
    check_range(name, value, 1);
  for (const auto& [name, value] : {std::pair{"head_dim", head_dim},
                                    {"window", window},
                                    {"n_experts", n_experts},
                                    {"d_expert", d_expert},
                                    {"n_shared_experts", n_shared_experts}})
    check_range(name, value, 0);
  for (const auto& [name, value] : {std::pair{"rope_theta", rope_theta}, {"norm_eps", norm_eps}})
    if (!(value > 0) || !std::isfinite(value))
      fail<ValueError>("config: {} is {}; it must be positive and finite", name, value);
  for (const auto& [name, value] : {std::pair{"rope_local_theta", rope_local_theta},
                                    {"attention_scale", attention_scale},
                                    {"attention_soft_cap", attention_soft_cap},
                                    {"final_soft_cap", final_soft_cap}})
    if (!(value >= 0) || !std::isfinite(value))
      fail<ValueError>("config: {} is {}; it must be positive and finite, or 0 for none", name, value);
  for (const auto& [name, value] : {std::pair{"attention_dropout", attention_dropout},
                                    {"residual_dropout", residual_dropout},
                                    {"embedding_dropout", embedding_dropout}})
    if (!(value >= 0 && value < 1)) fail<ValueError>("config: {} is {}; it must be in [0, 1)", name, value);
  check_attention(*this);
  check_lists(*this);
  check_feed_forward(*this);
  tapestry::validate(rope_scaling);
}

int64_t feed_forward_width(const TransformerConfig& c, int64_t multiple) {
  return c.gated ? gated_width(c.d_model, multiple) : 4 * c.d_model;
}

std::vector<AttentionSpan> every_kth_full(int64_t n_layers, int64_t k) {
  if (n_layers < 1 || k < 1) fail<ValueError>("every_kth_full: n_layers {} and k {} must be positive", n_layers, k);
  std::vector<AttentionSpan> types;
  for (int64_t i = 0; i < n_layers; ++i)
    types.push_back((i + 1) % k == 0 ? AttentionSpan::full : AttentionSpan::sliding);
  return types;
}

}  // namespace tapestry
