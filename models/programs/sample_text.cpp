// From prompt to tokens to characters on a stream.
// Next: ../transformer/generate.h.
#include "sample_text.h"

#include "../../autograd/error.h"
#include "../text/utf8.h"

namespace tapestry::programs {

std::vector<int32_t> before_text(const Tokenizer& tokenizer) {
  const EncodeOptions with{.add_special = true};
  std::vector<int32_t> ids = tokenizer.encode("", with);
  // What stands after a text, such as a token that ends it, is not wanted where the text goes on.
  const auto eos = tokenizer.eos_id();
  while (!ids.empty() && eos && ids.back() == *eos && tokenizer.bos_id() != eos) ids.pop_back();
  return ids;
}

std::vector<int32_t> start_tokens(const Tokenizer& tokenizer, std::optional<int32_t> bos) {
  std::vector<int32_t> before = before_text(tokenizer);
  if (!before.empty()) return before;
  if (bos) return {*bos};
  try {
    return tokenizer.encode("\n");
  } catch (const ValueError&) {
    return {0};
  }
}

TextGeneration sample_text(const TextModel& text_model, const std::vector<int32_t>& prompt,
                           const GenerateOptions& options, const std::vector<std::string>& stop, std::FILE* out) {
  Decoder decoder(*text_model.model, decoder_options(options));
  return std::move(generate_text(decoder, *text_model.tokenizer, std::span(&prompt, 1), options, stop,
                                 [&](size_t, std::string_view piece) { put(piece, out); })[0]);
}

void put(std::string_view text, std::FILE* out) {
  if (std::fwrite(text.data(), 1, text.size(), out) != text.size() || std::fflush(out) != 0)
    fail<IoError>("generate: cannot write the text");
}

}  // namespace tapestry::programs
