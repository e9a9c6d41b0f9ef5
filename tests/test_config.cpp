// The configuration of the Transformer: every choice and every possible pair of choices is differentiated against finite
// differences; its JSON form, its errors and its page.
// Not here: what the choices compute, compared with another program (test_golden_nn.cpp, test_golden_models.cpp).
// Next: ../models/transformer/config_options.cpp.
#include <doctest/doctest.h>

#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include "../autograd/error.h"
#include "../autograd/grad_mode.h"
#include "../autograd/random.h"
#include "../autograd/tools/gradcheck.h"
#include "../models/transformer/config_options.h"
#include "../models/transformer/lm.h"
#include "../nn/visitor.h"
#include "../ops/ops.h"
#include "op_table/samples.h"

using namespace tapestry;

namespace {

const TransformerConfig tiny{
    .vocab_size = 5, .max_seq_len = 6, .n_layers = 2, .n_heads = 4, .n_kv_heads = 4, .d_model = 16, .d_ff = 6};

/// Which value of each option.
using Choice = std::vector<size_t>;

/// The tiny model with these values, or nothing if they do not go together.
std::optional<TransformerConfig> configured(const Choice& choice) {
  TransformerConfig c = tiny;
  try {
    for (size_t i = 0; i < choice.size(); ++i)
      if (choice[i] != 0) c = with_fields(c, config_options()[i].values[choice[i]]);
  } catch (const ValueError&) {
    return {};
  }
  return c;
}

/// Whether a parameter adds the same to all scores of a query, of which the softmax has no derivative: a bias of keys
/// that do not turn.
bool adds_to_all_scores(const TransformerConfig& c, const std::string& name) {
  if (!name.ends_with("k_proj.bias") && !name.ends_with("k_norm.bias")) return false;
  const int64_t layer = name[std::string_view("layers.").size()] - '0';
  return !c.has_rope(layer) && c.attention_soft_cap == 0;
}

/// Loss and parameters of a configuration against finite differences along random directions; empty where they agree.
std::string check_derivatives(const TransformerConfig& c) {
  manual_seed(7);
  Transformer model(c);
  to(model, DType::f64);
  std::vector<Tensor> values;
  for (const auto& [name, p] : named_parameters(model)) {
    if (p.dim() == 1) p.detach().copy_(p.detach() + randn(p.shape(), DType::f64) * 0.3);  // no round values
    p.requires_grad_(!adds_to_all_scores(c, name));
    values.push_back(p);
  }
  const Tensor tokens = randint(0, c.vocab_size, {2, 6}), targets = randint(0, c.vocab_size, {2, 6});
  const LanguageModelLossOptions options{.label_smoothing = 0.1, .z_loss = 0.01, .balance_loss = 0.02};
  const auto loss = [&](std::span<const Tensor> leaves) {
    size_t i = 0;
    for_each_parameter(model, [&](const std::string&, Parameter& p) { static_cast<Tensor&>(p) = leaves[i++]; });
    return model.loss(tokens, targets, options);
  };
  return gradcheck(loss, values, {.allow_zero = c.n_experts > 0, .allow_unused = c.n_experts > 0, .full_limit = 0})
      .message;
}

struct TwoValues {
  size_t option, value, other, other_value;
  auto operator<=>(const TwoValues&) const = default;
};

/// All pairs of values of different options that a valid configuration can have; `impossible` gets the others.
std::set<TwoValues> possible_pairs(std::set<std::string>& impossible) {
  const auto options = config_options();
  std::set<TwoValues> pairs;
  for (size_t i = 0; i < options.size(); ++i)
    for (size_t j = i + 1; j < options.size(); ++j)
      for (size_t v = 0; v < options[i].values.size(); ++v)
        for (size_t w = 0; w < options[j].values.size(); ++w) {
          Choice choice(options.size());
          choice[i] = v, choice[j] = w;
          if (configured(choice))
            pairs.insert({i, v, j, w});
          else
            impossible.insert(std::string(options[i].values[v]) + " " + std::string(options[j].values[w]));
        }
  return pairs;
}

size_t count_new(const Choice& choice, size_t changed, const std::set<TwoValues>& open) {
  size_t n = 0;
  for (size_t i = 0; i < choice.size(); ++i)
    if (i != changed)
      n += open.contains(i < changed ? TwoValues{i, choice[i], changed, choice[changed]}
                                     : TwoValues{changed, choice[changed], i, choice[i]});
  return n;
}

/// Configurations that together have every open pair: each starts from one and takes, option by option, the value that
/// adds most others.
std::vector<Choice> pairwise_cover(std::set<TwoValues> open) {
  const auto options = config_options();
  std::vector<Choice> cover;
  while (!open.empty()) {
    const TwoValues first = *open.begin();
    Choice choice(options.size());
    choice[first.option] = first.value, choice[first.other] = first.other_value;
    for (size_t i = 0; i < options.size(); ++i) {
      if (i == first.option || i == first.other) continue;
      size_t best = 0, most = count_new(choice, i, open);
      for (size_t v = 1; v < options[i].values.size(); ++v) {
        choice[i] = v;
        const size_t n = count_new(choice, i, open);
        if (n > most && configured(choice)) best = v, most = n;
      }
      choice[i] = best;
    }
    for (size_t i = 0; i < choice.size(); ++i)
      for (size_t j = i + 1; j < choice.size(); ++j) open.erase({i, choice[i], j, choice[j]});
    cover.push_back(choice);
  }
  return cover;
}

/// Every value alone, for the slow builds.
std::vector<Choice> single_values() {
  std::vector<Choice> choices;
  for (size_t i = 0; i < config_options().size(); ++i)
    for (size_t v = 0; v < config_options()[i].values.size(); ++v) {
      choices.emplace_back(config_options().size());
      choices.back()[i] = v;
    }
  return choices;
}

std::string describe(const Choice& choice) {
  std::string text;
  for (size_t i = 0; i < choice.size(); ++i)
    if (choice[i] != 0) text += std::string(config_options()[i].values[choice[i]]);
  return text;
}

}  // namespace

