// From tokens to text.
// Next: chat.cpp.
#include "generate_text.h"

#include <utility>

namespace tapestry {

TextStream::TextStream(const Tokenizer& tokenizer, std::vector<std::string> stop, std::span<const int32_t> before)
    : tokenizer_(tokenizer), stop_(std::move(stop)) {
  std::string bytes;
  for (const int32_t id : before) decode(id, bytes);
  (void)utf8_.push(bytes);  // a character they end in comes with the next token
}

void TextStream::decode(int32_t id, std::string& bytes) {
  if (id < tokenizer_.vocab_size() && !tokenizer_.is_special(id)) tokenizer_.decode_next(id, state_, bytes);
}

std::string TextStream::push(int32_t id) {
  std::string bytes;
  decode(id, bytes);
  std::string text = utf8_.push(stop_.push(bytes));
  if (stopped()) text += utf8_.flush();
  return text;
}

std::string TextStream::flush() {
  std::string text = utf8_.push(stop_.flush());
  return text + utf8_.flush();
}

std::vector<TextGeneration> generate_text(Decoder& decoder, const Tokenizer& tokenizer,
                                          std::span<const std::vector<int32_t>> prompts, const GenerateOptions& options,
                                          const std::vector<std::string>& stop, const EmitText& emit) {
  std::vector<TextStream> streams;
  for (const auto& prompt : prompts) streams.emplace_back(tokenizer, stop, prompt);
  std::vector<TextGeneration> texts(prompts.size());
  const auto give = [&](size_t i, const std::string& piece) {
    texts[i].text += piece;
    if (emit && !piece.empty()) emit(i, piece);
  };
  std::vector<Generation> tokens = generate(decoder, prompts, options, [&](size_t i, int32_t id) {
    give(i, streams[i].push(id));
    return !streams[i].stopped();
  });
  for (size_t i = 0; i < texts.size(); ++i) {
    give(i, streams[i].flush());
    texts[i].tokens = std::move(tokens[i]);
  }
  return texts;
}

}  // namespace tapestry
