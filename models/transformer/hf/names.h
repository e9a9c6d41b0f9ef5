// Names that many families share.
// Not here: those of one family alone (families/).
// Next: families/llama.cpp.
#pragma once

#include "family.h"

namespace tapestry::hf {

inline constexpr NameRow embedding_names[] = {
    {"token_embedding", "model.embed_tokens"}, {"norm", "model.norm"}, {"lm_head", "lm_head"}};

/// A norm before each branch.
inline constexpr NameRow pre_norm_names[] = {
    {"layers.{}.attention_norm", "model.layers.{}.input_layernorm"},
    {"layers.{}.feed_forward_norm", "model.layers.{}.post_attention_layernorm"}};

inline constexpr NameRow attention_names[] = {{"layers.{}.attention.q_proj", "model.layers.{}.self_attn.q_proj"},
                                              {"layers.{}.attention.k_proj", "model.layers.{}.self_attn.k_proj"},
                                              {"layers.{}.attention.v_proj", "model.layers.{}.self_attn.v_proj"},
                                              {"layers.{}.attention.o_proj", "model.layers.{}.self_attn.o_proj"}};
inline constexpr NameRow qk_norm_names[] = {{"layers.{}.attention.q_norm", "model.layers.{}.self_attn.q_norm"},
                                            {"layers.{}.attention.k_norm", "model.layers.{}.self_attn.k_norm"}};

inline constexpr NameRow feed_forward_names[] = {{"layers.{}.feed_forward.gate_proj", "model.layers.{}.mlp.gate_proj"},
                                                 {"layers.{}.feed_forward.up_proj", "model.layers.{}.mlp.up_proj"},
                                                 {"layers.{}.feed_forward.down_proj", "model.layers.{}.mlp.down_proj"}};
inline constexpr NameRow expert_names[] = {
    {"layers.{}.feed_forward.router", "model.layers.{}.mlp.gate"},
    {"layers.{}.feed_forward.experts.{}.gate_proj", "model.layers.{}.mlp.experts.{}.gate_proj"},
    {"layers.{}.feed_forward.experts.{}.up_proj", "model.layers.{}.mlp.experts.{}.up_proj"},
    {"layers.{}.feed_forward.experts.{}.down_proj", "model.layers.{}.mlp.experts.{}.down_proj"}};

inline constexpr std::span<const NameRow> llama_names[] = {embedding_names, pre_norm_names, attention_names,
                                                           feed_forward_names};
/// With a norm of queries and keys.
inline constexpr std::span<const NameRow> qwen3_names[] = {embedding_names, pre_norm_names, attention_names,
                                                           qk_norm_names, feed_forward_names};
/// With experts in some layers.
inline constexpr std::span<const NameRow> qwen3_moe_names[] = {embedding_names, pre_norm_names,     attention_names,
                                                               qk_norm_names,   feed_forward_names, expert_names};

/// Frequencies that old files store beside the weights.
inline constexpr std::string_view rope_buffers[] = {"model.layers.{}.self_attn.rotary_emb.inv_freq",
                                                    "model.rotary_emb.inv_freq"};

}  // namespace tapestry::hf
