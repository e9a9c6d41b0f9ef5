// config.json of published families: both directions, what is accepted in which form, and what is refused by name.
// Not here: weights (test_hf_folder.cpp), values (test_golden_models.cpp).
// Next: test_hf_folder.cpp.
#include <doctest/doctest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "../autograd/error.h"
#include "../models/transformer/hf/family.h"
#include "../models/transformer/hf/folder.h"
#include "training_fixtures.h"

using namespace tapestry;
using namespace tapestry::tests;
using nlohmann::json;

namespace {

constexpr const char* models[] = {"cs336-tiny",   "gemma2-tiny",    "gemma3-tiny",      "gpt2-tiny",
                                  "llama-tiny",   "minimind-tiny",  "mistral-tiny",     "mixtral-tiny",
                                  "olmo2-tiny",   "phi3-tiny",      "qwen2-tiny",       "qwen3-tiny",
                                  "smollm3-tiny", "qwen3-moe-tiny", "minimind-moe-tiny"};

/// The golden config of a model with some fields changed; "absent" takes one away.
std::string patched(const std::string& model, const std::string& patch = "{}") {
  json config = json::parse(read_file(std::string(TAPESTRY_GOLDEN_DIR) + "/models/" + model + "/config.json"));
  const json changes = json::parse(patch);
  for (const auto& [name, value] : changes.items()) {
    if (value == "absent")
      config.erase(name);
    else
      config[name] = value;
  }
  return config.dump();
}
TransformerConfig config_of(const std::string& model, const std::string& patch = "{}") {
  return hf::read_config("config.json", patched(model, patch)).config;
}

bool same_layers(const TransformerConfig& c, const std::string& slides) {
  std::string have;
  for (int64_t i = 0; i < c.n_layers; ++i) have += c.is_sliding(i) ? 's' : 'f';
  return have == slides;
}

}  // namespace

