// A published model's folder, read and written: config.json, weights, and what lies beside them.
// Not here: a family's names and fields (family.h), adapters (adapter.h).
// Next: adapter.h.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "../../../nn/state_dict.h"
#include "../lm.h"
#include "family.h"

namespace tapestry::hf {

struct LoadModelOptions {
  DType dtype = DType::f32;  ///< of the parameters, whatever the files hold
  bool strict = true;        ///< anything missing, unexpected or mismatched is an error; false: load what fits
  bool split_fused = false;  ///< q, k, v, gate and up as parameters of their own where the family fuses them
  std::optional<RopeLayout> rope_layout = {};  ///< reorders the rows that turn; none: as the family has it
};

struct LoadedModel {
  std::shared_ptr<Transformer> model;  ///< in eval mode
  const Family* family = nullptr;
  ModelIds ids = {};                      ///< of generation_config.json, or else of config.json
  LoadReport report = {};                 ///< under the files' names
  std::vector<std::string> ignored = {};  ///< weights of the files that are none: buffers of old versions
  std::string stored_dtype = {};          ///< of the embedding: "BF16"
};

/// Is there a config.json with a model_type?
bool is_model_folder(const std::string& folder);
/// Builds the model config.json describes and reads its weights shard by shard into the parameters: at no time are all
/// of them in memory twice. A tied head may be in the files if it is equal to the embedding. IoError or FormatError,
/// naming the file, and the field or the weights: all that is missing, unexpected or mismatched at once.
LoadedModel load_model(const std::string& folder, const LoadModelOptions& options = {});

struct SaveModelOptions {
  std::string dtype = "F32";                ///< of the files: "F32", "BF16", "F16" or "F64"
  int64_t max_shard_bytes = 5'000'000'000;  ///< larger ones are cut
  ModelIds ids = {};
};
/// Writes config.json and the weights of a model under the names of the family; a tied head is written once. FormatError,
/// naming the field, if the family cannot express the config; ValueError for another dtype, for adapters that are not
/// merged, or if the folder holds a model; IoError.
void save_model(const std::string& folder, const Transformer& model, const Family& family,
                const SaveModelOptions& options = {});
/// The first family that can express the config, if possible one that fuses the same projections. FormatError, with what keeps it from being a llama, if there is none.
const Family& family_for(const TransformerConfig& config);

/// The ids of generation_config.json where it has them, the given ones otherwise.
ModelIds generation_ids(const std::string& folder, ModelIds otherwise);
/// Copies tokenizer.json, generation_config.json and their like as they are. Returns their names.
std::vector<std::string> copy_companions(const std::string& from, const std::string& to);

}  // namespace tapestry::hf
