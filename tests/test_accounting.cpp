// What a Transformer costs by its configuration, against published tables, the model itself and what its step runs.
// Not here: the peak of memory (test_accounting_peak.cpp).
// Next: ../models/transformer/accounting_parameters.h.
#include <doctest/doctest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "../autograd/error.h"
#include "../autograd/random.h"
#include "../models/transformer/accounting_flops.h"
#include "../models/transformer/accounting_memory.h"
#include "../models/transformer/accounting_parameters.h"
#include "../models/transformer/accounting_report.h"
#include "../models/transformer/lm.h"
#include "../nn/visitor.h"
#include "../ops/flop_counter.h"
#include "accounting_configs.h"

using namespace tapestry;
using Json = nlohmann::json;

namespace {

Json table(const char* name) {
  std::ifstream file(std::string(TAPESTRY_GOLDEN_DIR "/tables/") + name);
  return Json::parse(file);
}

TransformerConfig config_of(const Json& row) {
  const bool bias = row["bias"];
  TransformerConfig c{.vocab_size = row["vocab"],
                      .max_seq_len = row["context"],
                      .n_layers = row["layers"],
                      .n_heads = row["heads"],
                      .n_kv_heads = row["kv_heads"],
                      .d_model = row["d_model"],
                      .head_dim = row["head_dim"],
                      .d_ff = row["d_ff"],
                      .norm_kind = row["norm"] == "rms" ? NormKind::rms : NormKind::layer,
                      .positions = row["learned_positions"] == 0 ? Positions::rope : Positions::learned,
                      .gated = row["glu"],
                      .tied_embeddings = row["tied"]};
  c.q_bias = c.k_bias = c.v_bias = c.o_bias = c.up_bias = c.down_bias = bias;
  c.gate_bias = bias && c.gated;
  return c;
}

int64_t element(const ActivationList& list, const std::string& name) {
  for (const ActivationRow& row : list.rows)
    if (row.name == name) return row.elements;
  FAIL("no activations called " << name);
  return 0;
}

Tensor tokens_of(const TransformerConfig& c, int64_t rows, int64_t length) {
  return randint(0, c.vocab_size, {rows, length});
}

}  // namespace