TEST_SUITE("hf_config") {
  TEST_CASE("what is written is read again as the same model, family by family") {
    for (const char* model : models) {
      CAPTURE(model);
      const hf::ReadConfig read = hf::read_config("config.json", patched(model));
      const std::string written = hf::write_config(*read.family, read.config, "bfloat16", read.ids);
      const hf::ReadConfig again = hf::read_config("config.json", written);
      CHECK(again.family == read.family);
      CHECK(hf::first_difference(read.config, again.config) == "");
      CHECK(again.ids.eos == read.ids.eos);
      CHECK(again.ids.bos == read.ids.bos);
      CHECK(again.ids.pad == read.ids.pad);
      CHECK(json::parse(written)["torch_dtype"] == "bfloat16");
      CHECK(hf::write_config(*read.family, again.config, "bfloat16", read.ids) == written);
    }
  }

  TEST_CASE("other forms of the same, and what follows from them, survive writing and reading") {
    const struct {
      const char *model, *patch;
      bool (*holds)(const TransformerConfig& c);
    } rows[] = {
        {"llama-tiny", R"({"num_key_value_heads": "absent"})", [](const auto& c) { return c.n_kv_heads == 4; }},
        {"llama-tiny", R"({"head_dim": "absent", "rope_theta": "absent"})",
         [](const auto& c) { return c.head_width() == 8 && c.rope_theta == 10000; }},
        {"llama-tiny", R"({"head_dim": 6})", [](const auto& c) { return c.head_width() == 6; }},
        {"llama-tiny", R"({"attention_bias": true, "mlp_bias": true})",
         [](const auto& c) { return c.q_bias && c.k_bias && c.v_bias && c.o_bias && c.gate_bias && c.down_bias; }},
        {"llama-tiny", R"({"hidden_act": "gelu"})", [](const auto& c) { return c.activation == Activation::gelu; }},
        {"llama-tiny", R"({"hidden_act": "relu2"})",
         [](const auto& c) { return c.activation == Activation::relu_squared; }},
        {"llama-tiny", R"({"rope_scaling": {"type": "default"}, "pretraining_tp": 2, "quantization_config": null})",
         [](const auto& c) { return c.rope_scaling == RopeScaling{}; }},
        {"llama-tiny", R"({"rope_scaling": {"type": "linear", "factor": 2}})",
         [](const auto& c) { return c.rope_scaling == RopeScaling{.rule = RopeScalingRule::linear, .factor = 2}; }},
        {"llama-tiny", R"({"rope_scaling": {"rope_type": "dynamic", "factor": 4.0}})",
         [](const auto& c) {
           return c.rope_scaling ==
                  RopeScaling{.rule = RopeScalingRule::dynamic, .factor = 4, .original_max_seq_len = 64};
         }},
        {"llama-tiny",
         R"({"rope_scaling": {"rope_type": "llama3", "factor": 8, "low_freq_factor": 1, "high_freq_factor": 4,
             "original_max_position_embeddings": 16}})",
         [](const auto& c) {
           return c.rope_scaling == RopeScaling{.rule = RopeScalingRule::llama3,
                                                .factor = 8,
                                                .original_max_seq_len = 16,
                                                .low_freq_factor = 1,
                                                .high_freq_factor = 4};
         }},
        {"llama-tiny", R"({"rope_scaling": {"rope_type": "yarn", "factor": 4}})",
         [](const auto& c) {
           return c.rope_scaling == RopeScaling{.rule = RopeScalingRule::yarn, .factor = 4, .original_max_seq_len = 64};
         }},
        {"llama-tiny",
         R"({"rope_scaling": {"rope_type": "yarn", "factor": 4, "original_max_position_embeddings": 16, "beta_fast": 16,
             "beta_slow": 2, "truncate": false, "attention_factor": 1.5}})",
         [](const auto& c) {
           return c.rope_scaling == RopeScaling{.rule = RopeScalingRule::yarn,
                                                .factor = 4,
                                                .original_max_seq_len = 16,
                                                .beta_fast = 16,
                                                .beta_slow = 2,
                                                .truncate = false,
                                                .attention_factor = 1.5};
         }},
        {"llama-tiny", R"({"rope_scaling": {"type": "yarn", "factor": 40, "mscale": 1.0, "mscale_all_dim": 0.5}})",
         [](const auto& c) {
           const double expected = (0.1 * std::log(40.0) + 1) / (0.05 * std::log(40.0) + 1);
           return std::abs(c.rope_scaling.attention_factor - expected) < 1e-15;
         }},
        {"llama-tiny",
         R"({"rope_theta": "absent", "rope_scaling": "absent",
             "rope_parameters": {"rope_type": "linear", "factor": 2.0, "rope_theta": 500.0}})",
         [](const auto& c) { return c.rope_theta == 500 && c.rope_scaling.rule == RopeScalingRule::linear; }},
        {"llama-tiny", R"({"rope_parameters": {"rope_type": "default", "rope_theta": 10000.0}})",
         [](const auto& c) { return c.rope_theta == 10000; }},
        {"mistral-tiny", R"({"sliding_window": null})", [](const auto& c) { return c.window == 0; }},
        {"mistral-tiny", R"({"sliding_window": "absent"})", [](const auto& c) { return c.window == 4096; }},
        {"qwen2-tiny", R"({"use_sliding_window": true})",
         [](const auto& c) { return c.window == 4 && same_layers(c, "fs"); }},
        {"qwen2-tiny", R"({"use_sliding_window": true, "layer_types": ["sliding_attention", "full_attention"]})",
         [](const auto& c) { return c.window == 4 && same_layers(c, "sf"); }},
        {"qwen2-tiny", "{}", [](const auto& c) { return c.window == 0 && c.q_bias && c.v_bias && !c.o_bias; }},
        {"gemma2-tiny", "{}",
         [](const auto& c) { return same_layers(c, "sfs") && c.attention_scale == 1 / std::sqrt(12.0); }},
        {"gemma2-tiny", R"({"query_pre_attn_scalar": 8})", [](const auto& c) { return c.attention_scale == 0; }},
        {"gemma2-tiny", R"({"layer_types": ["full_attention", "full_attention", "full_attention"]})",
         [](const auto& c) { return c.window == 0; }},
        {"gemma3-tiny", R"({"sliding_window_pattern": 2})", [](const auto& c) { return same_layers(c, "sfsfsf"); }},
        {"gemma3-tiny", R"({"sliding_window_pattern": "absent", "_sliding_window_pattern": 3})",
         [](const auto& c) { return same_layers(c, "ssfssf"); }},
        {"gemma3-tiny",
         R"({"rope_theta": "absent", "rope_local_base_freq": "absent", "rope_scaling": "absent",
             "rope_parameters": {"full_attention": {"rope_type": "linear", "factor": 8.0, "rope_theta": 1e5},
                                 "sliding_attention": {"rope_type": "default", "rope_theta": 5e3}}})",
         [](const auto& c) {
           return c.rope_theta == 1e5 && c.rope_local_theta == 5e3 && c.rope_scaling.rule == RopeScalingRule::linear;
         }},
        {"gpt2-tiny", R"({"n_inner": 48})", [](const auto& c) { return c.d_ff == 48; }},
        {"gpt2-tiny", R"({"scale_attn_weights": false})", [](const auto& c) { return c.attention_scale == 1; }},
        {"gpt2-tiny", R"({"activation_function": "gelu", "tie_word_embeddings": false})",
         [](const auto& c) { return c.activation == Activation::gelu && !c.tied_embeddings; }},
        {"phi3-tiny", R"({"partial_rotary_factor": 0.5, "sliding_window": null})",
         [](const auto& c) { return c.rotary_dim() == 4 && c.window == 0; }},
        {"smollm3-tiny", R"({"no_rope_layers": "absent", "no_rope_layer_interval": 2, "layer_types": "absent"})",
         [](const auto& c) { return c.has_rope(0) && !c.has_rope(1) && c.has_rope(2) && !c.has_rope(3); }},
        {"smollm3-tiny", R"({"layer_types": "absent", "use_sliding_window": true, "sliding_window": 3})",
         [](const auto& c) { return c.window == 3 && same_layers(c, "fffs"); }},
        {"minimind-tiny", R"({"inference_rope_scaling": true, "max_position_embeddings": 32768})",
         [](const auto& c) {
           return c.rope_scaling ==
                  RopeScaling{
                      .rule = RopeScalingRule::yarn, .factor = 16, .original_max_seq_len = 2048, .attention_factor = 1};
         }},
        {"qwen3-moe-tiny", R"({"mlp_only_layers": [1]})",
         [](const auto& c) { return c.has_experts(0) && !c.has_experts(1); }},
        {"qwen3-moe-tiny", R"({"decoder_sparse_step": 2, "norm_topk_prob": "absent"})",
         [](const auto& c) { return !c.has_experts(0) && c.has_experts(1) && !c.normalise_experts; }},
        {"cs336-tiny", R"({"remove_rope": true})", [](const auto& c) { return c.positions == Positions::none; }},
        {"cs336-tiny", R"({"use_post_norm": true})",
         [](const auto& c) { return c.norm_placement == NormPlacement::post; }},
    };
    for (const auto& row : rows) {
      const std::string model = row.model, patch = row.patch;
      CAPTURE(model);
      CAPTURE(patch);
      const hf::ReadConfig read = hf::read_config("config.json", patched(model, patch));
      CHECK(row.holds(read.config));
      const std::string written = hf::write_config(*read.family, read.config);
      CHECK(hf::first_difference(read.config, hf::read_config("config.json", written).config) == "");
    }
  }

  TEST_CASE("what would change the mathematics is refused by name") {
    const struct {
      const char *model, *patch, *message;
    } rows[] = {
        {"llama-tiny", R"({"model_type": "gpt_neox"})",
         "model_type is \"gpt_neox\": hf: model_type 'gpt_neox' is unknown; it must be one of llama, qwen3, "},
        {"llama-tiny", R"({"model_type": "absent"})", "model_type is missing"},
        {"llama-tiny", R"({"use_parallel_residual": true})",
         "llama has no field use_parallel_residual (true); it may change what the model computes, so it is refused"},
        {"llama-tiny", R"({"sliding_window": 5})", "llama has no field sliding_window (5)"},
        {"mistral-tiny", R"({"attention_bias": true})", "mistral has no field attention_bias (true)"},
        {"llama-tiny", R"({"quantization_config": {"bits": 4}})",
         R"(quantization_config is {"bits":4}, but must be null: quantized weights are not read)"},
        {"llama-tiny", R"({"hidden_act": "quick_gelu"})",
         "hidden_act is \"quick_gelu\"; it must be one of silu, swish"},
        {"llama-tiny", R"({"hidden_size": "absent"})", "hidden_size is missing"},
        {"llama-tiny", R"({"hidden_size": 32.5})", "hidden_size is 32.5; it must be a whole number"},
        {"llama-tiny", R"({"hidden_size": "32"})", "hidden_size is \"32\"; it must be a whole number"},
        {"llama-tiny", R"({"num_attention_heads": 0})", "num_attention_heads is 0: it must be 1 to 2^31"},
        {"llama-tiny", R"({"num_hidden_layers": 1000000000})", "num_hidden_layers is 1000000000: it must be at most"},
        {"llama-tiny", R"({"num_key_value_heads": 3})", "n_kv_heads 3 does not divide n_heads 4"},
        {"llama-tiny", R"({"tie_word_embeddings": 1})", "tie_word_embeddings is 1; it must be true or false"},
        {"llama-tiny", R"({"rope_interleaved": true})", "rope_interleaved is true, but must be false"},
        {"llama-tiny", R"({"partial_rotary_factor": 0.5})", "partial_rotary_factor is 0.5, but must be 1.0"},
        {"llama-tiny", R"({"rope_scaling": {"rope_type": "longrope", "short_factor": [1]}})",
         "rope_scaling.rope_type is \"longrope\": it must be default, linear, dynamic, yarn or llama3"},
        {"llama-tiny", R"({"rope_scaling": {"type": "su"}})", "rope_scaling.type is \"su\": it must be default"},
        {"llama-tiny", R"({"rope_scaling": {"type": "linear", "rope_type": "yarn", "factor": 2}})",
         "rope_scaling.type is \"linear\": but rope_type is 'yarn'"},
        {"llama-tiny", R"({"rope_scaling": {"type": "linear"}})", "rope_scaling.factor is missing"},
        {"llama-tiny", R"({"rope_scaling": {"type": "linear", "factor": 0.5}})",
         "factor is 0.5; it must be at least 1"},
        {"llama-tiny", R"({"rope_scaling": {"type": "linear", "factor": 2, "beta_fast": 3}})",
         "rope_type linear has no field rope_scaling.beta_fast (3)"},
        {"llama-tiny", R"({"rope_scaling": {"type": "dynamic", "factor": 2, "original_max_position_embeddings": 32}})",
         "rope_scaling.original_max_position_embeddings is 32: dynamic frequencies"},
        {"llama-tiny", R"({"rope_scaling": {"type": "llama3", "factor": 2}})",
         "rope_scaling.original_max_position_embeddings is missing"},
        {"llama-tiny", R"({"rope_scaling": 2})", "rope_scaling is 2; it must be an object"},
        {"llama-tiny", R"({"rope_parameters": {"rope_theta": 7.0}})",
         "but rope_theta and rope_scaling say something else"},
        {"mixtral-tiny", R"({"num_key_value_heads": "absent"})", "num_key_value_heads is missing"},
        {"mixtral-tiny", R"({"router_jitter_noise": 0.1})", "router_jitter_noise is 0.1, but must be 0.0"},
        {"mixtral-tiny", R"({"num_experts_per_tok": 9})", "experts_per_token 9 are more than n_experts 4"},
        {"qwen2-tiny", R"({"layer_types": ["sliding_attention", "full_attention"]})",
         "sliding layers need use_sliding_window and a sliding_window"},
        {"qwen2-tiny", R"({"use_sliding_window": true, "max_window_layers": "absent"})",
         "max_window_layers is missing"},
        {"qwen2-tiny", R"({"layer_types": ["chunked_attention", "full_attention"]})",
         "it must be a list of full_attention and sliding_attention"},
        {"qwen2-tiny", R"({"use_sliding_window": true, "layer_types": ["sliding_attention"]})",
         "layer_types has 1 entries for 2 layers"},
        {"qwen2-tiny", R"({"sliding_window": -4})", "sliding_window is -4; it must be positive, or null"},
        {"qwen2-tiny", R"({"use_mrope": true})", "use_mrope is true, but must be false"},
        {"qwen3-moe-tiny", R"({"shared_expert_intermediate_size": 8})",
         "qwen3_moe has no field shared_expert_intermediate_size (8)"},
        {"qwen3-moe-tiny", R"({"decoder_sparse_step": 0})", "decoder_sparse_step is 0: it must be at least 1"},
        {"gemma2-tiny", R"({"hidden_act": "silu"})", "hidden_act is \"silu\": but hidden_activation"},
        {"gemma2-tiny", R"({"query_pre_attn_scalar": 0})", "query_pre_attn_scalar is 0: it must be positive"},
        {"gemma2-tiny", R"({"attn_logit_softcapping": 0})",
         "attn_logit_softcapping is 0; it must be positive, or null"},
        {"gemma2-tiny", R"({"head_dim": "absent"})", "head_dim is missing"},
        {"gemma3-tiny", R"({"use_bidirectional_attention": true})", "use_bidirectional_attention is true"},
        {"gemma3-tiny", R"({"sliding_window_pattern": 0})", "sliding_window_pattern is 0: it must be at least 1"},
        {"gemma3-tiny", R"({"rope_parameters": {"sliding_attention": {"rope_type": "linear", "factor": 2}}})",
         "sliding layers are never scaled here"},
        {"gpt2-tiny", R"({"scale_attn_by_inverse_layer_idx": true})",
         "scale_attn_by_inverse_layer_idx is true, but must be false"},
        {"gpt2-tiny", R"({"add_cross_attention": true})", "add_cross_attention is true, but must be false"},
        {"olmo2-tiny", R"({"clip_qkv": 8.0})", "olmo2 has no field clip_qkv (8.0)"},
        {"phi3-tiny", R"({"rope_scaling": {"type": "longrope", "long_factor": [1.0]}})", "longrope"},
        {"phi3-tiny", R"({"rope_scaling": {"type": "yarn", "factor": 2}})", "scaled frequencies of phi3 are not here"},
        {"phi3-tiny", R"({"partial_rotary_factor": 0.4})", "3 of a head's 8 entries turn"},
        {"smollm3-tiny", R"({"no_rope_layers": [1, 0]})", "no_rope_layers is [1,0]: it must have one number a layer"},
        {"minimind-tiny", R"({"rope_scaling": {"type": "yarn", "factor": 16}})",
         "inference_rope_scaling alone decides here"},
        {"minimind-tiny", R"({"n_routed_experts": 4})", "minimind has no field n_routed_experts (4)"},
        {"cs336-tiny", R"({"remove_rmsnorm": true})", "remove_rmsnorm is true, but must be false"},
        {"cs336-tiny", R"({"ffn_type": "silu"})", "ffn_type is \"silu\", but must be null"},
    };
    for (const auto& row : rows) {
      const std::string model = row.model, patch = row.patch;
      CAPTURE(model);
      CAPTURE(patch);
      std::string message = "nothing was refused";
      try {
        static_cast<void>(config_of(model, patch));
      } catch (const FormatError& e) {
        message = e.what();
      }
      CHECK(message.starts_with("'config.json': "));
      CHECK_MESSAGE(message.find(row.message) != std::string::npos, message);
    }
    CHECK_THROWS_WITH_AS((void)hf::read_config("f", "[1]"), "'f': not a JSON object", FormatError);
    CHECK_THROWS_WITH_AS((void)hf::read_config("f", R"({"a": 1, "a": 2})"), "f: the field a is given twice; keep one",
                         FormatError);
  }

  TEST_CASE("a model is written as a family that can express it, and refused by field otherwise") {
    const TransformerConfig plain{
        .vocab_size = 64, .max_seq_len = 32, .n_layers = 2, .n_heads = 4, .n_kv_heads = 2, .d_model = 32, .d_ff = 48};
    const auto with = [&](auto change) {
      TransformerConfig c = plain;
      change(c);
      return c;
    };
    const auto family = [&](auto change) { return std::string(hf::family_for(with(change)).model_type); };
    CHECK(family([](auto&) {}) == "llama");
    CHECK(family([](auto& c) { c.residual_dropout = 0.1; }) == "llama");
    CHECK(family([](auto& c) { c.window = 8; }) == "mistral");
    CHECK(family([](auto& c) { c.qk_norm = QkNorm::head; }) == "qwen3");
    CHECK(family([](auto& c) { c.q_bias = c.k_bias = c.v_bias = true; }) == "qwen2");
    CHECK(family([](auto& c) { c.window = 8, c.layer_types = every_kth_full(2, 2), c.qk_norm = QkNorm::head; }) ==
          "qwen3");
    CHECK(family([](auto& c) { c.fused_qkv = c.fused_gate_up = true; }) == "phi3");
    CHECK(family([](auto& c) { c.rotary_fraction = 0.5; }) == "phi3");
    CHECK(family([](auto& c) { c.rope_layers = {true, false}; }) == "smollm3");
    CHECK(family([](auto& c) { c.n_experts = 4; }) == "mixtral");
    CHECK(family([](auto& c) {
            c.n_experts = 4, c.qk_norm = QkNorm::head, c.expert_layers = {true, false};
          }) == "qwen3_moe");
    for (const char* model : models) {  // each golden config finds its way back to a family that is the same function
      const TransformerConfig c = config_of(model);
      CHECK(hf::first_difference(c, hf::read_config("config.json", hf::write_config(hf::family_for(c), c)).config) ==
            (std::string(model) == "cs336-tiny" ? "rope_layout (\"half\" instead of \"adjacent\")" : ""));
    }
    CHECK_THROWS_WITH_AS((void)hf::family_for(with([](auto& c) { c.norm_placement = NormPlacement::post; })),
                         "hf: a llama model cannot have this norm_placement (\"pre\" instead of \"post\"); choose "
                         "another family",
                         FormatError);
    CHECK_THROWS_WITH_AS(
        (void)hf::family_for(with([](auto& c) { c.rope_scaling = {.rule = RopeScalingRule::ntk, .factor = 2}; })),
        doctest::Contains("a llama model cannot have this rope_scaling"), FormatError);
    CHECK_THROWS_WITH_AS((void)hf::write_config(hf::family_named("gemma2"), plain),
                         doctest::Contains("a gemma2 model cannot have this norm_placement"), FormatError);
    CHECK_THROWS_WITH_AS((void)hf::family_named("bert"), doctest::Contains("model_type 'bert' is unknown"),
                         FormatError);
  }
}
