// The table of well-formed UTF-8 byte sequences (Unicode 15, table 3-7) and the stream on top of it.
// Not here: the tokenizers that use it.
// Next: tokenizer.cpp.
#include "utf8.h"

namespace tapestry {

Utf8Char front_utf8(std::string_view bytes) {
  const auto byte = [&bytes](size_t i) { return static_cast<unsigned char>(bytes[i]); };
  const unsigned char lead = byte(0);
  if (lead < 0x80) return {Utf8Char::Kind::complete, 1, lead};
  if (lead < 0xC2 || lead > 0xF4) return {Utf8Char::Kind::invalid, 1};
  const int length = lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
  // Only the second byte has a range of its own: it excludes overlong forms, surrogates and what lies above U+10FFFF.
  const unsigned char low = lead == 0xE0 ? 0xA0 : lead == 0xF0 ? 0x90 : 0x80;
  const unsigned char high = lead == 0xED ? 0x9F : lead == 0xF4 ? 0x8F : 0xBF;
  char32_t code = lead & (0x7FU >> length);
  for (int i = 1; i < length; ++i) {
    if (static_cast<size_t>(i) == bytes.size()) return {Utf8Char::Kind::incomplete, i};
    const unsigned char next = byte(static_cast<size_t>(i));
    if (next < (i == 1 ? low : 0x80) || next > (i == 1 ? high : 0xBF)) return {Utf8Char::Kind::invalid, i};
    code = (code << 6) | (next & 0x3FU);
  }
  return {Utf8Char::Kind::complete, length, code};
}

void append_utf8(std::string& text, char32_t code) {
  const auto put = [&text](char32_t byte) { text.push_back(static_cast<char>(byte)); };
  if (code < 0x80) {
    put(code);
  } else if (code < 0x800) {
    put(0xC0 | (code >> 6));
    put(0x80 | (code & 0x3F));
  } else if (code < 0x10000) {
    put(0xE0 | (code >> 12));
    put(0x80 | ((code >> 6) & 0x3F));
    put(0x80 | (code & 0x3F));
  } else {
    put(0xF0 | (code >> 18));
    put(0x80 | ((code >> 12) & 0x3F));
    put(0x80 | ((code >> 6) & 0x3F));
    put(0x80 | (code & 0x3F));
  }
}

std::string Utf8Stream::push(std::string_view bytes) {
  pending_ += bytes;
  std::string text;
  std::string_view rest = pending_;
  while (!rest.empty()) {
    const Utf8Char front = front_utf8(rest);
    if (front.kind == Utf8Char::Kind::incomplete) break;
    const auto length = static_cast<size_t>(front.length);
    text += front.kind == Utf8Char::Kind::complete ? rest.substr(0, length) : replacement_character;
    rest.remove_prefix(length);
  }
  pending_.erase(0, pending_.size() - rest.size());
  return text;
}

std::string Utf8Stream::flush() {
  const bool cut = !pending_.empty();
  pending_.clear();
  return std::string(cut ? replacement_character : std::string_view());
}

}  // namespace tapestry
