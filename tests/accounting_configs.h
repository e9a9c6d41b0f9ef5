// Small Transformers that differ from one another in every field that changes what they cost.
// Next: test_accounting.cpp.
#pragma once

#include <string>
#include <vector>

#include "../models/transformer/config.h"

namespace tapestry {

struct NamedConfig {
  std::string name;
  TransformerConfig config;
};

inline TransformerConfig accounting_base() {
  return {.vocab_size = 23, .max_seq_len = 12, .n_layers = 3, .n_heads = 4, .n_kv_heads = 4, .d_model = 16, .d_ff = 40};
}

inline std::vector<NamedConfig> accounting_configs() {
  using Config = TransformerConfig;
  struct Row {
    const char* name;
    void (*change)(Config&);
  };
  constexpr Row rows[] = {
      {"defaults", [](Config&) {}},
      {"grouped queries", [](Config& c) { c.n_kv_heads = 2; }},
      {"one key head, wide heads", [](Config& c) { c.n_kv_heads = 1, c.head_dim = 6; }},
      {"fused projections", [](Config& c) { c.fused_qkv = c.fused_gate_up = true, c.n_kv_heads = 2; }},
      {"all biases",
       [](Config& c) {
         c.q_bias = c.k_bias = c.v_bias = c.o_bias = c.gate_bias = c.up_bias = c.down_bias = c.head_bias = true;
       }},
      {"fused with biases",
       [](Config& c) {
         c.fused_qkv = c.fused_gate_up = c.q_bias = c.k_bias = c.v_bias = c.gate_bias = c.up_bias = true;
       }},
      {"post-norm, LayerNorm",
       [](Config& c) { c.norm_placement = NormPlacement::post, c.norm_kind = NormKind::layer; }},
      {"double norm, gain 1 + w",
       [](Config& c) { c.norm_placement = NormPlacement::double_norm, c.norm_kind = NormKind::rms_unit_offset; }},
      {"post-norm of branches, no final norm",
       [](Config& c) {
         c.norm_placement = NormPlacement::non_residual_post, c.final_norm = false,
         c.norm_kind = NormKind::layer_no_bias;
       }},
      {"plain GELU, tied",
       [](Config& c) { c.gated = false, c.activation = Activation::gelu, c.tied_embeddings = true; }},
      {"GeGLU, scaled embedding, caps",
       [](Config& c) {
         c.activation = Activation::gelu_tanh, c.scale_embedding = true, c.final_soft_cap = 30,
         c.attention_soft_cap = 50;
       }},
      {"QK-norm per head", [](Config& c) { c.qk_norm = QkNorm::head, c.n_kv_heads = 2; }},
      {"QK-norm of rows, LayerNorm",
       [](Config& c) { c.qk_norm = QkNorm::projection, c.qk_norm_kind = NormKind::layer, c.n_kv_heads = 2; }},
      {"learned positions", [](Config& c) { c.positions = Positions::learned; }},
      {"sinusoidal positions", [](Config& c) { c.positions = Positions::sinusoidal; }},
      {"no positions, partly turned",
       [](Config& c) {
         c.rotary_fraction = 0.5, c.rope_layers = {true, false, true};
       }},
      {"window", [](Config& c) { c.window = 5; }},
      {"hybrid, two thetas",
       [](Config& c) { c.window = 4, c.layer_types = every_kth_full(3, 2), c.rope_local_theta = 100; }},
      {"experts", [](Config& c) { c.n_experts = 4, c.d_expert = 24; }},
      {"shared expert, one dense layer",
       [](Config& c) {
         c.n_experts = 3, c.experts_per_token = 1, c.d_expert = 8, c.n_shared_experts = 2;
         c.expert_layers = {false, true, true}, c.normalise_experts = false;
       }},
      {"dropout", [](Config& c) { c.attention_dropout = 0.1, c.residual_dropout = 0.1, c.embedding_dropout = 0.1; }},
  };
  std::vector<NamedConfig> configs;
  for (const Row& row : rows) {
    configs.push_back({row.name, accounting_base()});
    row.change(configs.back().config);
  }
  return configs;
}

}  // namespace tapestry
