// What `generate` and `chat` have in common on the command line: the model, how tokens are drawn, what ends a text.
// Next: generate.cpp.
#pragma once

#include <string>
#include <vector>

#include "program.h"
#include "sample_text.h"

namespace tapestry::programs {

struct TextOptions {
  std::string model;
  GenerateOptions generate{.max_tokens = 500, .sampler = {.temperature = default_temperature}, .seed = 1};
  std::vector<std::string> stop;
  bool ignore_eos = false;
};
/// Adds them to a command; they must outlive its parsing.
void add_text_options(CLI::App& command, TextOptions& options);

/// The model of a folder, ready to write.
TextModel load_model(const std::string& folder);
/// The tokens that end a text of this model.
std::vector<int32_t> end_tokens(const TextModel& model);
/// One line on stderr: tokens, seconds, tokens a second, and why it ended.
void report_speed(int64_t prompt_tokens, const Generation& generation);

}  // namespace tapestry::programs
