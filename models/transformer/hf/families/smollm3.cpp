// SmolLM3: Llama with layers that do not turn. Bakouch et al. 2025.
// Next: minimind.cpp.
#include "../common_fields.h"
#include "../names.h"
#include "families.h"

namespace tapestry::hf {
namespace {

/// 1 for a layer that turns; without the list, every no_rope_layer_interval-th layer does not.
void rope_layer_fields(ConfigFields& f, TransformerConfig& c) {
  std::vector<int64_t> turns;
  int64_t interval = 4;
  if (!f.is_reading())
    for (int64_t i = 0; i < c.n_layers; ++i) turns.push_back(c.has_rope(i) ? 1 : 0);
  const bool listed = f.given("no_rope_layers");
  f.integers("no_rope_layers", turns);
  f.integer("no_rope_layer_interval", interval, 4);
  if (!f.is_reading()) return;
  if (interval < 1) f.refuse("no_rope_layer_interval", "it must be at least 1");
  if (listed && static_cast<int64_t>(turns.size()) != c.n_layers)
    f.refuse("no_rope_layers", "it must have one number a layer");
  for (int64_t i = 0; i < c.n_layers; ++i) {
    const int64_t turn = listed ? turns[static_cast<size_t>(i)] : (i + 1) % interval != 0;
    if (turn != 0 && turn != 1) f.refuse("no_rope_layers", "its numbers must be 0 or 1");
    c.rope_layers.push_back(turn == 1);
  }
}

/// Without layer_types, the layers that do not turn slide.
void window_fields(ConfigFields& f, TransformerConfig& c) {
  bool use = c.window > 0;
  int64_t window = c.window;
  std::vector<AttentionSpan> types = f.is_reading() ? std::vector<AttentionSpan>{} : spans_of(c);
  f.flag("use_sliding_window", use, false);
  f.integer_or_null("sliding_window", window);
  const bool listed = f.layer_types("layer_types", types);
  f.harmless({"max_window_layers"});
  if (!f.is_reading()) return;
  if (!listed)
    for (int64_t i = 0; i < c.n_layers; ++i)
      types.push_back(use && window > 0 && !c.has_rope(i) ? AttentionSpan::sliding : AttentionSpan::full);
  for (const AttentionSpan s : types)
    if (s == AttentionSpan::sliding && !(use && window > 0))
      f.refuse("layer_types", "sliding layers need use_sliding_window and a sliding_window");
  c.window = window;
  c.layer_types = types;
}

void fields(ConfigFields& f, TransformerConfig& c) {
  size_fields(f, c, {.norm_eps = 1e-6, .kv_heads_may_be_absent = false});
  head_dim_field(f, c);
  f.activation("hidden_act", c.activation, Activation::silu);
  rope_fields(f, c, 2e6);
  rope_layer_fields(f, c);
  window_fields(f, c);
  attention_bias_field(f, c);
  mlp_bias_field(f, c);
  f.number("attention_dropout", c.attention_dropout, 0);
  f.flag("tie_word_embeddings", c.tied_embeddings, true);
}

}  // namespace

const Family smollm3{.model_type = "smollm3",
                     .architecture = "SmolLM3ForCausalLM",
                     .fields = fields,
                     .names = llama_names,
                     .ignored = rope_buffers};

}  // namespace tapestry::hf
