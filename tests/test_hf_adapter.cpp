// Adapters in PEFT's files.
// Not here: adapters themselves (test_lora.cpp).
// Next: ../models/transformer/hf/adapter.h.
#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "../autograd/error.h"
#include "../autograd/grad_mode.h"
#include "../models/transformer/hf/adapter.h"
#include "../models/transformer/hf/folder.h"
#include "../nn/lora.h"
#include "../nn/safetensors.h"
#include "../nn/visitor.h"
#include "../ops/ops.h"
#include "training_fixtures.h"

using namespace tapestry;
using namespace tapestry::tests;
using nlohmann::json;

namespace {

std::string golden(const std::string& model) { return std::string(TAPESTRY_GOLDEN_DIR) + "/models/" + model; }

/// B starts as zeros, of which little would be seen.
void fill_adapters(Transformer& model) {
  const NoGrad raw;
  for (const auto& [name, t] : lora_state_dict(model)) t.copy_(randn(t.shape()) * 0.1);
}
Tensor logits_of(const Transformer& model) {
  const NoGrad plain;
  return model(reshape(remainder(arange(24) * 7.0, 64.0), {2, 12}));
}
double distance(const Tensor& a, const Tensor& b) { return max(abs(to(a, DType::f64) - to(b, DType::f64))).item(); }

struct Adapted {
  hf::LoadedModel base;
  Tensor logits;
};
Adapted adapted(const std::string& model, const LoraOptions& options, const hf::LoadModelOptions& load = {}) {
  manual_seed(3);
  Adapted a{.base = hf::load_model(golden(model), load), .logits = {}};
  add_lora(*a.base.model, options);
  fill_adapters(*a.base.model);
  a.logits = logits_of(*a.base.model);
  return a;
}

}  // namespace

