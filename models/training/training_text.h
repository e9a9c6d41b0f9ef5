// A text ready to be trained on: read, tokenized, cut into its parts, and known by a hash.
// Next: step.h.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "../../nn/mapped_file.h"
#include "../text/corpus.h"
#include "../text/tokenizer.h"

namespace tapestry {

class TrainingText {
 public:
  /// The file at `source`, or the embedded corpus for "", under the tokenizer `make_tokenizer` makes for it. IoError for
  /// a file that is missing or empty, FormatError for characters of invalid UTF-8.
  static TrainingText read(const std::string& source, const std::string& tokenizer, double held_out);
  /// The same text with a tokenizer that exists. ValueError for a character it does not know.
  static TrainingText read(const std::string& source, std::unique_ptr<Tokenizer> tokenizer, double held_out);
  /// A text in memory, which must outlive the object.
  TrainingText(std::string_view bytes, std::unique_ptr<Tokenizer> tokenizer, double held_out);

  [[nodiscard]] const std::string& source() const { return source_; }  ///< path of the file; "" for the embedded corpus
  [[nodiscard]] std::string_view bytes() const { return bytes_; }
  [[nodiscard]] const Tokenizer& tokenizer() const { return *tokenizer_; }
  [[nodiscard]] const Corpus& corpus() const { return corpus_; }
  [[nodiscard]] uint64_t hash() const { return hash_; }  ///< of the bytes: whether two runs have the same text

 private:
  struct Bytes {
    std::optional<MappedFile> file;
    std::string_view view;
  };
  static Bytes open(const std::string& source);
  TrainingText(std::string source, Bytes bytes, std::unique_ptr<Tokenizer> tokenizer, double held_out);

  std::string source_;
  std::optional<MappedFile> file_;
  std::string_view bytes_;
  std::unique_ptr<Tokenizer> tokenizer_;
  Corpus corpus_;
  uint64_t hash_;
};

}  // namespace tapestry
