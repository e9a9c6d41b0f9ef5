// The folder of a run: which file is what. Not here: reading a trained model from it (text_model.h).
// Next: loop.h.
#pragma once

#include <string>

#include "trainer.h"

namespace tapestry {

/// Files of a run. checkpoint.safetensors is the run itself; the others follow from it or tell of it.
class RunFolder {
 public:
  explicit RunFolder(std::string path) : path_(std::move(path)) {}
  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] std::string checkpoint() const { return path_ + "/checkpoint.safetensors"; }
  [[nodiscard]] std::string log() const { return path_ + "/log.jsonl"; }
  [[nodiscard]] std::string config() const { return path_ + "/config.json"; }
  [[nodiscard]] std::string model() const { return path_ + "/model.safetensors"; }

  /// True if one of the four files is there.
  [[nodiscard]] bool holds_run() const;
  /// Makes the folder, with those above it. IoError if it cannot be made or is a file.
  void create() const;

 private:
  std::string path_;
};

/// config.json: the configuration and the tokenizer's description. Atomic.
void write_run_config(const RunFolder& folder, const Trainer& trainer);
/// The sub-word tokenizer that the text of a run's config.json holds, so that another run can start with it wherever its
/// file went; null for a tokenizer that is made for its text, and where there is none. FormatError for a damaged one.
std::unique_ptr<Tokenizer> tokenizer_in_config(const std::string& config_json);
/// model.safetensors: the weights under their names. Atomic.
void export_model(const RunFolder& folder, const Trainer& trainer);

}  // namespace tapestry
