// A published folder written, read, fine-tuned and written again.
// Next: ../checkpoints.md.
#include <tapestry/models/transformer/hf/adapter.h>
#include <tapestry/models/transformer/hf/folder.h>
#include <tapestry/nn/lora.h>

#include <cstdio>
#include <filesystem>

using namespace tapestry;

namespace {

void tune(const std::string& folder, const std::string& out) {
  const hf::LoadedModel loaded = hf::load_model(folder, {.dtype = DType::f32});
  std::printf("%s, %zu weights, %zu converted\n", loaded.family->model_type.data(), loaded.report.loaded.size(),
              loaded.report.converted.size());

  add_lora(*loaded.model, {.rank = 4, .alpha = 8, .targets = {"*.q_proj", "*.v_proj"}});
  hf::save_adapter(out + "/adapter", *loaded.model, *loaded.family);
  fold_lora(*loaded.model);
  hf::save_model(out + "/tuned", *loaded.model, *loaded.family, {.dtype = "BF16", .ids = loaded.ids});
}

}  // namespace

int main() {
  const std::filesystem::path place = std::filesystem::temp_directory_path() / "tapestry_example_checkpoints";
  std::filesystem::remove_all(place);
  const Transformer model(
      {.vocab_size = 256, .max_seq_len = 32, .n_layers = 2, .n_heads = 2, .n_kv_heads = 1, .d_model = 16, .d_ff = 32});
  hf::save_model(place / "llama", model, hf::family_for(model.config));
  tune(place / "llama", place);
  const bool written = std::filesystem::exists(place / "tuned/model.safetensors");
  std::filesystem::remove_all(place);
  return written ? 0 : 1;
}
