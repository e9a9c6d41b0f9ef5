// A model with its tokenizer, from a folder: that of a run, or one in Hugging Face's form.
// Not here: the forms themselves (run_folder.h, ../transformer/hf/folder.h).
// Next: ../transformer/generate.h.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "../text/tokenizer.h"
#include "../transformer/hf/folder.h"

namespace tapestry {

struct TextModel {
  std::shared_ptr<Transformer> model;    ///< in eval mode
  std::unique_ptr<Tokenizer> tokenizer;  ///< null if the folder has none and none was needed
  std::vector<int32_t> eos_ids = {};     ///< tokens that end a text
  std::optional<int32_t> bos_id = {};    ///< the one that begins a text
  std::string family = {};               ///< of a folder in Hugging Face's form: "llama"
};

struct TextModelOptions {
  DType dtype = DType::f32;    ///< of the parameters
  bool need_tokenizer = true;  ///< FormatError if there is none; false: a published folder's is not read
};
/// config.json says which form it is: one with "model_type" is Hugging Face's, one with "model" a run's. IoError or
/// FormatError, naming the file, and the field or weight.
TextModel load_text_model(const std::string& folder, const TextModelOptions& options = {});

/// A loaded model with the tokenizer that lies in the folder, if there is one.
TextModel with_tokenizer(const std::string& folder, hf::LoadedModel loaded);

/// Writes config.json and model.safetensors of a run, from which load_text_model reads the same. `file_dtype` is that of
/// the weights: "F32", "BF16" or "F16". ValueError if the folder holds a run or model; IoError.
void save_text_model(const std::string& folder, const TextModel& model, const std::string& file_dtype = "F32");

}  // namespace tapestry
