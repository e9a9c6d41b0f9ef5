// What `generate` and `chat` have in common on the command line: the model, how tokens are drawn, what ends a text.
// Next: generate.cpp.
#pragma once

#include <string>
#include <vector>

#include "program.h"
#include "sample_text.h"

namespace tapestry::programs {

struct ModelOptions {
  std::string folder, dtype = "f32", adapter;
};
/// --model, --dtype, --adapter and --threads; they must outlive the command's parsing.
void add_model_options(CLI::App& command, ModelOptions& options);
/// The model of the folder, with its tokenizer, and with the adapter folded in, if there is one.
TextModel load_model(const ModelOptions& options);

struct TextOptions {
  ModelOptions model;
  GenerateOptions generate{.max_tokens = 500, .sampler = {.temperature = default_temperature}, .seed = 1};
  std::vector<std::string> stop;
  bool ignore_eos = false;
};
/// Adds them to a command; they must outlive its parsing.
void add_text_options(CLI::App& command, TextOptions& options);

/// One line on stderr: tokens, seconds, tokens a second, and why it ended.
void report_speed(int64_t prompt_tokens, const Generation& generation);

}  // namespace tapestry::programs
