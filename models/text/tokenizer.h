// Tokenizers: bytes to ids and back, behind one small interface; one id a byte, or one id a character.
// Not here: sub-word vocabularies, whose tokenizer is made by `read_tokenizer`.
// Next: corpus.h.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "utf8.h"

namespace tapestry {

/// What a text that is encoded may become besides its own tokens.
struct EncodeOptions {
  bool parse_special = false;  ///< the text of a special token becomes its id; else it is text like any other
  bool add_special = false;    ///< adds what the tokenizer's template puts around a text, such as bos and eos
};

/// What the decoding of one id after the other must remember.
struct DecodeState {
  bool at_start = true;  ///< a space that encode put before the text may come next
};

/// Text to ids in [0, vocab_size) and back; decode(encode(text)) == text for every text that encode takes.
class Tokenizer {
 public:
  virtual ~Tokenizer() = default;
  /// "byte", "char" or "bpe": what the JSON form calls it.
  [[nodiscard]] virtual std::string_view name() const = 0;
  /// One more than the largest id.
  [[nodiscard]] virtual int64_t vocab_size() const = 0;
  [[nodiscard]] std::vector<int32_t> encode(std::string_view text, const EncodeOptions& options = {}) const {
    return encode_text(text, options);
  }
  /// How much of the front of `text` can be encoded by itself: encode(text + more) is encode(front) and then
  /// encode(rest + more), whatever `more` is. 0 where that is not known.
  [[nodiscard]] virtual size_t decided(std::string_view /*text*/, const EncodeOptions& /*options*/) const { return 0; }
  /// Bytes of the ids, exactly; they may end inside a character. Special tokens give their text. Throws IndexError for
  /// an id out of range. The same as decode_next for one id after the other.
  [[nodiscard]] std::string decode(std::span<const int32_t> ids) const;
  /// Appends the bytes of the next id of a text. IndexError for an id out of range.
  virtual void decode_next(int32_t id, DecodeState& state, std::string& bytes) const = 0;

  /// The id of a token, special or not, by its text; nothing if there is none.
  [[nodiscard]] virtual std::optional<int32_t> id_of(std::string_view token) const;
  /// Whether the id is of a special token: one that stands for something else than text.
  [[nodiscard]] virtual bool is_special(int32_t /*id*/) const { return false; }
  /// The tokens that begin and end a text, where the vocabulary names them.
  [[nodiscard]] virtual std::optional<int32_t> bos_id() const { return std::nullopt; }
  [[nodiscard]] virtual std::optional<int32_t> eos_id() const { return std::nullopt; }

  /// JSON text that `tokenizer_from_json` reads: all there is to know of the tokenizer.
  [[nodiscard]] virtual std::string to_json() const = 0;

 protected:
  Tokenizer() = default;
  Tokenizer(const Tokenizer&) = default;
  Tokenizer& operator=(const Tokenizer&) = default;
  [[nodiscard]] virtual std::vector<int32_t> encode_text(std::string_view text, const EncodeOptions& options) const = 0;
};

/// Ids of a text that arrives in pieces: those of `encode` for the whole of it, however it was cut. Keeps only what is not
/// decided yet (Tokenizer::decided): a few bytes, or all of the text where that is never known.
class EncodeStream {
 public:
  /// Borrows the tokenizer.
  explicit EncodeStream(const Tokenizer& tokenizer, const EncodeOptions& options = {});
  /// Takes more of the text; returns the ids that are certain now.
  std::vector<int32_t> push(std::string_view bytes);
  /// Ends the text. The stream is then as new.
  std::vector<int32_t> flush();

 private:
  const Tokenizer* tokenizer_;
  EncodeOptions options_;
  std::string pending_;
  size_t enough_;  // bytes from which on it is worth to look
};

/// Text from ids that come one at a time: complete characters as soon as they are certain (utf8.h, Utf8Stream). The
/// pieces joined are the text of `decode`, with U+FFFD for what is no UTF-8, however the ids were handed over.
class DecodeStream {
 public:
  /// Borrows the tokenizer. `before` are ids whose text is not to be given out, such as those of a prompt.
  explicit DecodeStream(const Tokenizer& tokenizer, std::span<const int32_t> before = {});
  /// Takes an id; returns the text that is complete now.
  std::string push(int32_t id);
  /// Ends the text: a character still incomplete becomes U+FFFD.
  std::string flush() { return utf8_.flush(); }

 private:
  const Tokenizer* tokenizer_;
  DecodeState state_;
  Utf8Stream utf8_;
};

/// Id = byte, 256 ids; takes every string of bytes, valid UTF-8 or not.
class ByteTokenizer final : public Tokenizer {
 public:
  [[nodiscard]] std::string_view name() const override { return "byte"; }
  [[nodiscard]] int64_t vocab_size() const override { return 256; }
  void decode_next(int32_t id, DecodeState& state, std::string& bytes) const override;
  [[nodiscard]] size_t decided(std::string_view text, const EncodeOptions&) const override { return text.size(); }
  [[nodiscard]] std::string to_json() const override;

 private:
  [[nodiscard]] std::vector<int32_t> encode_text(std::string_view text, const EncodeOptions&) const override;
};

/// Id = place of a Unicode code point among those of one text, sorted.
class CharTokenizer final : public Tokenizer {
 public:
  /// The characters of `text`, each once, in order of code point. Throws FormatError, with the place, where `text` is
  /// not valid UTF-8, and ValueError if it is empty.
  explicit CharTokenizer(std::string_view text);
  [[nodiscard]] std::string_view name() const override { return "char"; }
  [[nodiscard]] int64_t vocab_size() const override { return static_cast<int64_t>(alphabet_.size()); }
  void decode_next(int32_t id, DecodeState& state, std::string& bytes) const override;
  [[nodiscard]] size_t decided(std::string_view text, const EncodeOptions&) const override;
  [[nodiscard]] std::string to_json() const override;

 private:
  /// Throws ValueError for a character that is not in the vocabulary and FormatError for invalid UTF-8, with the place.
  [[nodiscard]] std::vector<int32_t> encode_text(std::string_view text, const EncodeOptions&) const override;

  std::vector<char32_t> alphabet_;  // sorted, so an id is a place in it
};

/// Whether a tokenizer's name is the path of a file or folder: it has a '/' or '.' in it.
bool is_tokenizer_path(std::string_view name);

/// The tokenizer called `name` for `text`: "byte", "char", or what `read_tokenizer` reads at a path. Throws ValueError for another name.
std::unique_ptr<Tokenizer> make_tokenizer(std::string_view name, std::string_view text);

/// Reads `to_json`'s form: {"type": "byte"}, {"type": "char", "alphabet": "…"}, {"type": "bpe", "tokenizer_json": "…",
/// "bos": "…", "eos": "…"} with the content of the file and "" for tokens it has not.
/// Throws FormatError for anything else.
std::unique_ptr<Tokenizer> tokenizer_from_json(std::string_view json);

/// A tokenizer of Hugging Face's form: a tokenizer.json, or a folder that holds one, or GPT-2's vocab.json and
/// merges.txt. Names of bos and eos come from a tokenizer_config.json beside it. IoError, or FormatError that names
/// the file and what in it is not supported (docs/tokenizers.md).
std::unique_ptr<Tokenizer> read_tokenizer(const std::string& path);

}  // namespace tapestry
