// The byte and the character tokenizer, and their JSON form.
// Not here: file access; callers hand over text.
// Next: ../../tests/test_tokenizer.cpp.
#include "tokenizer.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "../../autograd/error.h"
#include "../strict_json.h"
#include "tokenizer_json.h"
#include "utf8.h"

namespace tapestry {
namespace {

using json = nlohmann::ordered_json;

/// Calls visit(code, character number, byte offset) for each character of valid UTF-8.
template <class Visit>
void for_each_char(std::string_view op, std::string_view text, Visit visit) {
  size_t number = 0;
  for (size_t at = 0; at < text.size(); ++number) {
    const Utf8Char front = front_utf8(text.substr(at));
    if (front.kind != Utf8Char::Kind::complete) {
      fail<FormatError>("{}: byte {:#04x} at offset {} is not part of a UTF-8 character; use the byte tokenizer for it",
                        op, static_cast<unsigned char>(text[at]), at);
    }
    visit(front.code, number, at);
    at += static_cast<size_t>(front.length);
  }
}

/// "U+00E9 'é'", without the quoted form where it would not print.
std::string describe(char32_t code) {
  std::string text = fmt::format("U+{:04X}", static_cast<uint32_t>(code));
  if (code > 0x20 && (code < 0x7F || code > 0x9F)) {
    text += " '";
    append_utf8(text, code);
    text += '\'';
  }
  return text;
}

void check_id(int32_t id, int64_t vocab_size) {
  if (id < 0 || id >= vocab_size)
    fail<IndexError>("decode: id {} is out of range for a vocabulary of {}", id, vocab_size);
}

}  // namespace

std::string Tokenizer::decode(std::span<const int32_t> ids) const {
  std::string bytes;
  bytes.reserve(ids.size());
  DecodeState state;
  for (size_t i = 0; i < ids.size(); ++i) {
    if (ids[i] < 0 || ids[i] >= vocab_size())
      fail<IndexError>("decode: id {} at position {} is out of range for a vocabulary of {}", ids[i], i, vocab_size());
    decode_next(ids[i], state, bytes);
  }
  return bytes;
}

std::optional<int32_t> Tokenizer::id_of(std::string_view token) const {
  for (int64_t id = 0; id < vocab_size(); ++id) {
    std::string bytes;
    DecodeState state;
    decode_next(static_cast<int32_t>(id), state, bytes);
    if (bytes == token) return static_cast<int32_t>(id);
  }
  return std::nullopt;
}

namespace {
constexpr size_t stream_bytes = size_t{1} << 16;
}

EncodeStream::EncodeStream(const Tokenizer& tokenizer, const EncodeOptions& options)
    : tokenizer_(&tokenizer), options_(options), enough_(stream_bytes) {}

std::vector<int32_t> EncodeStream::push(std::string_view bytes) {
  pending_ += bytes;
  if (pending_.size() < enough_) return {};
  const size_t n = tokenizer_->decided(pending_, options_);
  std::vector<int32_t> ids;
  if (n > 0) ids = tokenizer_->encode(std::string_view(pending_).substr(0, n), options_);
  pending_.erase(0, n);
  enough_ = std::max(stream_bytes, 2 * pending_.size());  // looking at all of it again must stay rare
  return ids;
}

std::vector<int32_t> EncodeStream::flush() {
  const std::string rest = std::exchange(pending_, {});
  enough_ = stream_bytes;
  return tokenizer_->encode(rest, options_);
}

DecodeStream::DecodeStream(const Tokenizer& tokenizer, std::span<const int32_t> before) : tokenizer_(&tokenizer) {
  for (const int32_t id : before) push(id);
}

std::string DecodeStream::push(int32_t id) {
  std::string bytes;
  tokenizer_->decode_next(id, state_, bytes);
  return utf8_.push(bytes);
}

size_t CharTokenizer::decided(std::string_view text, const EncodeOptions&) const {
  size_t end = text.size();
  for (size_t back = 1; back <= 3 && back <= text.size(); ++back)
    if (front_utf8(text.substr(text.size() - back)).kind == Utf8Char::Kind::incomplete) end = text.size() - back;
  return end;
}

std::vector<int32_t> ByteTokenizer::encode_text(std::string_view text, const EncodeOptions&) const {
  std::vector<int32_t> ids(text.size());
  std::transform(text.begin(), text.end(), ids.begin(), [](char c) { return static_cast<unsigned char>(c); });
  return ids;
}

void ByteTokenizer::decode_next(int32_t id, DecodeState&, std::string& bytes) const {
  check_id(id, vocab_size());
  bytes.push_back(static_cast<char>(id));
}

std::string ByteTokenizer::to_json() const { return json{{"type", "byte"}}.dump(); }

CharTokenizer::CharTokenizer(std::string_view text) {
  if (text.empty()) fail<ValueError>("char_tokenizer: the text is empty; a vocabulary needs at least one character");
  for_each_char("char_tokenizer", text, [this](char32_t code, size_t, size_t) {
    const auto at = std::lower_bound(alphabet_.begin(), alphabet_.end(), code);
    if (at == alphabet_.end() || *at != code) alphabet_.insert(at, code);
  });
}

std::vector<int32_t> CharTokenizer::encode_text(std::string_view text, const EncodeOptions&) const {
  std::vector<int32_t> ids;
  ids.reserve(text.size());
  for_each_char("encode", text, [&](char32_t code, size_t number, size_t offset) {
    const auto at = std::lower_bound(alphabet_.begin(), alphabet_.end(), code);
    if (at == alphabet_.end() || *at != code) {
      fail<ValueError>(
          "encode: character {} (byte offset {}) is {}, which is not among the {} characters of the vocabulary; remove "
          "it or use the byte tokenizer",
          number, offset, describe(code), alphabet_.size());
    }
    ids.push_back(static_cast<int32_t>(at - alphabet_.begin()));
  });
  return ids;
}

void CharTokenizer::decode_next(int32_t id, DecodeState&, std::string& bytes) const {
  check_id(id, vocab_size());
  append_utf8(bytes, alphabet_[static_cast<size_t>(id)]);
}

std::string CharTokenizer::to_json() const {
  std::string alphabet;
  for (const char32_t code : alphabet_) append_utf8(alphabet, code);
  return json{{"type", "char"}, {"alphabet", alphabet}}.dump();
}

bool is_tokenizer_path(std::string_view name) { return name.find_first_of("/.") != std::string_view::npos; }

std::unique_ptr<Tokenizer> make_tokenizer(std::string_view name, std::string_view text) {
  if (name == "byte") return std::make_unique<ByteTokenizer>();
  if (name == "char") return std::make_unique<CharTokenizer>(text);
  if (is_tokenizer_path(name)) return read_tokenizer(std::string(name));
  fail<ValueError>(
      "tokenizer: there is no tokenizer called '{}'; there are byte and char, and files such as "
      "./tokenizer.json",
      name);
}

std::unique_ptr<Tokenizer> tokenizer_from_json(std::string_view text) {
  const json j = parse_strict_json("tokenizer", text);
  const auto string_at = [&j](const char* key) -> std::string {
    if (!j.is_object()) fail<FormatError>("tokenizer: the description is not a JSON object");
    const auto it = j.find(key);
    if (it == j.end() || !it->is_string()) fail<FormatError>("tokenizer: the description has no string \"{}\"", key);
    return it->get<std::string>();
  };
  const std::string type = string_at("type");
  if (type == "byte") return std::make_unique<ByteTokenizer>();
  if (type == "bpe") return parse_tokenizer_json(string_at("tokenizer_json"), string_at("bos"), string_at("eos"));
  if (type != "char") fail<FormatError>("tokenizer: unknown type '{}'; there are byte, char and bpe", type);
  const std::string alphabet = string_at("alphabet");
  if (alphabet.empty()) fail<FormatError>("tokenizer: the alphabet is empty; it must hold at least one character");
  auto tokenizer = std::make_unique<CharTokenizer>(alphabet);
  // Ids are places in the alphabet: another order or a repeated character would give every id another meaning.
  const std::vector<int32_t> ids = tokenizer->encode(alphabet);
  for (size_t i = 0; i < ids.size(); ++i) {
    if (ids[i] != static_cast<int32_t>(i)) {
      fail<FormatError>(
          "tokenizer: the alphabet must hold each character once, in order of code point: character {} does not", i);
    }
  }
  return tokenizer;
}

}  // namespace tapestry