TEST_SUITE("config") {
  TEST_CASE("the table names every field but the sizes, and tries every one") {
    const std::set<std::string> sizes = {"vocab_size", "max_seq_len", "n_layers", "n_heads", "d_model", "d_ff"};
    std::set<std::string> named, tried, fields;
    for (const std::string& name : field_names(TransformerConfig{}.to_json()))
      if (!sizes.contains(name)) fields.insert(name);
    for (const ConfigOption& option : config_options()) {
      CAPTURE(option.name);
      CHECK(option.values[0] == "{}");
      CHECK(option.values.size() > 1);
      std::istringstream names{std::string(option.name)};
      for (std::string name; std::getline(names >> std::ws, name, ',');) named.insert(name);
      for (const std::string_view value : option.values)
        for (const std::string& name : field_names(value)) tried.insert(name);
    }
    CHECK(named == fields);
    CHECK(tried == fields);
  }

  TEST_CASE("every value of every choice, and every possible pair of two, has the derivatives of finite differences") {
    std::vector<Choice> choices = single_values();
    if (!op_table::small_samples()) {
      std::set<std::string> impossible;
      choices = pairwise_cover(possible_pairs(impossible));
      CHECK(impossible == std::set<std::string>{
                              R"({"gated": false} {"fused_gate_up": true})",
                              R"({"gated": false} {"gate_bias": true, "up_bias": true, "down_bias": true})",
                              R"({"fused_gate_up": true} {"up_bias": true, "down_bias": true})",
                              R"({"head_bias": true} {"tied_embeddings": true})",
                          });
    }
    for (const Choice& choice : choices) {
      CAPTURE(describe(choice));
      const auto config = configured(choice);
      REQUIRE(config);
      const std::string difference = check_derivatives(*config);
      CHECK_MESSAGE(difference.empty(), difference);
    }
  }

  TEST_CASE("a value changes what the model computes, and survives the way through JSON") {
    const NoGrad raw;
    const auto logits = [](const TransformerConfig& c) {
      manual_seed(7);
      Transformer model(c);
      for (const auto& [name, p] : named_parameters(model))
        if (p.dim() == 1) p.copy_(randn(p.shape(), DType::f32) * 0.3 + 0.5);
      manual_seed(9);
      return model(tensor<int64_t>({{0, 1, 2, 3, 4, 0}})).to_vector<float>();
    };
    const std::vector<float> plain = logits(tiny);
    for (const ConfigOption& option : config_options())
      for (const std::string_view value : option.values) {
        CAPTURE(value);
        const TransformerConfig c = with_fields(tiny, value);
        CHECK(TransformerConfig::from_json(c.to_json()) == c);
        if (value == "{}") continue;
        CHECK_FALSE(c == tiny);
        CHECK(logits(c) != plain);
      }
  }

  TEST_CASE("a configuration of few fields has the defaults for the others; an unknown field is refused") {
    const char* nine =
        R"({"vocab_size": 5, "max_seq_len": 6, "n_layers": 2, "n_heads": 4, "n_kv_heads": 4, "d_model": 16,
                           "d_ff": 6, "rope_theta": 10000.0, "norm_eps": 1e-05})";
    CHECK(TransformerConfig::from_json(nine) == tiny);
    struct Row {
      const char *fields, *error;
    };
    for (const Row& row : {
             Row{R"({"bogus": 1})", "config: unknown field bogus: 1"},
             Row{R"({"norm_kind": "batch"})",
                 R"(config: norm_kind is "batch"; expected one of rms, rms_unit_offset, layer_no_bias, layer)"},
             Row{R"({"d_ff": 1.5})", "config: d_ff is 1.5; expected a whole number"},
             Row{R"({"gated": 1})", "config: gated is 1; expected true or false"},
             Row{R"({"rope_layers": true})", "config: rope_layers is true; expected a list"},
             Row{R"({"rope_layers": [true]})",
                 "config: rope_layers has 1 entries for 2 layers; give one a layer, or none"},
             Row{R"({"layer_types": ["full_attention", "sliding_attention"]})",
                 "config: layer 1 is sliding_attention, but window is 0; give the number of keys"},
             Row{R"({"n_kv_heads": 3})", "config: n_kv_heads 3 does not divide n_heads 4"},
             Row{R"({"d_model": 18})", "config: n_heads 4 does not divide d_model 18"},
             Row{R"({"rotary_fraction": 0.3})",
                 "config: 1 of a head's 4 entries turn; rotary positions need an even number"},
             Row{R"({"rope_scaling": {"rule": "yarn", "factor": 2}})",
                 "rope_scaling: original_max_seq_len is 0; rule yarn needs the length the model was trained on"},
             Row{R"({"rope_scaling": {"rule": "linear", "factor": 0.5}})",
                 "rope_scaling: factor is 0.5; it must be at least 1 and finite"},
             Row{R"({"rope_scaling": {"ruel": "linear"}})", "config: rope_scaling: unknown field ruel: \"linear\""},
             Row{R"({"n_experts": 1})", "config: experts_per_token 2 are more than n_experts 1"},
             Row{R"({"attention_dropout": 1})", "config: attention_dropout is 1; it must be in [0, 1)"},
             Row{R"({"window": -1})", "config: window is -1; it must be 0 to 2147483648"},
             Row{R"({"final_soft_cap": -2})",
                 "config: final_soft_cap is -2; it must be positive and finite, or 0 for none"},
         }) {
      CAPTURE(row.fields);
      CHECK_THROWS_WITH((void)with_fields(tiny, row.fields), row.error);
    }
  }

  TEST_CASE("scores depend on the distance of query and key alone") {
    manual_seed(5);
    for (const ConfigOption& option : config_options()) {
      if (option.name != "rope_layout" && option.name != "rope_scaling" && option.name != "rotary_fraction") continue;
      for (const std::string_view value : option.values) {
        CAPTURE(value);
        const TransformerConfig c = with_fields(tiny, value);
        const RotaryEmbedding rope(c.rotary_dim(), 100,
                                   RotaryOptions{.theta = 50, .layout = c.rope_layout, .scaling = c.rope_scaling});
        const Tensor q = randn({7, 4}, DType::f64), k = randn({7, 4}, DType::f64);
        const auto scores = [&](double shift) {
          const Tensor at = arange(7) + shift;
          return matmul(rope(q, at), mT(rope(k, at)));
        };
        CHECK(max(abs(scores(0) - scores(80))).item() < 1e-12);
        CHECK(max(abs(scores(0) - matmul(q, mT(k)))).item() > 1e-3);
      }
    }
  }

  TEST_CASE("documents packed into one row are read as if each stood alone") {
    const NoGrad raw;
    manual_seed(3);
    Transformer model(tiny);
    to(model, DType::f64);
    const Tensor tokens = tensor<int64_t>({{1, 2, 3, 4, 0, 2}}), documents = tensor<int64_t>({{0, 0, 1, 1, 1, 2}});
    const Tensor packed = model(tokens, TransformerArgs{.mask = document_mask(documents)});
    for (const auto& [begin, end] : {std::pair<int64_t, int64_t>{0, 2}, {2, 5}, {5, 6}})
      CHECK(max(abs(slice(packed, 1, begin, end) - model(slice(tokens, 1, begin, end)))).item() < 1e-12);
  }

  TEST_CASE("the widths at which feed-forward networks have equal parameters") {
    TransformerConfig c{.d_model = 384};
    CHECK(feed_forward_width(c) == 1024);
    c.gated = false;
    CHECK(feed_forward_width(c) == 1536);
    const auto parameters = [](bool gated, int64_t d_ff) {
      return count_parameters(FeedForward(384, d_ff, {.gated = gated}));
    };
    CHECK(parameters(true, 1024) == parameters(false, 1536));
    using enum AttentionSpan;
    CHECK(every_kth_full(6, 2) == std::vector{sliding, full, sliding, full, sliding, full});
    CHECK(every_kth_full(4, 4) == std::vector{sliding, sliding, sliding, full});
    CHECK_THROWS_AS((void)every_kth_full(4, 0), ValueError);
  }

  TEST_CASE("docs/transformer_config.md is what the table says") {
    std::ifstream file(std::string(TAPESTRY_SOURCE_DIR) + "/docs/transformer_config.md", std::ios::binary);
    std::ostringstream written;
    written << file.rdbuf();
    CHECK_MESSAGE(written.str() == config_page(), "docs/transformer_config.md is stale; write it anew with ./dev docs");
  }
}
