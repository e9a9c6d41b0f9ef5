// What `generate` and `chat` have in common on the command line: the model, how tokens are drawn, what ends a text.
// Next: generate.cpp.
#pragma once

#include <string>
#include <vector>

#include "program.h"
#include "sample_text.h"

namespace tapestry::programs {

struct TextOptions {
  std::string model, dtype = "f32";
  GenerateOptions generate{.max_tokens = 500, .sampler = {.temperature = default_temperature}, .seed = 1};
  std::vector<std::string> stop;
  bool ignore_eos = false;
};
/// Adds them to a command; they must outlive its parsing.
void add_text_options(CLI::App& command, TextOptions& options);

/// --model, --dtype and --threads.
void add_model_options(CLI::App& command, std::string& folder, std::string& dtype);
/// The model of a folder, with its tokenizer.
TextModel load_model(const std::string& folder, const std::string& dtype);
/// One line on stderr: tokens, seconds, tokens a second, and why it ended.
void report_speed(int64_t prompt_tokens, const Generation& generation);

}  // namespace tapestry::programs
