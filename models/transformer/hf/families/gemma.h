// What Gemma 2 and 3 share.
// Not here: what they do not.
// Next: gemma2.cpp.
#pragma once

#include "../names.h"
#include "families.h"

namespace tapestry::hf {

inline constexpr NameRow gemma_norm_names[] = {
    {"layers.{}.attention_norm", "model.layers.{}.input_layernorm"},
    {"layers.{}.attention_post_norm", "model.layers.{}.post_attention_layernorm"},
    {"layers.{}.feed_forward_norm", "model.layers.{}.pre_feedforward_layernorm"},
    {"layers.{}.feed_forward_post_norm", "model.layers.{}.post_feedforward_layernorm"}};

/// All but positions and windows.
void gemma_fields(ConfigFields& f, TransformerConfig& c);
/// sliding_window and layer_types; without the list, layers are full where `every` divides their number counted from 1.
void gemma_window_fields(ConfigFields& f, TransformerConfig& c, int64_t every);

}  // namespace tapestry::hf
