// Byte-pair encoding gives the ids of the reference implementations, takes any bytes, and works on streams.
// Not here: what tokenizer files may hold (test_tokenizer_files.cpp) and training (test_bpe_training.cpp).
// Next: ../models/text/bpe_tokenizer.h.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <random>

#include "../autograd/error.h"
#include "../models/text/bpe.h"
#include "../models/text/tokenizer.h"
#include "../nn/mapped_file.h"

using namespace tapestry;

namespace {

using Ids = std::vector<int32_t>;

std::string golden(const std::string& name) { return TAPESTRY_GOLDEN_DIR "/tokenizers/" + name; }

const Tokenizer& gpt2() {
  static const auto tokenizer = read_tokenizer(golden("gpt2"));
  return *tokenizer;
}
const Tokenizer& minimind() {
  static const auto tokenizer = read_tokenizer(golden("minimind/tokenizer.json"));
  return *tokenizer;
}

/// Bytes of every kind: ASCII words, white space, characters of all lengths, and noise.
std::string random_text(std::mt19937& random) {
  static const std::vector<std::string> pieces = {"the",
                                                  " of",
                                                  "'s",
                                                  "  ",
                                                  "\n",
                                                  "\t",
                                                  "é",
                                                  "ß",
                                                  "猫",
                                                  "👋",
                                                  "1",
                                                  "42",
                                                  "!",
                                                  "_",
                                                  "\r\n",
                                                  "İ",
                                                  "م",
                                                  "\u0301",
                                                  "\u00a0",
                                                  "\u3000",
                                                  "\xE2",
                                                  "\x80",
                                                  "\xFF",
                                                  "\xF0\x9F",
                                                  "\xED\xA0\x80",
                                                  "<|endoftext|>"};
  std::string text;
  for (auto n = random() % 12; n > 0; --n) {
    if (random() % 3 == 0)
      text.push_back(static_cast<char>(random()));
    else
      text += pieces[random() % pieces.size()];
  }
  return text;
}

int number_of_strings() { return std::getenv("TAPESTRY_SMALL_SAMPLES") != nullptr ? 2'000 : 100'000; }

/// The same merges by the definition: the pair of lowest rank, leftmost first, until there is none.
Ids merged_by_definition(const BpeParts& parts, const std::string& piece) {
  Ids ids;
  for (const char c : piece) ids.push_back(parts.byte_ids[static_cast<unsigned char>(c)]);
  for (;;) {
    size_t rank = parts.merges.size(), place = 0;
    for (size_t i = 0; i + 1 < ids.size(); ++i)
      for (size_t m = 0; m < rank; ++m)
        if (parts.merges[m].left == ids[i] && parts.merges[m].right == ids[i + 1]) {
          rank = m;
          place = i;
        }
    if (rank == parts.merges.size()) return ids;
    ids[place] = parts.merges[rank].merged;
    ids.erase(ids.begin() + static_cast<std::ptrdiff_t>(place) + 1);
  }
}

/// Bytes a, b and merges in any order, also ones that come before what they are made of.
BpeParts two_letters(std::mt19937& random) {
  BpeParts parts;
  parts.byte_ids.fill(-1);
  parts.tokens = {"a", "b"};
  parts.byte_ids['a'] = 0;
  parts.byte_ids['b'] = 1;
  for (int i = 0; i < 8; ++i) {
    const auto left = static_cast<int32_t>(random() % parts.tokens.size());
    const auto right = static_cast<int32_t>(random() % parts.tokens.size());
    const std::string text = parts.tokens[static_cast<size_t>(left)] + parts.tokens[static_cast<size_t>(right)];
    if (std::find(parts.tokens.begin(), parts.tokens.end(), text) != parts.tokens.end()) continue;
    parts.merges.push_back({left, right, static_cast<int32_t>(parts.tokens.size())});
    parts.tokens.push_back(text);
  }
  std::shuffle(parts.merges.begin(), parts.merges.end(), random);
  return parts;
}

}  // namespace

