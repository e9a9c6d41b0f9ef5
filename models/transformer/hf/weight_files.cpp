// Finding shards, and cutting into them.
// Next: folder.cpp.
#include "weight_files.h"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

#include "../../../autograd/error.h"
#include "../../../nn/atomic_file.h"
#include "../../../nn/mapped_file.h"
#include "../../strict_json.h"

namespace tapestry::hf {

namespace fs = std::filesystem;

namespace {

constexpr const char* index_name = "model.safetensors.index.json";
const std::map<std::string, std::string> metadata = {{"format", "pt"}};  // without it, Python refuses the file

/// model*.safetensors, sorted.
std::vector<std::string> model_files(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder, error)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with("model") && name.ends_with(".safetensors")) names.push_back(name);
  }
  if (error) fail<IoError>("hf: cannot read the folder '{}': {}", folder, error.message());
  std::sort(names.begin(), names.end());
  return names;
}

int64_t width(std::string_view dtype) { return dtype == "F64" ? 8 : dtype == "F32" ? 4 : 2; }

}  // namespace

WeightFiles::WeightFiles(const std::string& folder) {
  std::error_code ignored;
  const auto has = [&](const char* name) { return fs::exists(folder + "/" + name, ignored); };
  if (has("model.safetensors")) {
    open(folder, "model.safetensors");
  } else if (has(index_name)) {
    open_indexed(folder, folder + "/" + index_name);
  } else {
    for (const std::string& name : model_files(folder)) open(folder, name);
    if (files_.empty() && (has("pytorch_model.bin") || has("pytorch_model.bin.index.json")))
      fail<FormatError>(
          "hf: '{}' holds pytorch_model.bin, a program and not only numbers, which is never read; save it as "
          "model.safetensors",
          folder);
    if (files_.empty()) fail<IoError>("hf: '{}' holds no model.safetensors, no {} and no shards", folder, index_name);
  }
  for (const auto& [name, file] : file_of_) names_.push_back(name);
}

void WeightFiles::open(const std::string& folder, const std::string& name) {
  files_.emplace_back(folder + "/" + name);
  file_names_.push_back(name);
  for (const std::string& weight : files_.back().names()) {
    const auto [it, is_new] = file_of_.emplace(weight, files_.size() - 1);
    if (!is_new)
      fail<FormatError>("hf: '{}': {} is in {} and in {}; keep one", folder, weight, file_names_[it->second], name);
  }
}

void WeightFiles::open_indexed(const std::string& folder, const std::string& index) {
  const MappedFile file(index);
  const auto json = parse_strict_json(index, file.bytes());
  if (!json.is_object() || !json.contains("weight_map") || !json["weight_map"].is_object())
    fail<FormatError>("hf: '{}' is no index: it must be a JSON object with a weight_map", index);
  std::map<std::string, std::set<std::string>> listed;  // shard, its weights
  for (const auto& [weight, shard] : json["weight_map"].items()) {
    if (!shard.is_string())
      fail<FormatError>("hf: '{}': {} is in {}; expected a file name", index, weight, shard.dump());
    const auto& name = shard.get_ref<const std::string&>();
    if (name.find('/') != std::string::npos || !name.ends_with(".safetensors"))
      fail<FormatError>("hf: '{}': {} is in '{}'; expected a .safetensors file beside the index", index, weight, name);
    listed[name].insert(weight);
  }
  for (const auto& [name, weights] : listed) {
    open(folder, name);
    for (const std::string& weight : weights)
      if (!files_.back().contains(weight))
        fail<FormatError>("hf: '{}': {} is not in {}, where it should be", index, weight, name);
    for (const std::string& weight : files_.back().names())
      if (!weights.contains(weight)) fail<FormatError>("hf: '{}' does not list {} of {}", index, weight, name);
  }
}

const SafetensorsFile& WeightFiles::file(const std::string& name) const {
  const auto it = file_of_.find(name);
  if (it == file_of_.end()) fail<FormatError>("hf: no file holds '{}'", name);
  return files_[it->second];
}

void write_weight_files(const std::string& folder, const std::vector<TensorToWrite>& weights, int64_t max_shard_bytes) {
  if (max_shard_bytes < 1) fail<ValueError>("hf: a shard of {} bytes holds nothing", max_shard_bytes);
  std::vector<std::vector<TensorToWrite>> shards(1);
  int64_t total = 0, held = 0;
  for (const TensorToWrite& w : weights) {
    const int64_t bytes = numel(w.shape) * width(w.dtype);
    if (held > 0 && held + bytes > max_shard_bytes) shards.emplace_back(), held = 0;
    shards.back().push_back(w);
    held += bytes;
    total += bytes;
  }
  if (shards.size() == 1) return write_safetensors(folder + "/model.safetensors", weights, metadata);
  nlohmann::ordered_json index = {{"metadata", {{"total_size", total}}},
                                  {"weight_map", nlohmann::ordered_json::object()}};
  for (size_t i = 0; i < shards.size(); ++i) {
    const std::string name = fmt::format("model-{:05}-of-{:05}.safetensors", i + 1, shards.size());
    write_safetensors(folder + "/" + name, shards[i], metadata);
    for (const TensorToWrite& w : shards[i]) index["weight_map"][w.name] = name;
  }
  write_file_atomically(folder + "/" + index_name, index.dump(2) + "\n");
}

}  // namespace tapestry::hf
