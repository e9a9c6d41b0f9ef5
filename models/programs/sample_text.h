// A model's text, printed while it is written.
// Next: generate.cpp.
#pragma once

#include <cstdio>
#include <string>

#include "../training/run_folder.h"
#include "../transformer/generate.h"

namespace tapestry::programs {

/// Below 1 the likely words get likelier, which suits small models.
inline constexpr double default_temperature = 0.8;

/// What a text without a prompt starts after: a line break, or token 0 where
/// there is none.
std::vector<int32_t> start_tokens(const Tokenizer& tokenizer);

/// Prints `prompt` and what the model writes after it to `out`, in complete
/// UTF-8 characters, each as soon as it is complete; returns the new part.
/// Without a prompt the model starts after start_tokens(), which are not
/// printed. IoError if `out` cannot be written.
std::string sample_text(const TextModel& text_model, const std::string& prompt, const GenerateOptions& options,
                        std::FILE* out);

}  // namespace tapestry::programs
