// Tokenizers: bytes to ids and back, behind one small interface; one id a byte, or one id a character.
// Not here: sub-word vocabularies, or the printing of ids as they are generated (utf8.h, Utf8Stream).
// Next: corpus.h.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace tapestry {

/// Text to ids in [0, vocab_size) and back; decode(encode(text)) == text for every text that encode takes.
class Tokenizer {
 public:
  virtual ~Tokenizer() = default;
  /// "byte" or "char": what the JSON form calls it.
  [[nodiscard]] virtual std::string_view name() const = 0;
  [[nodiscard]] virtual int64_t vocab_size() const = 0;
  [[nodiscard]] virtual std::vector<int32_t> encode(std::string_view text) const = 0;
  /// Bytes of the ids, exactly; they may end inside a character. Throws IndexError for an id out of range.
  [[nodiscard]] virtual std::string decode(std::span<const int32_t> ids) const = 0;
  /// JSON text that `tokenizer_from_json` reads.
  [[nodiscard]] virtual std::string to_json() const = 0;

 protected:
  Tokenizer() = default;
  Tokenizer(const Tokenizer&) = default;
  Tokenizer& operator=(const Tokenizer&) = default;
};

/// Id = byte, 256 ids; takes every string of bytes, valid UTF-8 or not.
class ByteTokenizer final : public Tokenizer {
 public:
  [[nodiscard]] std::string_view name() const override { return "byte"; }
  [[nodiscard]] int64_t vocab_size() const override { return 256; }
  [[nodiscard]] std::vector<int32_t> encode(std::string_view text) const override;
  [[nodiscard]] std::string decode(std::span<const int32_t> ids) const override;
  [[nodiscard]] std::string to_json() const override;
};

/// Id = place of a Unicode code point among those of one text, sorted.
class CharTokenizer final : public Tokenizer {
 public:
  /// The characters of `text`, each once, in order of code point. Throws FormatError, with the place, where `text` is
  /// not valid UTF-8, and ValueError if it is empty.
  explicit CharTokenizer(std::string_view text);
  [[nodiscard]] std::string_view name() const override { return "char"; }
  [[nodiscard]] int64_t vocab_size() const override { return static_cast<int64_t>(alphabet_.size()); }
  /// Throws ValueError for a character that is not in the vocabulary and FormatError for invalid UTF-8, with the place.
  [[nodiscard]] std::vector<int32_t> encode(std::string_view text) const override;
  [[nodiscard]] std::string decode(std::span<const int32_t> ids) const override;
  [[nodiscard]] std::string to_json() const override;

 private:
  std::vector<char32_t> alphabet_;  // sorted, so an id is a place in it
};

/// The tokenizer called `name` ("byte" or "char") for `text`. Throws ValueError for another name.
std::unique_ptr<Tokenizer> make_tokenizer(std::string_view name, std::string_view text);

/// Reads `to_json`'s form: {"type": "byte"} or {"type": "char", "alphabet": "…"}. Throws FormatError for anything else.
std::unique_ptr<Tokenizer> tokenizer_from_json(std::string_view json);

}  // namespace tapestry
