// Folders of published models: weights in all their forms, what does not fit, and what is written.
// Not here: config.json (test_hf_config.cpp), values (test_golden_models.cpp), adapters (test_hf_adapter.cpp).
// Next: test_hf_adapter.cpp.
#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "../autograd/error.h"
#include "../autograd/grad_mode.h"
#include "../models/training/text_model.h"
#include "../models/transformer/hf/folder.h"
#include "../models/transformer/hf/weight_files.h"
#include "../nn/float16.h"
#include "../nn/visitor.h"
#include "../ops/ops.h"
#include "training_fixtures.h"

using namespace tapestry;
using namespace tapestry::tests;
using nlohmann::json;

namespace {

constexpr const char* models[] = {"cs336-tiny",   "gemma2-tiny",    "gemma3-tiny",      "gpt2-tiny",
                                  "llama-tiny",   "minimind-tiny",  "mistral-tiny",     "mixtral-tiny",
                                  "olmo2-tiny",   "phi3-tiny",      "qwen2-tiny",       "qwen3-tiny",
                                  "smollm3-tiny", "qwen3-moe-tiny", "minimind-moe-tiny"};

std::string golden(const std::string& model) { return std::string(TAPESTRY_GOLDEN_DIR) + "/models/" + model; }

using WeightsByName = std::map<std::string, Tensor>;

bool same(const Tensor& a, const Tensor& b) {
  return a.shape() == b.shape() && a.dtype() == b.dtype() && all(equal(a, b)).item<bool>();
}
bool same(const WeightsByName& a, const WeightsByName& b) {
  if (a.size() != b.size()) return false;
  for (const auto& [name, t] : a)
    if (!b.contains(name) || !same(t, b.at(name))) return false;
  return true;
}
WeightsByName all_weights(const std::string& folder) {
  const hf::WeightFiles files(folder);
  WeightsByName weights;
  for (const std::string& name : files.names()) weights[name] = files.read(name);
  return weights;
}

/// A folder with the golden config, some fields changed, and these weights.
void make(const std::string& folder, const std::string& model, const WeightsByName& weights,
          const std::string& patch = "{}") {
  std::filesystem::create_directories(folder);
  json config = json::parse(read_file(golden(model) + "/config.json"));
  config.update(json::parse(patch));
  write_file(folder + "/config.json", config.dump());
  write_safetensors(folder + "/model.safetensors", weights);
}

Tensor logits_of(const Transformer& model) {
  const NoGrad plain;
  const Tensor ids = remainder(arange(24) * 7.0, 64.0);
  return model(reshape(ids, {2, 12}));
}
double distance(const Tensor& a, const Tensor& b) { return max(abs(to(a, DType::f64) - to(b, DType::f64))).item(); }

template <class E, class F>
std::string error_of(F&& f) {
  try {
    f();
  } catch (const E& e) {
    return e.what();
  }
  return "no error";
}

}  // namespace

