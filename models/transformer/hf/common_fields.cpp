// The shared fields. Next: rope_fields.cpp.
#include "common_fields.h"

#include <cmath>

#include "../../../autograd/error.h"

namespace tapestry::hf {

void common_fields(ConfigFields& f) {
  // Who made the file, and how it is run.
  f.harmless({"architectures",
              "model_type",
              "torch_dtype",
              "dtype",
              "transformers_version",
              "_name_or_path",
              "tokenizer_class",
              "auto_map",
              "use_cache",
              "cache_implementation",
              "attn_implementation",
              "_attn_implementation",
              "_attn_implementation_autoset",
              "initializer_range",
              "torchscript",
              "use_bfloat16",
              "tf_legacy_loss",
              "chunk_size_feed_forward",
              "gradient_checkpointing",
              "return_dict",
              "output_attentions",
              "output_hidden_states",
              "is_decoder",
              "pretraining_tp",
              "transformers.js_config",
              "unsloth_version",
              "unsloth_fixed"});
  // Heads for other tasks.
  f.harmless({"id2label", "label2id", "num_labels", "problem_type", "finetuning_task", "task_specific_params"});
  // How text is generated.
  f.harmless({"prefix",
              "sep_token_id",
              "decoder_start_token_id",
              "forced_bos_token_id",
              "forced_eos_token_id",
              "max_length",
              "min_length",
              "do_sample",
              "early_stopping",
              "num_beams",
              "num_beam_groups",
              "diversity_penalty",
              "temperature",
              "top_k",
              "top_p",
              "typical_p",
              "repetition_penalty",
              "length_penalty",
              "no_repeat_ngram_size",
              "encoder_no_repeat_ngram_size",
              "bad_words_ids",
              "num_return_sequences",
              "output_scores",
              "return_dict_in_generate",
              "remove_invalid_values",
              "exponential_decay_length_penalty",
              "suppress_tokens",
              "begin_suppress_tokens"});
  f.must_be("quantization_config", "null", "quantized weights are not read; save them as bf16 first");
  f.must_be("pruned_heads", "{}", "all layers have the same heads here");
  f.must_be("is_encoder_decoder", "false", "models here only decode");
  f.must_be("add_cross_attention", "false", "models here only decode");
  f.must_be("tie_encoder_decoder", "false", "models here only decode");
  f.must_be("cross_attention_hidden_size", "null", "models here only decode");
}

void size_fields(ConfigFields& f, TransformerConfig& c, SizeDefaults absent) {
  f.size("vocab_size", c.vocab_size);
  f.size("hidden_size", c.d_model);
  f.size("intermediate_size", c.d_ff);
  f.size("num_hidden_layers", c.n_layers);
  if (c.n_layers > most_layers) f.refuse("num_hidden_layers", fmt::format("it must be at most {}", most_layers));
  f.size("num_attention_heads", c.n_heads);
  if (absent.kv_heads_may_be_absent || f.present("num_key_value_heads"))
    f.integer("num_key_value_heads", c.n_kv_heads, c.n_heads);
  else
    f.integer("num_key_value_heads", c.n_kv_heads);
  f.size("max_position_embeddings", c.max_seq_len);
  f.number("rms_norm_eps", c.norm_eps, absent.norm_eps);
}

void head_dim_field(ConfigFields& f, TransformerConfig& c, bool needed) {
  int64_t width = f.is_reading() ? 0 : c.head_width();
  if (needed)
    f.integer("head_dim", width);
  else if (f.is_reading() || c.head_dim != 0)
    f.integer("head_dim", width, 0);
  c.head_dim = width;
}

void attention_bias_field(ConfigFields& f, TransformerConfig& c) {
  f.flag("attention_bias", c.q_bias, false);
  if (f.is_reading()) c.k_bias = c.v_bias = c.o_bias = c.q_bias;
}
void mlp_bias_field(ConfigFields& f, TransformerConfig& c) {
  f.flag("mlp_bias", c.gate_bias, false);
  if (f.is_reading()) c.up_bias = c.down_bias = c.gate_bias;
}

std::vector<AttentionSpan> spans_of(const TransformerConfig& c) {
  std::vector<AttentionSpan> spans;
  for (int64_t i = 0; i < c.n_layers; ++i)
    spans.push_back(c.is_sliding(i) ? AttentionSpan::sliding : AttentionSpan::full);
  return spans;
}

void window_field(ConfigFields& f, TransformerConfig& c) { f.integer_or_null("sliding_window", c.window); }

void qwen_window_fields(ConfigFields& f, TransformerConfig& c) {
  bool use = c.window > 0;
  int64_t window = c.window, first = c.n_layers;
  std::vector<AttentionSpan> types = c.window > 0 ? spans_of(c) : std::vector<AttentionSpan>{};
  f.flag("use_sliding_window", use, false);
  f.integer_or_null("sliding_window", window);
  if (f.is_reading() && use && window > 0 && !f.given("layer_types"))
    f.integer("max_window_layers", first);
  else
    f.integer("max_window_layers", first, c.n_layers);
  const bool listed = f.layer_types("layer_types", types);
  if (!f.is_reading()) return;
  if (!listed && use && window > 0)
    for (int64_t i = 0; i < c.n_layers; ++i) types.push_back(i >= first ? AttentionSpan::sliding : AttentionSpan::full);
  for (const AttentionSpan s : types)
    if (s == AttentionSpan::sliding && !(use && window > 0))
      f.refuse("layer_types", "sliding layers need use_sliding_window and a sliding_window");
  c.window = use ? window : 0;
  c.layer_types = types;
}

void expert_fields(ConfigFields& f, TransformerConfig& c, bool absent_normalise) {
  int64_t width = f.is_reading() ? 0 : c.expert_width();
  f.integer("num_experts", c.n_experts);
  f.integer("num_experts_per_tok", c.experts_per_token);
  f.integer("moe_intermediate_size", width);
  f.flag("norm_topk_prob", c.normalise_experts, absent_normalise);
  f.harmless({"output_router_logits", "router_aux_loss_coef"});
  c.d_expert = width;
}

void query_scale_field(ConfigFields& f, TransformerConfig& c) {
  const auto scale_of = [](double scalar) { return 1 / std::sqrt(scalar); };
  const auto width = static_cast<double>(c.head_width());
  double scalar = width;
  if (!f.is_reading() && c.attention_scale != 0) {
    const double exact = 1 / (c.attention_scale * c.attention_scale), whole = std::round(exact);
    scalar = scale_of(whole) == c.attention_scale ? whole : exact;
  }
  f.number("query_pre_attn_scalar", scalar);
  if (!f.is_reading()) return;
  if (!(scalar > 0)) f.refuse("query_pre_attn_scalar", "it must be positive");
  c.attention_scale = scalar == width ? 0 : scale_of(scalar);
}

}  // namespace tapestry::hf
