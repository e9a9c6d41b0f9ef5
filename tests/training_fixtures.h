// A small text, a small configuration and a folder, for tests of training.
// Next: test_trainer.cpp.
#pragma once

#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "../models/training/trainer.h"

namespace tapestry::tests {

/// A folder that is gone when the test ends.
struct Folder {
  std::filesystem::path path;
  Folder() {
    static std::atomic<int> number{0};
    path = std::filesystem::temp_directory_path() /
           ("tapestry_test_" + std::to_string(::getpid()) + "_" + std::to_string(number++));
    std::filesystem::create_directory(path);
  }
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path, ignored);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  [[nodiscard]] std::string operator/(const std::string& name) const { return (path / name).string(); }
};

inline std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}
inline void write_file(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

/// About 3,000 ASCII characters with some structure.
inline std::string small_text() {
  std::string text;
  for (int i = 0; i < 100; ++i)
    text += "line " + std::to_string(i * 37 % 101) + ": the cat sat on mat " + std::to_string(i % 7) + ".\n";
  return text;
}

/// Two layers of width 16; takes about a millisecond a step.
inline TrainConfig small_config() {
  TrainConfig c;
  c.model = {
      .vocab_size = 0, .max_seq_len = 16, .n_layers = 2, .n_heads = 2, .n_kv_heads = 2, .d_model = 16, .d_ff = 32};
  c.context = 16;
  c.batch = 4;
  c.steps = 12;
  c.lr = 1e-2;
  c.lr_min = 1e-3;
  c.warmup = 2;
  c.eval_interval = 5;
  c.eval_windows = 4;
  return c;
}

}  // namespace tapestry::tests