TEST_SUITE("accounting") {
  TEST_CASE("parameters of published shapes") {
    const Json shapes = table("accounting.json")["rows"];
    for (const Json& row : shapes) {
      CAPTURE(row["config"]["name"]);
      const ParameterTable p = parameter_table(config_of(row["config"]));
      const Json& want = row["params"];
      CHECK(p.token_embedding == want["token_embedding"]);
      CHECK(p.position_embedding == want["position_embedding"]);
      CHECK(p.layers.at(0).attention == want["attention_per_layer"]);
      CHECK(p.layers.at(0).feed_forward == want["ffn_per_layer"]);
      CHECK(p.layers.at(0).norms == want["norms_per_layer"]);
      CHECK(p.in_layers() == want["layers"]);
      CHECK(p.final_norm == want["final_norm"]);
      CHECK(p.lm_head == want["lm_head"]);
      CHECK(p.total() == want["total"]);
      CHECK(p.active() == want["total"]);
      CHECK(p.non_embedding() == want["non_embedding"]);
    }
  }

  TEST_CASE("FLOPs of published shapes") {
    const Json shapes = table("accounting.json")["rows"];
    for (const Json& row : shapes) {
      CAPTURE(row["config"]["name"]);
      const TransformerConfig c = config_of(row["config"]);
      const FlopTable f = flop_table(c, 1, c.max_seq_len);
      const Json& want = row["flops_batch1"];
      for (const auto& [name, theirs] : {std::pair{"q_proj", "q_proj"},
                                         {"k_proj", "k_proj"},
                                         {"v_proj", "v_proj"},
                                         {"attention_scores", "attention_scores"},
                                         {"attention_values", "attention_values"},
                                         {"o_proj", "output_proj"},
                                         {"feed_forward", "ffn"},
                                         {"lm_head", "lm_head"}}) {
        const std::string ours = name;
        CAPTURE(ours);
        CHECK(f.of(ours) == want[theirs]);
        const double share = static_cast<double>(f.of(ours)) / static_cast<double>(f.forward_pass());
        CHECK(std::abs(share - want["share"][theirs].get<double>()) < 5e-7);  // it has six digits
      }
      CHECK(f.rows.size() == 8);
      CHECK(f.forward_pass() == want["forward_total"]);
      CHECK(f.training() == want["training_step_total"]);
      CHECK(six_n_d(c, c.max_seq_len) == want["six_n_d"]);
      CHECK(attended_pairs(c.max_seq_len, 0) == row["attended_pairs_causal"]);
      CHECK(attended_pairs(c.max_seq_len, c.max_seq_len / 4) == row["attended_pairs_window_T_over_4"]);
    }
  }

  TEST_CASE("memory of published shapes") {
    const Json shapes = table("accounting.json")["rows"];
    for (const Json& row : shapes) {
      CAPTURE(row["config"]["name"]);
      const TransformerConfig c = config_of(row["config"]);
      const Json& want = row["memory_float32_batch1"];
      const ActivationList list = activation_list(c, 1, c.max_seq_len);
      for (const auto& [name, elements] : want["activation_elements_per_layer"].items())
        CHECK(element(list, name) == c.n_layers * elements.get<int64_t>());
      for (const auto& [name, elements] : want["activation_elements_outside_layers"].items())
        CHECK(element(list, name) == elements);
      const int64_t parameters = 4 * parameter_table(c).total();
      CHECK(parameters == want["parameters"]);
      CHECK(optimizer_bytes(c) == want["adam_m"].get<int64_t>() + want["adam_v"].get<int64_t>());
      CHECK(4 * list.elements() == want["activations"]);
      CHECK(2 * parameters + optimizer_bytes(c) + 4 * list.elements() == want["training_total"]);
      CHECK(kv_cache_bytes(c, 1, c.max_seq_len) == want["kv_cache_bytes_bf16"]);
      CHECK(kv_cache_bytes_per_token(c) == want["kv_cache_bytes_per_token_bf16"]);
    }
  }

  TEST_CASE("patterns of layers and widths of gated networks") {
    const Json layers = table("layers.json");
    for (const Json& row : layers["hybrid"]) {
      std::vector<std::string> types;
      for (const AttentionSpan span : every_kth_full(row["layers"], row["k"]))
        types.emplace_back(span == AttentionSpan::full ? "full_attention" : "sliding_attention");
      CHECK(types == row["layer_types"]);
    }
    for (const Json& row : layers["d_ff"]) {
      TransformerConfig c = accounting_base();
      c.d_model = row["d_model"];
      CHECK(feed_forward_width(c) == row["ceil_64"]);
      CHECK(feed_forward_width(c, 256) == row["llama_ceil_256"]);
    }
  }

  TEST_CASE("parameters are the model's") {
    for (const NamedConfig& row : accounting_configs()) {
      CAPTURE(row.name);
      const TransformerConfig& c = row.config;
      const Transformer model(c);
      const ParameterTable p = parameter_table(c);
      CHECK(p.total() == count_parameters(model));
      for (int64_t i = 0; i < c.n_layers; ++i)
        CHECK(p.layers[static_cast<size_t>(i)].total() == count_parameters(model.layers[static_cast<size_t>(i)]));
    }
  }

  TEST_CASE("a token meets k of the experts") {
    TransformerConfig c = accounting_base();
    c.n_experts = 4, c.experts_per_token = 2, c.d_expert = 10;
    const int64_t two = parameter_table(c).active(), router = 4 * 16;
    c.n_experts = 0, c.d_ff = 20;
    CHECK(two == parameter_table(c).total() + 3 * router);
  }

  TEST_CASE("FLOPs are those a training step runs") {
    constexpr int64_t rows = 2, length = 9;
    for (const NamedConfig& row : accounting_configs()) {
      CAPTURE(row.name);
      const TransformerConfig& c = row.config;
      const Transformer model(c);
      const Tensor tokens = tokens_of(c, rows, length), targets = tokens_of(c, rows, length);
      const FlopTable f = flop_table(c, rows, length);
      const FlopCounter counter;
      const Tensor logits = model(tokens);
      CHECK(counter.total() == f.forward_pass());
      cross_entropy(logits, targets).backward();
      CHECK(counter.total() == executed_training_flops(c, rows, length));
      if (!c.fused_qkv) CHECK(counter.by_path().at("layers.0.attention.q_proj") == 3 * f.of("q_proj") / c.n_layers);
      CHECK(counter.by_path().at("layers.0.attention.o_proj") == 3 * f.of("o_proj") / c.n_layers);
      if (!c.tied_embeddings) CHECK(counter.by_path().at("lm_head") == 3 * f.of("lm_head"));
    }
  }

  TEST_CASE("the loss that holds no logits computes the same products") {
    const TransformerConfig c = accounting_base();
    const Transformer model(c);
    const Tensor tokens = tokens_of(c, 2, 9);
    const FlopCounter counter;
    model.loss(tokens, tokens).backward();
    CHECK(counter.total() == executed_training_flops(c, 2, 9));
  }

  TEST_CASE("only the gradients that are needed cost") {
    const Tensor x = randn({3, 5}), w = randn({7, 5}).requires_grad_();
    const FlopCounter counter;
    sum(linear(x, w)).backward();
    CHECK(counter.forward_pass() == 2 * 3 * 5 * 7);
    CHECK(counter.backward() == 2 * 3 * 5 * 7);
    const Tensor a = randn({2, 3, 4}), b = randn({2, 4, 6}).requires_grad_();
    sum(matmul(a, b)).backward();
    CHECK(counter.by_op().at("matmul") == 2 * (2 * 2 * 3 * 4 * 6));
  }

  TEST_CASE("attended pairs are those a loop finds") {
    for (const int64_t length : {1, 2, 7})
      for (const int64_t window : {0, 1, 3, 7, 9}) {
        int64_t pairs = 0;
        for (int64_t q = 0; q < length; ++q)
          for (int64_t k = 0; k <= q; ++k) pairs += window == 0 || k > q - window ? 1 : 0;
        CHECK(attended_pairs(length, window) == pairs);
      }
  }

  TEST_CASE("the cache holds what it is said to") {
    for (const NamedConfig& row : accounting_configs())
      for (const int64_t tokens : {3, 12})
        for (const DType dtype : {DType::f32, DType::bf16}) {
          CAPTURE(row.name);
          const TransformerConfig& c = row.config;
          const KeyValueCache cache(c, {.rows = 3, .dtype = dtype, .max_tokens = tokens});
          CHECK(kv_cache_bytes(c, 3, tokens, dtype) == cache.bytes());
        }
    const TransformerConfig c = accounting_base();
    CHECK(kv_cache_bytes(c, 1, 5) - kv_cache_bytes(c, 1, 4) == kv_cache_bytes_per_token(c));
  }

  TEST_CASE("a decoded token") {
    TransformerConfig c = accounting_base();
    const FlopTable all = flop_table(c, 1, 8, AttentionPairs::attended),
                    before = flop_table(c, 1, 7, AttentionPairs::attended);
    CHECK(decode_flop_table(c, 1, 8).forward_pass() == all.forward_pass() - before.forward_pass());
    const ParameterTable p = parameter_table(c);
    const DecodeCost one = decode_cost(c, 1, 8, DType::f32, DType::bf16),
                     four = decode_cost(c, 4, 8, DType::f32, DType::bf16);
    CHECK(one.weight_bytes == 4 * (p.total() - p.token_embedding + c.d_model));
    CHECK(one.cache_bytes == kv_cache_bytes(c, 1, 8));
    CHECK(four.flops == 4 * one.flops);
    CHECK(four.weight_bytes == one.weight_bytes + 4 * 3 * c.d_model);
    c.n_experts = 8, c.experts_per_token = 2;
    const int64_t expert = parameter_table(c).layers[0].experts / 8;
    CHECK(decode_cost(c, 2, 8, DType::f32, DType::f32).weight_bytes -
              decode_cost(c, 1, 8, DType::f32, DType::f32).weight_bytes ==
          4 * (3 * 2 * expert + c.d_model));
  }

  TEST_CASE("a report holds what the functions say, as text and as JSON") {
    const TransformerConfig c = config_of(table("accounting.json")["rows"][0]["config"]);
    MachineProfile machine{.threads = 1, .products = {{64, 10}, {1024, 40}}, .matvecs = {{1, 20}}};
    machine.pointwise_gbs = 10, machine.op_seconds = 1e-6;
    const auto report = accounting_report(c, {.machine = machine});
    const Json json = Json::parse(to_json(report));
    CHECK(json["parameters"]["total"] == 2127057600);
    CHECK(json["flops"]["forward"] == 4513336524800);
    CHECK(json["training_memory"]["peak"] == training_memory(c, 1, 1024).peak.total());
    CHECK(json["rules_of_thumb"]["n_heads · head_dim / d_model"]["kept"] == true);
    CHECK(json["rules_of_thumb"]["d_ff / d_model"]["kept"] == false);
    CHECK(json["rules_of_thumb"]["d_model / n_layers"]["value"] == "33.3");
    const std::string text = to_text(report);
    for (const char* line : {"2,127,057,600", "4.513 TFLOP   all pairs", "66.9 %", "tokens/s", "not kept"}) {
      const std::string wanted = line;
      CAPTURE(wanted);
      CHECK(text.find(wanted) != std::string::npos);
    }
  }

  TEST_CASE("a machine's profile is read as it was written, and times follow from it") {
    const MachineProfile m = measure_machine();
    CHECK(MachineProfile::from_json(m.to_json()).to_json() == m.to_json());
    const TransformerConfig c = accounting_base();
    CHECK(training_time(m, c, 2, 12).seconds() > 0);
    CHECK(training_time(m, c, 2, 12, true).seconds() > training_time(m, c, 2, 12).seconds());
    // Half-way between two sizes, in their logarithms, and beyond them.
    MachineProfile plain{.threads = 1, .products = {{10, 1}, {1000, 100}}, .matvecs = {{1, 8}, {100, 2}}};
    CHECK(plain.product_rate(2e6) == doctest::Approx(1e10));
    CHECK(plain.product_rate(1) == doctest::Approx(1e9));
    CHECK(plain.matvec_rate(1e7) == doctest::Approx(4e9));
    CHECK(plain.matvec_rate(2e9) == doctest::Approx(2e9));
    CHECK_THROWS_WITH_AS(
        MachineProfile::from_json(R"({"threads": 0})"),
        "machine profile: threads is missing or no positive number; write it with tapestry info --measure",
        FormatError);
  }

  TEST_CASE("what cannot be counted") {
    TransformerConfig c = accounting_base();
    CHECK_THROWS_WITH_AS(flop_table(c, 0, 5), "accounting: 0 rows of 5 tokens; both must be at least 1", ValueError);
    c.d_ff = c.vocab_size = c.n_layers = int64_t{1} << 31;
    CHECK_THROWS_AS(parameter_table(c), ValueError);
    c.n_heads = 0;
    CHECK_THROWS_AS(parameter_table(c), ValueError);
  }
}
