// From prompt to tokens to characters on a stream.
// Next: ../transformer/generate.h.
#include "sample_text.h"

#include "../../autograd/error.h"
#include "../text/utf8.h"

namespace tapestry::programs {
namespace {

void put(std::string_view text, std::FILE* out) {
  if (std::fwrite(text.data(), 1, text.size(), out) != text.size() || std::fflush(out) != 0)
    fail<IoError>("generate: cannot write the text");
}

}  // namespace

std::vector<int32_t> start_tokens(const Tokenizer& tokenizer) {
  try {
    return tokenizer.encode("\n");
  } catch (const ValueError&) {
    return {0};
  }
}

std::string sample_text(const TextModel& text_model, const std::string& prompt, const GenerateOptions& options,
                        std::FILE* out) {
  const Tokenizer& tokenizer = *text_model.tokenizer;
  const std::vector<int32_t> ids = prompt.empty() ? start_tokens(tokenizer) : tokenizer.encode(prompt);
  std::string written;
  put(Utf8Stream().push(prompt), out);  // a character it ends in comes with the next id
  DecodeStream stream(tokenizer, prompt.empty() ? std::span<const int32_t>() : ids);
  const auto emit = [&](int32_t id) {
    const std::string text = stream.push(id);
    put(text, out);
    written += text;
  };
  generate(*text_model.model, ids, options, emit);
  const std::string rest = stream.flush();
  put(rest, out);
  return written + rest;
}

}  // namespace tapestry::programs