TEST_SUITE("bpe") {
  TEST_CASE("ids are those of the reference implementations, and decode to the text") {
    for (const bool special : {false, true}) {  // GPT-2's reference took the text of special tokens as text
      const Tokenizer& tokenizer = special ? minimind() : gpt2();
      const MappedFile file(golden(special ? "minimind/ids.json" : "gpt2/ids.json"));
      const auto rows = nlohmann::json::parse(file.bytes());
      REQUIRE(rows.size() == 83);
      for (const auto& row : rows) {
        const auto text = row["text"].get<std::string>();
        CAPTURE(text);
        const Ids ids = tokenizer.encode(text, {.parse_special = special});
        CHECK(ids == row["ids"].get<Ids>());
        CHECK(tokenizer.decode(ids) == text);
      }
    }
  }

  TEST_CASE("any bytes in, the same bytes out") {
    std::mt19937 random(7);
    for (int i = 0; i < number_of_strings(); ++i) {
      const std::string text = random_text(random);
      const Tokenizer& tokenizer = i % 2 == 0 ? gpt2() : minimind();
      const Ids ids = tokenizer.encode(text, {.parse_special = i % 4 < 2});
      if (tokenizer.decode(ids) != text) FAIL_CHECK("string " << i << ": " << text);
    }
    using namespace std::string_literals;
    for (const std::string& text : {"\xE2\x80"s, "\xE6\xAD"s, "\xAA"s, "\xFF\xFE"s, "\x80"s, "\0"s, "a\0b"s, ""s})
      CHECK(gpt2().decode(gpt2().encode(text)) == text);
    CHECK(gpt2().encode("").empty());
    CHECK(gpt2().decode(gpt2().encode("\xE6\xAD")) + gpt2().decode(gpt2().encode("\xAA")) == "\u6B6A");
  }

  TEST_CASE("special tokens are found only where they are asked for") {
    const Tokenizer& t = minimind();
    const std::string text = "a<|im_end|>b";
    const int32_t end = t.id_of("<|im_end|>").value();
    CHECK(end == 2);
    CHECK(t.is_special(end));
    CHECK_FALSE(t.is_special(t.id_of("a").value()));
    CHECK_FALSE(t.is_special(-1));
    CHECK_FALSE(t.id_of("no such token").has_value());
    const Ids asked = t.encode(text, {.parse_special = true}), plain = t.encode(text);
    CHECK(std::count(asked.begin(), asked.end(), end) == 1);
    CHECK(std::count(plain.begin(), plain.end(), end) == 0);
    CHECK(t.decode(asked) == text);
    CHECK(t.decode(plain) == text);
    CHECK(t.encode("<think>") == Ids{t.id_of("<think>").value()});  // added, but not special
    CHECK(gpt2().encode("<|endoftext|>", {.parse_special = true}) == Ids{50256});
    CHECK(t.bos_id() == t.id_of("<|im_start|>"));
    CHECK(t.eos_id() == end);
  }

  TEST_CASE("short and long pieces merge as the definition says") {
    std::mt19937 random(11);
    for (int i = 0; i < 200; ++i) {
      const Bpe bpe(two_letters(random));
      std::string piece;
      for (auto n = random() % 120; n > 0; --n) piece.push_back(random() % 3 == 0 ? 'b' : 'a');
      Ids ids;
      bpe.encode(piece, ids);
      CHECK(ids == merged_by_definition(bpe.parts(), piece));
    }
  }

  TEST_CASE("a long run of one letter takes no time that grows with its square") {
    const Ids ids = gpt2().encode(std::string(1'000'000, 'a'));
    CHECK(gpt2().decode(ids) == std::string(1'000'000, 'a'));
    CHECK(gpt2().encode(std::string(200'000, ' ')).size() > 0);
  }

  TEST_CASE("streams give the ids and the text of one call, however they are cut") {
    std::mt19937 random(3);
    std::string text;
    while (text.size() < 300'000) text += random_text(random);
    for (const bool special : {false, true})
      for (const Tokenizer* tokenizer : {&gpt2(), &minimind()}) {
        const EncodeOptions options{.parse_special = special};
        const Ids ids = tokenizer->encode(text, options);
        EncodeStream stream(*tokenizer, options);
        Ids streamed;
        for (size_t at = 0; at < text.size();) {
          const size_t n = 1 + random() % 30'000;
          const Ids more = stream.push(std::string_view(text).substr(at, n));
          streamed.insert(streamed.end(), more.begin(), more.end());
          at += n;
        }
        CHECK(streamed.size() + 40'000 > ids.size());  // most of it has come before the end
        const Ids rest = stream.flush();
        streamed.insert(streamed.end(), rest.begin(), rest.end());
        CHECK(streamed == ids);

        Utf8Stream whole;
        const std::string expected = whole.push(tokenizer->decode(ids)) + whole.flush();
        DecodeStream decoder(*tokenizer);
        std::string decoded;
        for (const int32_t id : ids) decoded += decoder.push(id);
        CHECK(decoded + decoder.flush() == expected);
      }
  }

  TEST_CASE("the front that is decided is encoded as it is in the whole") {
    std::mt19937 random(5);
    for (int i = 0; i < number_of_strings() / 10; ++i) {
      const std::string front = random_text(random), more = random_text(random);
      const EncodeOptions options{.parse_special = i % 2 == 0};
      const size_t n = gpt2().decided(front, options);
      CAPTURE(front);
      CAPTURE(more);
      CAPTURE(n);
      REQUIRE(n <= front.size());
      Ids ids = gpt2().encode(front.substr(0, n), options);
      const Ids rest = gpt2().encode(front.substr(n) + more, options);
      ids.insert(ids.end(), rest.begin(), rest.end());
      CHECK(ids == gpt2().encode(front + more, options));
    }
  }

  TEST_CASE("ids out of range are errors") {
    CHECK_THROWS_WITH_AS((void)gpt2().decode(Ids{0, 50257}),
                         "decode: id 50257 at position 1 is out of range for a vocabulary of 50257", IndexError);
    CHECK_THROWS_AS((void)gpt2().decode(Ids{-1}), IndexError);
    DecodeStream stream(gpt2());
    CHECK_THROWS_AS((void)stream.push(50257), IndexError);
  }

  TEST_CASE("the JSON form gives the same tokenizer") {
    const auto read = tokenizer_from_json(minimind().to_json());
    CHECK(read->name() == "bpe");
    CHECK(read->to_json() == minimind().to_json());
    CHECK(read->encode("Hello, world!") == minimind().encode("Hello, world!"));
    CHECK(read->eos_id() == minimind().eos_id());
  }
}
