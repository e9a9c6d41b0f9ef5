// Writing and reading the files of a run.
// Next: loop.cpp.
#include "run_folder.h"

#include <filesystem>
#include <nlohmann/json.hpp>

#include "../../autograd/error.h"
#include "../../nn/atomic_file.h"
#include "../../nn/safetensors.h"
#include "../../nn/state_dict.h"
#include "../strict_json.h"

namespace tapestry {

namespace fs = std::filesystem;

bool RunFolder::holds_run() const {
  std::error_code ignored;
  return fs::exists(checkpoint(), ignored) || fs::exists(log(), ignored) || fs::exists(config(), ignored) ||
         fs::exists(model(), ignored);
}

void RunFolder::create() const {
  std::error_code error;
  fs::create_directories(path_, error);
  if (!error && !fs::is_directory(path_)) error = std::make_error_code(std::errc::not_a_directory);
  if (error) fail<IoError>("train: cannot make the folder '{}': {}", path_, error.message());
}

void write_run_config(const RunFolder& folder, const Trainer& trainer) {
  auto json = nlohmann::ordered_json::parse(trainer.config().to_json());
  json["tokenizer"] = nlohmann::ordered_json::parse(trainer.text().tokenizer().to_json());
  write_file_atomically(folder.config(), json.dump(2) + "\n");
}

std::unique_ptr<Tokenizer> tokenizer_in_config(const std::string& config_json) {
  const auto json = parse_strict_json("config", config_json);
  if (!json.is_object() || !json.contains("tokenizer")) return nullptr;
  auto tokenizer = tokenizer_from_json(json["tokenizer"].dump());
  return tokenizer->name() == "bpe" ? std::move(tokenizer) : nullptr;
}

void export_model(const RunFolder& folder, const Trainer& trainer) {
  write_safetensors(folder.model(), state_dict(trainer.model()));
}

}  // namespace tapestry
