// The shared fields of Gemma 2 and 3.
// Next: gemma2.cpp.
#include "gemma.h"

#include "../common_fields.h"

namespace tapestry::hf {

void gemma_fields(ConfigFields& f, TransformerConfig& c) {
  size_fields(f, c, {.norm_eps = 1e-6, .kv_heads_may_be_absent = false});
  head_dim_field(f, c, /*needed=*/true);
  if (f.is_reading()) {
    c.norm_placement = NormPlacement::double_norm;
    c.norm_kind = NormKind::rms_unit_offset;
    c.scale_embedding = true;
  }
  f.activation("hidden_activation", c.activation, Activation::gelu_tanh);
  Activation old = c.activation;  // an older name, which the model no longer asks
  if (f.given("hidden_act")) f.activation("hidden_act", old, c.activation);
  if (old != c.activation) f.refuse("hidden_act", "but hidden_activation, which counts, is another one");
  query_scale_field(f, c);
  f.number_or_null("attn_logit_softcapping", c.attention_soft_cap);
  f.number_or_null("final_logit_softcapping", c.final_soft_cap);
  attention_bias_field(f, c);
  f.must_be("use_bidirectional_attention", "false", "attention is causal here");
  f.number("attention_dropout", c.attention_dropout, 0);
  f.flag("tie_word_embeddings", c.tied_embeddings, true);
}

void gemma_window_fields(ConfigFields& f, TransformerConfig& c, int64_t every) {
  int64_t window = c.window != 0 ? c.window : 4096;  // of no layer, where there is none
  std::vector<AttentionSpan> types = f.is_reading() ? std::vector<AttentionSpan>{} : spans_of(c);
  f.integer("sliding_window", window);
  const bool listed = f.layer_types("layer_types", types);
  if (!f.is_reading()) return;
  int64_t same = window;  // old files have it twice
  f.integer("sliding_window_size", same, window);
  if (same != window) f.refuse("sliding_window_size", "but sliding_window is another one");
  c.window = window;
  c.layer_types = listed ? types : every_kth_full(c.n_layers, every);
}

}  // namespace tapestry::hf
