// Fields of config.json that several families have, in both directions.
// Not here: those of one family alone (families/).
// Next: families/llama.cpp.
#pragma once

#include "config_fields.h"

namespace tapestry::hf {

/// What any config.json may hold without changing what the model computes.
void common_fields(ConfigFields& f);

inline constexpr int64_t most_layers = 100'000;  // before lists of them are made

/// vocab_size, hidden_size and so on, and rms_norm_eps.
struct SizeDefaults {
  double norm_eps;                     ///< where rms_norm_eps is absent
  bool kv_heads_may_be_absent = true;  ///< then they are as many as heads; else the field must be there
};
void size_fields(ConfigFields& f, TransformerConfig& c, SizeDefaults absent);
/// Where head_dim is absent, the model width over the number of heads, or it is `needed`.
void head_dim_field(ConfigFields& f, TransformerConfig& c, bool needed = false);
/// One flag for the biases of q, k, v and o; or of gate, up and down.
void attention_bias_field(ConfigFields& f, TransformerConfig& c);
void mlp_bias_field(ConfigFields& f, TransformerConfig& c);

/// rope_theta and rope_scaling, or rope_parameters in newer files.
void rope_fields(ConfigFields& f, TransformerConfig& c, double absent_theta);
/// The fields of one object: rope_theta where it is there, rope_type and what the type needs. Reading only.
void read_rope_object(ConfigFields& o, const TransformerConfig& c, double& theta, RopeScaling& scaling);
void write_rope_scaling(ConfigFields& f, const TransformerConfig& c);

/// One window in every layer; null: none.
void window_field(ConfigFields& f, TransformerConfig& c);
/// use_sliding_window, sliding_window, max_window_layers, layer_types: layers from max_window_layers on slide, unless the
/// list says otherwise.
void qwen_window_fields(ConfigFields& f, TransformerConfig& c);
/// layer_types of each layer, as a list.
std::vector<AttentionSpan> spans_of(const TransformerConfig& c);

/// num_experts, num_experts_per_tok, moe_intermediate_size, norm_topk_prob.
void expert_fields(ConfigFields& f, TransformerConfig& c, bool absent_normalise);
/// √ of this, inverted, is the scale of the scores.
void query_scale_field(ConfigFields& f, TransformerConfig& c);

}  // namespace tapestry::hf
