// Reading a TrainingText.
// Next: ../text/corpus.cpp.
#include "training_text.h"

#include <utility>

#include "../../autograd/random.h"
#include "../text/embedded_corpus.h"

namespace tapestry {

TrainingText::Bytes TrainingText::open(const std::string& source) {
  Bytes bytes;
  if (source.empty()) {
    bytes.view = embedded_corpus();
  } else {
    bytes.file.emplace(source);
    bytes.view = bytes.file->bytes();
  }
  return bytes;
}

TrainingText TrainingText::read(const std::string& source, const std::string& tokenizer, double held_out) {
  Bytes bytes = open(source);
  auto made = make_tokenizer(tokenizer, bytes.view);
  return {source, std::move(bytes), std::move(made), held_out};
}

TrainingText TrainingText::read(const std::string& source, std::unique_ptr<Tokenizer> tokenizer, double held_out) {
  return {source, open(source), std::move(tokenizer), held_out};
}

TrainingText::TrainingText(std::string_view bytes, std::unique_ptr<Tokenizer> tokenizer, double held_out)
    : TrainingText("", Bytes{.file = {}, .view = bytes}, std::move(tokenizer), held_out) {}

TrainingText::TrainingText(std::string source, Bytes bytes, std::unique_ptr<Tokenizer> tokenizer, double held_out)
    : source_(std::move(source)),
      file_(std::move(bytes.file)),
      bytes_(bytes.view),
      tokenizer_(std::move(tokenizer)),
      corpus_(tokenizer_->encode(bytes_), held_out),
      hash_(hash_name(bytes_)) {}

}  // namespace tapestry