TEST_SUITE("hf_folder") {
  TEST_CASE("every family: written again, in one file or in shards, it is bit for bit what was read") {
    for (const char* name : models) {
      const std::string model = name;
      CAPTURE(model);
      const Folder folder;
      const WeightsByName before = all_weights(golden(model));
      const hf::LoadedModel loaded = hf::load_model(golden(model));
      CHECK(loaded.report.loaded.size() == before.size());
      CHECK(loaded.report.converted.empty());
      CHECK(loaded.ignored.empty());
      CHECK_FALSE(loaded.model->is_training());
      hf::save_model(folder / "whole", *loaded.model, *loaded.family, {.ids = loaded.ids});
      hf::save_model(folder / "cut", *loaded.model, *loaded.family, {.max_shard_bytes = 20'000});
      CHECK(std::filesystem::exists(folder / "whole/model.safetensors"));
      CHECK(std::filesystem::exists(folder / "cut/model.safetensors.index.json"));
      CHECK(same(all_weights(folder / "whole"), before));
      CHECK(same(all_weights(folder / "cut"), before));
      const hf::LoadedModel again = hf::load_model(folder / "cut");
      CHECK(again.model->config == loaded.model->config);
      CHECK(same(state_dict(*again.model), state_dict(*loaded.model)));
      std::filesystem::remove(folder / "cut/model.safetensors.index.json");
      CHECK(same(all_weights(folder / "cut"), before));  // shards without an index
    }
  }

  TEST_CASE("fused projections are kept or split, and rotary rows reordered, without a change of the logits") {
    const struct {
      const char *model, *patch;
    } rows[] = {{"phi3-tiny", "{}"},   {"phi3-tiny", R"({"partial_rotary_factor": 0.5})"},
                {"gpt2-tiny", "{}"},   {"qwen2-tiny", "{}"},
                {"qwen3-tiny", "{}"},  {"olmo2-tiny", "{}"},
                {"gemma3-tiny", "{}"}, {"smollm3-tiny", "{}"},
                {"cs336-tiny", "{}"}};
    for (const auto& row : rows) {
      const std::string model = row.model, patch = row.patch;
      CAPTURE(model);
      CAPTURE(patch);
      const Folder folder;
      const WeightsByName weights = all_weights(golden(model));
      make(folder / "a", model, weights, patch);
      const hf::LoadedModel kept = hf::load_model(folder / "a", {.dtype = DType::f64});
      const Tensor expected = logits_of(*kept.model);
      for (const bool split : {false, true}) {
        for (const RopeLayout layout : {RopeLayout::adjacent, RopeLayout::half}) {
          const hf::LoadedModel other =
              hf::load_model(folder / "a", {.dtype = DType::f64, .split_fused = split, .rope_layout = layout});
          CHECK(other.model->config.fused_qkv == (kept.model->config.fused_qkv && !split));
          CHECK(distance(logits_of(*other.model), expected) < 1e-12);
          const std::string back = folder / ("back" + std::to_string(split) + std::to_string(static_cast<int>(layout)));
          hf::save_model(back, *other.model, *other.family);
          CHECK(same(all_weights(back), weights));
        }
      }
    }
  }

  TEST_CASE("weights in half the bytes: read as f32 or bf16, written rounded, told in the report") {
    const Folder folder;
    const hf::LoadedModel loaded = hf::load_model(golden("llama-tiny"));
    for (const auto& [dtype, torch] : {std::pair{"F16", "float16"}, {"BF16", "bfloat16"}}) {
      const std::string name = dtype;
      CAPTURE(name);
      hf::save_model(folder / name, *loaded.model, *loaded.family, {.dtype = name});
      CHECK(json::parse(read_file(folder / (name + "/config.json")))["torch_dtype"] == torch);
      const hf::LoadedModel half = hf::load_model(folder / name);
      CHECK(half.stored_dtype == name);
      CHECK(half.report.converted.size() == half.report.loaded.size());
      CHECK(half.report.converted[0] == "lm_head.weight: " + name + " loaded as f32");
      for (const auto& [path, value] : state_dict(*loaded.model)) {
        const Tensor back = state_dict(*half.model).at(path);
        CHECK(
            all(less_equal(abs(back - value), abs(value) * (name == "F16" ? 0x1p-11 : 0x1p-8) + 0x1p-25)).item<bool>());
      }
      hf::save_model(folder / (name + "2"), *half.model, *half.family, {.dtype = name});
      CHECK(read_file(folder / (name + "2/model.safetensors")) == read_file(folder / (name + "/model.safetensors")));
    }
    const hf::LoadedModel narrow = hf::load_model(folder / "BF16", {.dtype = DType::bf16});
    CHECK(narrow.report.converted.empty());
    CHECK(narrow.model->lm_head->weight.dtype() == DType::bf16);
    CHECK(same(to(narrow.model->lm_head->weight, DType::f32),
               hf::load_model(folder / "BF16").model->lm_head->weight.detach()));
    loaded.model->norm->weight.detach().fill_(70000);
    CHECK_THROWS_WITH_AS(hf::save_model(folder / "large", *loaded.model, *loaded.family, {.dtype = "F16"}),
                         "write_safetensors: 'model.norm.weight' holds 70000, beyond F16's largest number 65504; "
                         "choose BF16 or F32",
                         ValueError);
    CHECK_THROWS_WITH_AS(hf::save_model(folder / "x", *loaded.model, *loaded.family, {.dtype = "I64"}),
                         "hf: weights cannot be saved as 'I64'; choose F32, BF16, F16 or F64", ValueError);
  }

  TEST_CASE("half precision: all 65,536 numbers there and back, and the nearest one, ties to even") {
    for (uint32_t h = 0; h < 0x10000; ++h) {
      const float f = half_to_float(static_cast<uint16_t>(h));
      const bool nan = (h & 0x7FFF) > 0x7C00;
      if (nan ? !std::isnan(f) : float_to_half(f) != h) FAIL_CHECK("half " << h);
      if ((h & 0x7FFF) >= 0x7BFF) continue;  // the next larger one is infinite
      const float next = half_to_float(static_cast<uint16_t>(h + 1)), middle = (f + next) / 2;
      const bool right = float_to_half(middle) == ((h & 1) != 0 ? h + 1 : h) &&
                         float_to_half(std::nextafter(middle, f)) == h &&
                         float_to_half(std::nextafter(middle, next)) == h + 1;
      if (!right) FAIL_CHECK("after half " << h);
    }
    CHECK(float_to_half(65519.996F) == 0x7BFF);
    CHECK(float_to_half(65520.0F) == 0x7C00);
    CHECK(float_to_half(-1e30F) == 0xFC00);
    CHECK(std::isnan(half_to_float(float_to_half(std::nanf("")))));
  }

  TEST_CASE("what is missing, unexpected or of another shape is one error; without strictness the rest is loaded") {
    const Folder folder;
    WeightsByName weights = all_weights(golden("llama-tiny"));
    const Tensor norm = weights.at("model.norm.weight");
    weights.erase("model.norm.weight");
    weights["model.norms.weight"] = norm;
    weights["model.layers.0.self_attn.o_proj.weight"] = zeros({32, 16});
    weights["lm_head.weight"] = arange(4);
    make(folder / "a", "llama-tiny", weights);
    CHECK(error_of<FormatError>([&] { (void)hf::load_model(folder / "a"); }) ==
          "hf: '" + (folder / "a") +
              "' does not fit a llama model: 1 missing (model.norm.weight), 1 unexpected (model.norms.weight, nearest "
              "model.norm.weight), 2 shape mismatches: lm_head.weight is [64, 32], file has [4] I64; "
              "model.layers.0.self_attn.o_proj.weight is [32, 32], file has [32, 16] F32");
    manual_seed(1);
    const hf::LoadedModel loaded = hf::load_model(folder / "a", {.strict = false});
    CHECK(loaded.report.missing == std::vector<std::string>{"model.norm.weight"});
    CHECK(loaded.report.unexpected == std::vector<std::string>{"model.norms.weight"});
    CHECK(loaded.report.mismatched.size() == 2);
    CHECK(loaded.report.loaded.size() == 18);
    CHECK(same(loaded.model->token_embedding.weight.detach(), weights.at("model.embed_tokens.weight")));
    CHECK(all(equal(loaded.model->norm->weight, 1.0)).item<bool>());  // as it starts
  }

  TEST_CASE("old buffers are passed over, and names may lack the prefix of the whole model") {
    const Folder folder;
    WeightsByName weights;
    for (const auto& [name, t] : all_weights(golden("gpt2-tiny"))) weights[name.substr(12)] = t;  // "transformer."
    weights["h.0.attn.bias"] = ones({1, 1, 32, 32}, DType::boolean);
    weights["h.1.attn.masked_bias"] = zeros({});
    make(folder / "a", "gpt2-tiny", weights);
    const hf::LoadedModel bare = hf::load_model(folder / "a");
    CHECK(bare.ignored == std::vector<std::string>{"h.0.attn.bias", "h.1.attn.masked_bias"});
    CHECK(same(state_dict(*bare.model), state_dict(*hf::load_model(golden("gpt2-tiny")).model)));
    WeightsByName llama = all_weights(golden("llama-tiny"));
    llama["model.layers.1.self_attn.rotary_emb.inv_freq"] = zeros({4});
    make(folder / "b", "llama-tiny", llama);
    CHECK(hf::load_model(folder / "b").ignored.size() == 1);
  }

  TEST_CASE("a tied head is written once, and read twice only if it is the embedding") {
    const Folder folder;
    WeightsByName weights = all_weights(golden("qwen3-tiny"));
    CHECK_FALSE(weights.contains("lm_head.weight"));
    weights["lm_head.weight"] = weights.at("model.embed_tokens.weight");
    make(folder / "equal", "qwen3-tiny", weights);
    const hf::LoadedModel loaded = hf::load_model(folder / "equal");
    CHECK_FALSE(loaded.model->lm_head);
    weights["lm_head.weight"] = weights.at("lm_head.weight") + 1.0;
    make(folder / "other", "qwen3-tiny", weights);
    CHECK_THROWS_WITH_AS((void)hf::load_model(folder / "other"),
                         doctest::Contains("lm_head.weight is not the same as model.embed_tokens.weight, though "
                                           "tie_word_embeddings says so"),
                         FormatError);
    make(folder / "untied", "qwen3-tiny", weights, R"({"tie_word_embeddings": false})");
    CHECK(hf::load_model(folder / "untied").model->lm_head);
  }

  TEST_CASE("faults of indexes and folders are named") {
    const Folder folder;
    const hf::LoadedModel loaded = hf::load_model(golden("llama-tiny"));
    hf::save_model(folder / "cut", *loaded.model, *loaded.family, {.max_shard_bytes = 40'000});
    const std::string index = folder / "cut/model.safetensors.index.json", whole = read_file(index);
    const json parsed = json::parse(whole);
    CHECK(parsed["metadata"]["total_size"] == 19616 * 4);
    const auto fault = [&](auto edit) {
      json j = parsed;
      edit(j["weight_map"]);
      write_file(index, j.dump());
      return error_of<FormatError>([&] { (void)hf::load_model(folder / "cut"); });
    };
    CHECK(fault([](json& m) {
            m["model.norm.weight"] = "model-00001-of-00003.safetensors";
          }).ends_with("model.norm.weight is not in model-00001-of-00003.safetensors, where it should be"));
    CHECK(fault([](json& m) { m.erase("model.norm.weight"); }).find("does not list model.norm.weight of model-000") !=
          std::string::npos);
    CHECK(fault([](json& m) { m["x"] = "../x.safetensors"; }).find("expected a .safetensors file beside the index") !=
          std::string::npos);
    CHECK(fault([](json& m) { m["x"] = 3; }).ends_with("x is in 3; expected a file name"));
    CHECK(fault([](json& m) { m = json::array(); }).ends_with("it must be a JSON object with a weight_map"));
    write_file(index, whole);
    std::filesystem::copy_file(folder / "cut/model-00001-of-00003.safetensors", folder / "cut/model-copy.safetensors");
    std::filesystem::remove(index);
    CHECK(error_of<FormatError>([&] {
            (void)hf::load_model(folder / "cut");
          }).ends_with(" is in model-00001-of-00003.safetensors and in model-copy.safetensors; keep one"));
    CHECK(error_of<ValueError>([&] {
            hf::save_model(folder / "cut", *loaded.model, *loaded.family);
          }).ends_with("already; name an empty folder"));
    std::filesystem::create_directory(folder / "empty");
    CHECK_FALSE(hf::is_model_folder(folder / "empty"));
    CHECK_THROWS_AS((void)hf::load_model(folder / "empty"), IoError);
    write_file(folder / "empty/config.json", read_file(golden("llama-tiny") + "/config.json"));
    CHECK(hf::is_model_folder(folder / "empty"));
    CHECK_THROWS_WITH_AS((void)hf::load_model(folder / "empty"), doctest::Contains("holds no model.safetensors"),
                         IoError);
    write_file(folder / "empty/pytorch_model.bin", "x");
    CHECK_THROWS_WITH_AS((void)hf::load_model(folder / "empty"), doctest::Contains("which is never read"), FormatError);
  }

  TEST_CASE("a trained model becomes a published one and back: the same logits, the same bits") {
    const Folder folder;
    manual_seed(5);
    TextModel own{.model = std::make_shared<Transformer>(TransformerConfig{.vocab_size = 64,
                                                                           .max_seq_len = 32,
                                                                           .n_layers = 2,
                                                                           .n_heads = 4,
                                                                           .n_kv_heads = 2,
                                                                           .d_model = 32,
                                                                           .d_ff = 48}),
                  .tokenizer = {}};
    own.model->eval();
    save_text_model(folder / "run", own);
    const TextModel run = load_text_model(folder / "run", {.need_tokenizer = false});
    CHECK(run.model->config == own.model->config);
    CHECK(same(state_dict(*run.model), state_dict(*own.model)));
    const hf::Family& family = hf::family_for(run.model->config);
    hf::save_model(folder / "llama", *run.model, family);
    const hf::LoadedModel llama = hf::load_model(folder / "llama");
    CHECK(llama.model->config.rope_layout == RopeLayout::half);
    CHECK(distance(logits_of(*llama.model), logits_of(*own.model)) < 1e-5);
    const hf::LoadedModel back = hf::load_model(folder / "llama", {.rope_layout = RopeLayout::adjacent});
    CHECK(back.model->config == own.model->config);
    CHECK(same(state_dict(*back.model), state_dict(*own.model)));
    CHECK_THROWS_WITH_AS(save_text_model(folder / "run", own), doctest::Contains("holds a model already"), ValueError);
    CHECK_THROWS_WITH_AS((void)load_text_model(folder / "run"), doctest::Contains("holds no tokenizer"), FormatError);
  }

  TEST_CASE("one loader for both forms, with tokenizer and ids") {
    const Folder folder;
    const hf::LoadedModel loaded = hf::load_model(golden("llama-tiny"));
    hf::save_model(folder / "a", *loaded.model, *loaded.family, {.ids = loaded.ids});
    TextModel m = load_text_model(folder / "a", {.need_tokenizer = false});
    CHECK(m.family == "llama");
    CHECK(m.eos_ids == std::vector<int32_t>{2});
    CHECK(m.bos_id == 1);
    write_file(folder / "a/generation_config.json", R"({"eos_token_id": [2, 7], "do_sample": true})");
    m = load_text_model(folder / "a", {.dtype = DType::bf16, .need_tokenizer = false});
    CHECK(m.eos_ids == std::vector<int32_t>{2, 7});
    CHECK(m.model->lm_head->weight.dtype() == DType::bf16);
    CHECK(hf::copy_companions(folder / "a", folder.path.string()) ==
          std::vector<std::string>{"generation_config.json"});
    m.tokenizer = std::make_unique<CharTokenizer>("abc");
    save_text_model(folder / "run", m, "BF16");
    write_file(folder / "run/generation_config.json", R"({"eos_token_id": [2, 7]})");
    const TextModel run = load_text_model(folder / "run");
    CHECK(run.family.empty());
    CHECK(run.tokenizer->to_json() == m.tokenizer->to_json());
    CHECK(run.eos_ids == std::vector<int32_t>{2, 7});
    m.tokenizer = std::make_unique<ByteTokenizer>();
    save_text_model(folder / "large", m);
    CHECK_THROWS_WITH_AS((void)load_text_model(folder / "large"),
                         doctest::Contains("has vocab_size 64, but its tokenizer has 256"), FormatError);
    write_file(folder / "run/config.json", "{}");
    CHECK_THROWS_WITH_AS((void)load_text_model(folder / "run"), doctest::Contains("is not the config of a run"),
                         FormatError);
  }
}
