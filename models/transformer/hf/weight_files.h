// The *.safetensors of a folder: one file, or shards with or without an index.
// Not here: whose weights they are (folder.h).
// Next: folder.h.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "../../../nn/safetensors.h"

namespace tapestry::hf {

/// The weights of a folder by name. All headers are read and checked at once; the data stays in the files.
class WeightFiles {
 public:
  /// model.safetensors, or the shards that model.safetensors.index.json lists, or else all model*.safetensors. IoError or
  /// FormatError, naming the file: none of these, a shard the index does not name rightly, a weight in two shards.
  explicit WeightFiles(const std::string& folder);

  [[nodiscard]] const std::vector<std::string>& names() const { return names_; }
  [[nodiscard]] bool contains(const std::string& name) const { return file_of_.contains(name); }
  [[nodiscard]] std::string_view dtype(const std::string& name) const { return file(name).dtype(name); }
  [[nodiscard]] const Shape& shape(const std::string& name) const { return file(name).shape(name); }
  [[nodiscard]] Tensor read(const std::string& name) const { return file(name).read(name); }

 private:
  void open(const std::string& folder, const std::string& name);
  void open_indexed(const std::string& folder, const std::string& index);
  [[nodiscard]] const SafetensorsFile& file(const std::string& name) const;

  std::vector<SafetensorsFile> files_;
  std::vector<std::string> file_names_;
  std::map<std::string, size_t> file_of_;
  std::vector<std::string> names_;
};

/// Writes model.safetensors, or, where that would be larger than `max_shard_bytes`, model-00001-of-0000n.safetensors and
/// so on with their index; a single tensor is never cut.
void write_weight_files(const std::string& folder, const std::vector<TensorToWrite>& weights, int64_t max_shard_bytes);

}  // namespace tapestry::hf
