// Tokenizers give back every byte they took; the UTF-8 stream gives the same text however its bytes are cut.
// Not here: sub-word vocabularies.
// Next: ../models/text/tokenizer.h and ../models/text/utf8.h.
#include <doctest/doctest.h>

#include <numeric>
#include <string>

#include "../autograd/error.h"
#include "../autograd/random.h"
#include "../models/text/tokenizer.h"
#include "../models/text/utf8.h"

using namespace tapestry;
using namespace std::string_literals;

namespace {

using Ids = std::vector<int32_t>;

/// Random bytes, with lead and continuation bytes of UTF-8 far more often than chance.
std::string random_bytes(uint64_t seed, size_t n) {
  static const std::string pieces[] = {"a", "é", "€", "𝄞", "\xE6\xAD", "\xF0\x9D", "\x80", "\xFF", "\xED\xA0", "\n"};
  const Ticket ticket{seed, 1};
  std::string bytes;
  for (size_t i = 0; i < n; ++i) {
    const uint32_t word = ticket.word(i);
    if (word % 3 == 0) {
      bytes += static_cast<char>(word >> 24);
    } else {
      bytes += pieces[(word >> 8) % std::size(pieces)];
    }
  }
  return bytes;
}

std::string stream_all(std::string_view bytes) {
  Utf8Stream stream;
  std::string text = stream.push(bytes);
  return text + stream.flush();
}

}  // namespace

