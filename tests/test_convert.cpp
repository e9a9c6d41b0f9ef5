// `tapestry convert` as its user meets it.
// Not here: what it calls (test_hf_folder.cpp, test_hf_adapter.cpp).
// Next: ../models/programs/convert.cpp.
#include <doctest/doctest.h>
#include <sys/wait.h>

#include <cstdio>

#include "../models/training/text_model.h"
#include "../models/transformer/hf/adapter.h"
#include "../nn/lora.h"
#include "../ops/ops.h"
#include "training_fixtures.h"

using namespace tapestry;
using namespace tapestry::tests;

namespace {

std::string golden(const std::string& model) { return std::string(TAPESTRY_GOLDEN_DIR) + "/models/" + model; }

struct Outcome {
  int status = -1;
  std::string text;  ///< both streams
};
Outcome convert(const std::string& arguments) {
  Outcome outcome;
  std::FILE* pipe = ::popen((TAPESTRY_PROGRAM " convert " + arguments + " 2>&1").c_str(), "r");
  for (int c = std::fgetc(pipe); c != EOF; c = std::fgetc(pipe)) outcome.text += static_cast<char>(c);
  outcome.status = WEXITSTATUS(::pclose(pipe));
  return outcome;
}

bool same_weights(const Module& a, const Module& b) {
  const StateDict x = state_dict(a), y = state_dict(b);
  if (x.size() != y.size()) return false;
  for (const auto& [name, t] : x)
    if (!y.contains(name) || !all(equal(t, y.at(name))).item<bool>()) return false;
  return true;
}

}  // namespace

TEST_SUITE("convert") {
  TEST_CASE("there and back, with the tokenizer and all that lies beside the weights") {
    const Folder folder;
    const hf::LoadedModel first = hf::load_model(golden("qwen3-tiny"));
    hf::save_model(folder / "a", *first.model, *first.family, {.dtype = "BF16", .ids = first.ids});
    write_file(folder / "a/generation_config.json", R"({"eos_token_id": [2, 5]})");
    write_file(folder / "a/tokenizer.json",
               R"({"version": "1.0", "added_tokens": [], "normalizer": null, "pre_tokenizer": {"type": "ByteLevel",
                   "add_prefix_space": false, "trim_offsets": true, "use_regex": true}, "post_processor": null,
                   "decoder": {"type": "ByteLevel"}, "model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2},
                   "merges": ["a b"]}})");
    const Outcome out = convert("--from " + (folder / "a") + " --to " + (folder / "run"));
    CHECK(out.status == 0);
    CHECK(out.text == "read: qwen3 model, 24 weights, 24 of them in another dtype, 0 passed over\nwritten: run in " +
                          (folder / "run") + ", BF16, tokenizer.json, generation_config.json\n");
    const TextModel run = load_text_model(folder / "run");
    CHECK(run.eos_ids == std::vector<int32_t>{2, 5});
    CHECK(run.tokenizer->encode("abba") == std::vector<int32_t>{2, 1, 0});
    CHECK(same_weights(*run.model, *hf::load_model(folder / "a").model));
    CHECK(convert("--from " + (folder / "run") + " --to " + (folder / "b") + " --dtype bf16").status == 0);
    for (const char* name : {"/model.safetensors", "/tokenizer.json", "/generation_config.json"})
      CHECK(read_file((folder / "b") + name) == read_file((folder / "a") + name));
    CHECK(hf::load_model(folder / "b").family->model_type == "qwen3");
  }

  TEST_CASE("to another family, dtype and size of files; adapters are folded in") {
    const Folder folder;
    const Outcome out = convert("--from " + golden("cs336-tiny") + " --to " + (folder / "a") +
                                " --family llama --dtype f16 --shard-size 20KB");
    CHECK(out.status == 0);
    CHECK(std::filesystem::exists(folder / "a/model.safetensors.index.json"));
    CHECK(hf::load_model(folder / "a").stored_dtype == "F16");
    CHECK(hf::load_model(folder / "a").family->model_type == "llama");
    const hf::LoadedModel tuned = hf::load_model(folder / "a");
    add_lora(*tuned.model, {.rank = 2});
    for (const auto& [name, t] : lora_state_dict(*tuned.model)) t.copy_(ones(t.shape()));
    hf::save_adapter(folder / "adapter", *tuned.model, *tuned.family);
    CHECK(convert("--from " + (folder / "a") + " --to " + (folder / "b") + " --family llama --dtype f32 --adapter " +
                  (folder / "adapter"))
              .status == 0);
    fold_lora(*tuned.model);
    CHECK(same_weights(*tuned.model, *hf::load_model(folder / "b").model));
  }

  TEST_CASE("a refusal ends in one line and leaves nothing behind") {
    const Folder folder;
    const struct {
      std::string arguments;
      int status;
      const char* text;
    } rows[] = {
        {"--from " + golden("gemma2-tiny") + " --to out --family llama", 1,
         "tapestry: hf: a llama model cannot have this norm_placement"},
        {"--from " + golden("llama-tiny") + " --to out --family bert", 1, "model_type 'bert' is unknown"},
        {"--from " + golden("llama-tiny") + " --to out --dtype f64", 2, "--dtype"},
        {"--from " + golden("llama-tiny") + " --to out --shard-size 3XB", 2, "unit not recognized"},
        {"--from " + (folder / "nothing") + " --to out", 1, "nothing/config.json"},
        {"--from " + golden("llama-tiny") + " --to " + golden("gpt2-tiny"), 1, "holds a model already"},
        {"--from " + golden("llama-tiny") + " --to " + golden("gpt2-tiny") + " --family llama", 1,
         "already; name an empty folder"},
    };
    for (const auto& row : rows) {
      CAPTURE(row.arguments);
      const Outcome out = convert(row.arguments);
      CHECK(out.status == row.status);
      CHECK_MESSAGE(out.text.find(row.text) != std::string::npos, out.text);
      const size_t error = out.text.find("tapestry: ");
      CHECK(out.text.find('\n', error) == out.text.size() - 1);
      CHECK_FALSE(std::filesystem::exists("out"));
    }
  }
}