TEST_SUITE("hf_adapter") {
  TEST_CASE("written and read again: the same logits in every layout, under PEFT's names") {
    const struct {
      const char* model;
      std::vector<std::string> targets;
      const char* module;
      std::vector<std::string> listed;
    } rows[] = {
        {"llama-tiny", {"*.q_proj", "*.v_proj"}, "model.layers.1.self_attn.q_proj", {"q_proj", "v_proj"}},
        {"llama-tiny",
         {"layers.0.attention.k_proj"},
         "model.layers.0.self_attn.k_proj",
         {"model.layers.0.self_attn.k_proj"}},
        {"phi3-tiny", {"*.qkv_proj"}, "model.layers.0.self_attn.qkv_proj", {"qkv_proj"}},
        {"gpt2-tiny", {"*.attention.qkv_proj"}, "transformer.h.1.attn.c_attn", {"c_attn"}},
        {"mixtral-tiny", {"*.experts.*.gate_proj"}, "model.layers.0.block_sparse_moe.experts.3.w1", {"w1"}},
    };
    for (const auto& row : rows) {
      const std::string model = row.model, module = row.module;
      CAPTURE(model);
      const Folder folder;
      const Adapted first = adapted(model, {.rank = 3, .alpha = 6, .dropout = 0.25, .targets = row.targets});
      hf::save_adapter(folder / "adapter", *first.base.model, *first.base.family, "some/model");
      const TensorFile file = read_safetensors(folder / "adapter/adapter_model.safetensors");
      CHECK(file.tensors.size() == lora_state_dict(*first.base.model).size());
      CHECK(file.tensors.at("base_model.model." + module + ".lora_A.weight").size(0) == 3);
      CHECK(file.tensors.at("base_model.model." + module + ".lora_B.weight").size(1) == 3);
      const json config = json::parse(read_file(folder / "adapter/adapter_config.json"));
      CHECK(config["peft_type"] == "LORA");
      CHECK(config["r"] == 3);
      CHECK(config["lora_alpha"] == 6);
      CHECK(config["lora_dropout"] == 0.25);
      CHECK(config["fan_in_fan_out"] == (model == "gpt2-tiny"));
      CHECK(config["target_modules"] == row.listed);
      CHECK(config["base_model_name_or_path"] == "some/model");
      for (const RopeLayout layout : {RopeLayout::half, RopeLayout::adjacent}) {
        const hf::LoadedModel second = hf::load_model(golden(model), {.rope_layout = layout});
        CHECK(hf::load_adapter(folder / "adapter", *second.model, *second.family).loaded.size() == file.tensors.size());
        CHECK(distance(logits_of(*second.model), first.logits) < 1e-5);
        for (const auto& [name, p] : named_parameters(*second.model))
          CHECK(p.requires_grad() == (name.find(".lora_") != std::string::npos));
        const std::string again = folder / ("again" + std::to_string(static_cast<int>(layout)));
        hf::save_adapter(again, *second.model, *second.family, "some/model");
        for (const char* name : {"/adapter_model.safetensors", "/adapter_config.json"})
          CHECK(read_file(again + name) == read_file((folder / "adapter") + name));
      }
    }
  }

  TEST_CASE("a folded adapter is part of the weights that are saved; one beside them is not forgotten in silence") {
    const Folder folder;
    const Adapted a = adapted("llama-tiny", {.targets = {"*_proj"}});
    CHECK_THROWS_WITH_AS(hf::save_model(folder / "model", *a.base.model, *a.base.family),
                         "hf: the adapter of layers.0.attention.q_proj is not merged; merge_lora or save_adapter first",
                         ValueError);
    merge_lora(*a.base.model);
    hf::save_model(folder / "model", *a.base.model, *a.base.family);
    CHECK(distance(logits_of(*hf::load_model(folder / "model").model), a.logits) < 1e-5);
  }

  TEST_CASE("what cannot be written or does not fit is refused by name") {
    const Folder folder;
    const Adapted split = adapted("phi3-tiny", {.targets = {"*.q_proj"}}, {.split_fused = true});
    CHECK_THROWS_WITH_AS(hf::save_adapter(folder / "x", *split.base.model, *split.base.family),
                         doctest::Contains("layers.0.attention.q_proj and the phi3 weights "
                                           "model.layers.0.self_attn.qkv_proj.weight are fused differently"),
                         ValueError);
    const hf::LoadedModel plain = hf::load_model(golden("llama-tiny"));
    CHECK_THROWS_WITH_AS(hf::save_adapter(folder / "x", *plain.model, *plain.family),
                         "save_adapter: the model has no adapters; add_lora gives them", ValueError);
    const Adapted a = adapted("llama-tiny", {.rank = 2, .targets = {"*.q_proj"}});
    hf::save_adapter(folder / "a", *a.base.model, *a.base.family);
    const std::string path = folder / "a/adapter_config.json", weights = folder / "a/adapter_model.safetensors";
    const json config = json::parse(read_file(path));
    const TensorFile file = read_safetensors(weights);
    const auto refused = [&](const std::string& patch, auto edit) {
      json changed = config;
      changed.update(json::parse(patch));
      write_file(path, changed.dump());
      std::map<std::string, Tensor> tensors = file.tensors;
      edit(tensors);
      write_safetensors(weights, tensors);
      const hf::LoadedModel fresh = hf::load_model(golden("llama-tiny"));
      try {
        (void)hf::load_adapter(folder / "a", *fresh.model, *fresh.family);
      } catch (const FormatError& e) {
        CHECK(lora_state_dict(*fresh.model).empty());
        return std::string(e.what());
      }
      return std::string("not refused");
    };
    const auto has = [](const std::string& text, const char* part) { return text.find(part) != std::string::npos; };
    const auto nothing = [](auto&) {};
    const std::string q = "base_model.model.model.layers.0.self_attn.q_proj.lora_A.weight";
    CHECK(refused("{}", nothing) == "not refused");
    CHECK(has(refused(R"({"use_dora": true})", nothing), "use_dora is true, but must be false"));
    CHECK(has(refused(R"({"peft_type": "IA3"})", nothing), "peft_type is \"IA3\", but must be \"LORA\""));
    CHECK(has(refused(R"({"rank_pattern": {"q_proj": 4}})", nothing), "rank_pattern is {\"q_proj\":4}"));
    CHECK(has(refused(R"({"modules_to_save": ["lm_head"]})", nothing), "modules_to_save"));
    CHECK(has(refused(R"({"new_kind": 1})", nothing), "a LoRA adapter has no field new_kind (1)"));
    CHECK(has(refused(R"({"r": 3})", nothing), "is [3, 32] for rank 3, file has [2, 32]"));
    CHECK(has(refused("{}", [&](auto& t) { t.erase(q); }), "1 missing (base_model.model.model.layers.0"));
    CHECK(has(refused("{}", [&](auto& t) { t["base_model.model.model.layers.9.x.lora_A.weight"] = t.at(q); }),
              "1 unexpected (base_model.model.model.layers.9.x.lora_A.weight"));
    CHECK(has(refused("{}", [&](auto& t) { t = {{"x", zeros({1})}}; }), "none of its modules is there"));
  }
}