TEST_SUITE("tokenizer") {
  TEST_CASE("bytes: decode undoes encode for every string of bytes") {
    const ByteTokenizer tokenizer;
    std::string all(256, '\0');
    std::iota(all.begin(), all.end(), '\0');
    std::vector<std::string> texts = {"",     "plain",    "é€𝄞",  "\xE2\x80", "\xE6\xAD",
                                      "\xAA", "\xFF\xFE", "\x80", "\0"s,      all};
    for (uint64_t seed = 0; seed < 1000; ++seed) texts.push_back(random_bytes(seed, seed % 40));
    for (const std::string& text : texts) CHECK(tokenizer.decode(tokenizer.encode(text)) == text);
    CHECK(tokenizer.encode("\xE2\x80"s) == Ids{0xE2, 0x80});
    CHECK(tokenizer.decode(Ids{0xE6, 0xAD}) + tokenizer.decode(Ids{0xAA}) == "\u6B6A");  // one character, split
    CHECK(tokenizer.vocab_size() == 256);
  }

  TEST_CASE("characters: ids are places among the sorted code points") {
    const CharTokenizer tokenizer("héllo wörld\n€𝄞");
    CHECK(tokenizer.vocab_size() == 12);  // \n, space, d h l o r w é ö € 𝄞
    CHECK(tokenizer.encode("\n d") == Ids{0, 1, 2});
    CHECK(tokenizer.encode("é€𝄞") == Ids{8, 10, 11});
    for (const char* text : {"", "héllo", "𝄞€é\n"}) {
      CHECK(tokenizer.decode(tokenizer.encode(text)) == text);
    }
  }

  TEST_CASE("the JSON form gives the same tokenizer") {
    const std::string text = "zyx \"\\\n\t\0 é€𝄞"s;
    for (const char* name : {"byte", "char"}) {
      const auto made = make_tokenizer(name, text);
      const auto read = tokenizer_from_json(made->to_json());
      CHECK(read->name() == name);
      CHECK(read->vocab_size() == made->vocab_size());
      CHECK(read->encode(text) == made->encode(text));
      CHECK(read->to_json() == made->to_json());
    }
  }

  TEST_CASE("bad text and bad descriptions are errors that name the place") {
    const CharTokenizer tokenizer("ab€");
    CHECK_THROWS_WITH_AS(
        (void)tokenizer.encode("a€é"),
        "encode: character 2 (byte offset 4) is U+00E9 'é', which is not among the 3 characters of the "
        "vocabulary; remove it or use the byte tokenizer",
        ValueError);
    CHECK_THROWS_WITH_AS((void)tokenizer.encode("\n"),
                         "encode: character 0 (byte offset 0) is U+000A, which is not among the 3 characters of the "
                         "vocabulary; remove it or use the byte tokenizer",
                         ValueError);
    CHECK_THROWS_WITH_AS(
        (void)tokenizer.encode("ab\xFFz"),
        "encode: byte 0xff at offset 2 is not part of a UTF-8 character; use the byte tokenizer for it", FormatError);
    CHECK_THROWS_AS((void)tokenizer.encode("a\xE2\x82"), FormatError);  // ends inside a character
    CHECK_THROWS_WITH_AS((void)tokenizer.decode(Ids{0, 3}),
                         "decode: id 3 at position 1 is out of range for a vocabulary of 3", IndexError);
    CHECK_THROWS_AS((void)ByteTokenizer().decode(Ids{-1}), IndexError);
    CHECK_THROWS_AS((void)ByteTokenizer().decode(Ids{256}), IndexError);
    CHECK_THROWS_AS(CharTokenizer(""), ValueError);
    CHECK_THROWS_AS(CharTokenizer("a\xC0"), FormatError);
    CHECK_THROWS_AS(make_tokenizer("word", "text"), ValueError);
    for (const char* json :
         {"", "{", "[]", "{}", R"({"type": 3})", R"({"type": "word"})", R"({"type": "char"})",
          R"({"type": "char", "alphabet": ""})", R"({"type": "char", "alphabet": "ba"})",
          R"({"type": "char", "alphabet": "aa"})", "{\"type\": \"char\", \"alphabet\": \"a\xFF\"}"}) {
      CAPTURE(json);
      CHECK_THROWS_AS(tokenizer_from_json(json), FormatError);
    }
  }

  TEST_CASE("every code point has one UTF-8 form, read back as itself") {
    size_t wrong = 0;
    for (char32_t code = 0; code <= 0x10FFFF; ++code) {
      if (code == 0xD800) code = 0xE000;  // surrogates have none
      std::string text;
      append_utf8(text, code);
      const Utf8Char front = front_utf8(text);
      wrong += !(front.kind == Utf8Char::Kind::complete && front.code == code &&
                 static_cast<size_t>(front.length) == text.size());
    }
    CHECK(wrong == 0);
  }

  TEST_CASE("damaged UTF-8 becomes one U+FFFD for each piece") {
    const std::string r(replacement_character);
    struct Row {
      std::string bytes, want;
    };
    const Row rows[] = {
        {"a\xFF z", "a" + r + " z"},
        {"\x80\x80", r + r},
        {"\xC0\xAF", r + r},                  // overlong
        {"\xE0\x9F\xBF", r + r + r},          // overlong
        {"\xED\xA0\x80", r + r + r},          // surrogate
        {"\xF4\x90\x80\x80", r + r + r + r},  // above U+10FFFF
        {"\xF5\x80\x80\x80", r + r + r + r},
        {"\xE2\x82", r},                        // cut
        {"\xE2\x82\x41", r + "A"},              // cut, then a letter
        {"\xF0\x9D\x84\xE2\x82\xAC", r + "€"},  // cut, then a character
        {"\xF1\x80\x80\xE1\x80\xC2 ", r + r + r + " "},
    };
    for (const Row& row : rows) {
      CAPTURE(row.want);
      CHECK(stream_all(row.bytes) == row.want);
    }
  }

  TEST_CASE("any cutting of the bytes gives the same text, and only complete characters") {
    for (uint64_t seed = 0; seed < 300; ++seed) {
      const std::string bytes = random_bytes(seed, 30), want = stream_all(bytes);
      const Ticket ticket{seed, 2};
      Utf8Stream stream;
      std::string got;
      bool complete = true;
      for (size_t at = 0, i = 0; at < bytes.size(); ++i) {
        const size_t length = ticket.word(i) % (seed % 5 + 2);  // 0 too
        const std::string text = stream.push(std::string_view(bytes).substr(at, length));
        complete = complete && stream_all(text) == text;  // valid UTF-8 passes unchanged
        got += text;
        at += length;
      }
      got += stream.flush();
      CHECK(got == want);
      CHECK(complete);
      CHECK(stream.flush().empty());
    }
    Utf8Stream stream;
    CHECK(stream.push("a\xE2").compare("a") == 0);
    CHECK(stream.push("\x82").empty());
    CHECK(stream.push("\xAC!").compare("€!") == 0);
  }
}
