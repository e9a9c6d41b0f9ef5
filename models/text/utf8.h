// UTF-8, strictly: one character at a time, and a stream of bytes cut anywhere into text of complete characters.
// Not here: anything about tokens; no normalisation, no case, no width.
// Next: tokenizer.h.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace tapestry {

/// What the bytes at the front of a string are.
struct Utf8Char {
  enum class Kind {
    complete,    ///< one character of `length` bytes with code point `code`
    incomplete,  ///< all bytes there are begin a character; more bytes may complete it
    invalid,     ///< `length` bytes that no further byte can make part of a character
  };
  Kind kind = Kind::invalid;
  int length = 0;  ///< bytes, at least 1
  char32_t code = 0;
};

/// Classifies the front of `bytes`, which must not be empty. Overlong forms, surrogates and what lies above U+10FFFF
/// are invalid. An invalid piece is as long as its longest prefix that could have begun a character, or 1 (Unicode 15,
/// section 3.9, substitution of maximal subparts), so every place to cut the bytes gives the same pieces.
Utf8Char front_utf8(std::string_view bytes);

/// Appends the UTF-8 form of a code point up to U+10FFFF that is no surrogate.
void append_utf8(std::string& text, char32_t code);

/// U+FFFD, what a damaged piece becomes in text for people.
inline constexpr std::string_view replacement_character = "\xEF\xBF\xBD";

/// Turns bytes that arrive in any pieces into valid UTF-8 as soon as that is certain. A character is given out when its
/// last byte arrives. An invalid piece becomes one U+FFFD as soon as no further byte could complete it, or at `flush`.
/// The output of all calls joined depends on the bytes alone, never on how they were cut; it equals valid bytes.
class Utf8Stream {
 public:
  /// Takes more bytes; returns the text that is complete now.
  std::string push(std::string_view bytes);
  /// Ends the stream: a character still incomplete becomes one U+FFFD. The stream is then as new.
  std::string flush();

 private:
  std::string pending_;  // the beginning of one character, at most 3 bytes
};

}  // namespace tapestry
