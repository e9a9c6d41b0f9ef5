// The table of bytes and characters, both ways.
// Next: bpe.cpp.
#include "byte_alphabet.h"

#include <array>

#include "utf8.h"

namespace tapestry {
namespace {

constexpr bool stands_for_itself(int byte) {
  return (byte >= '!' && byte <= '~') || (byte >= 0xA1 && byte <= 0xAC) || (byte >= 0xAE && byte <= 0xFF);
}

struct Alphabet {
  std::array<char32_t, 256> character{};
  std::array<int, 0x144> byte{};
};

constexpr Alphabet make_alphabet() {
  Alphabet a;
  for (int& b : a.byte) b = -1;
  char32_t next = 0x100;
  for (int b = 0; b < 256; ++b) {
    const char32_t c = stands_for_itself(b) ? static_cast<char32_t>(b) : next++;
    a.character[static_cast<size_t>(b)] = c;
    a.byte[c] = b;
  }
  return a;
}

constexpr Alphabet alphabet = make_alphabet();

}  // namespace

std::string to_byte_alphabet(std::string_view bytes) {
  std::string text;
  for (const char b : bytes) append_utf8(text, alphabet.character[static_cast<unsigned char>(b)]);
  return text;
}

std::optional<std::string> from_byte_alphabet(std::string_view characters) {
  std::string bytes;
  while (!characters.empty()) {
    const Utf8Char front = front_utf8(characters);
    if (front.kind != Utf8Char::Kind::complete || front.code >= alphabet.byte.size() || alphabet.byte[front.code] < 0)
      return std::nullopt;
    bytes.push_back(static_cast<char>(alphabet.byte[front.code]));
    characters.remove_prefix(static_cast<size_t>(front.length));
  }
  return bytes;
}

}  // namespace tapestry
