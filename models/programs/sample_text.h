// A model's text, printed while it is written.
// Next: generate.cpp.
#pragma once

#include <cstdio>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "../training/text_model.h"
#include "../transformer/generate_text.h"

namespace tapestry::programs {

/// Below 1 the likely words get likelier, which suits small models.
inline constexpr double default_temperature = 0.8;

/// The special tokens a tokenizer's template puts before a text; often none.
std::vector<int32_t> before_text(const Tokenizer& tokenizer);
/// What a text without a prompt starts after: those, or the token that begins
/// texts, a line break, or token 0 where there is none of them.
std::vector<int32_t> start_tokens(const Tokenizer& tokenizer, std::optional<int32_t> bos = {});

/// Prints what the model writes after the prompt to `out`, in complete UTF-8
/// characters, each as soon as it is certain. IoError if `out` cannot be
/// written.
TextGeneration sample_text(const TextModel& text_model, const std::vector<int32_t>& prompt,
                           const GenerateOptions& options, const std::vector<std::string>& stop, std::FILE* out);

/// Writes text and flushes. IoError if that cannot be.
void put(std::string_view text, std::FILE* out);

}  // namespace tapestry::programs
