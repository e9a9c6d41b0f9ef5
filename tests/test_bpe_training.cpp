// Vocabularies are those of the definition, and depend on the text alone.
// Next: ../models/text/bpe_trainer.h.
#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <random>

#include "../autograd/error.h"
#include "../autograd/parallel.h"
#include "../models/text/bpe_trainer.h"
#include "../models/text/embedded_corpus.h"
#include "../models/text/word_counts.h"

using namespace tapestry;

namespace {

using Merges = std::vector<std::pair<std::string, std::string>>;
using Words = std::map<std::string, int64_t>;

/// The definition: count all pairs anew for every merge.
Merges merges_by_definition(const Words& words, size_t tokens) {
  std::map<std::vector<std::string>, int64_t> split;
  for (const auto& [word, count] : words) {
    std::vector<std::string> parts;
    for (const char c : word) parts.emplace_back(1, c);
    split[parts] += count;
  }
  Merges merges;
  std::map<std::string, bool> made;
  while (256 + made.size() < tokens) {
    std::map<std::pair<std::string, std::string>, int64_t> counts;
    for (const auto& [parts, count] : split)
      for (size_t i = 0; i + 1 < parts.size(); ++i) counts[{parts[i], parts[i + 1]}] += count;
    if (counts.empty()) break;
    auto best = counts.begin();
    for (auto it = counts.begin(); it != counts.end(); ++it)
      if (it->second >= best->second) best = it;  // the map is sorted: of equal ones the greatest pair stays
    const auto [left, right] = best->first;
    merges.emplace_back(left, right);
    made[left + right] = true;
    std::map<std::vector<std::string>, int64_t> next;
    for (const auto& [parts, count] : split) {
      std::vector<std::string> joined;
      for (size_t i = 0; i < parts.size(); ++i) {
        const bool here = i + 1 < parts.size() && parts[i] == left && parts[i + 1] == right;
        joined.push_back(here ? left + right : parts[i]);
        if (here) ++i;
      }
      next[joined] += count;
    }
    split = std::move(next);
  }
  return merges;
}

std::string random_words(std::mt19937& random, std::string_view letters, int n) {
  std::string text;
  for (int i = 0; i < n; ++i) {
    text += ' ';
    for (auto length = 1 + random() % 9; length > 0; --length) text.push_back(letters[random() % letters.size()]);
  }
  return text;
}

Words words_of(const std::string& text) {
  Words words;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find(' ', at + 1), text.size());
    ++words[text.substr(at, end - at)];
    at = end;
  }
  return words;
}

}  // namespace

TEST_SUITE("bpe_training") {
  TEST_CASE("merges are those of counting anew for each") {
    std::mt19937 random(1);
    for (const std::string_view letters : {"a", "ab", "abc", "abcdefghijkl"})
      for (int i = 0; i < 6; ++i) {
        const std::string text = random_words(random, letters, 5 << i);
        const auto v = train_bpe(text, {.vocab_size = 300, .special = {}, .pattern = {}});
        CAPTURE(text);
        CHECK(v.merges == merges_by_definition(words_of(text), 300));
      }
  }

  TEST_CASE("ties go to the greater pair of bytes") {
    const auto v = train_bpe("ab \xC3\xA9 zz", {.vocab_size = 258, .special = {}, .pattern = {}});
    REQUIRE(v.merges.size() == 2);
    CHECK(v.merges[0] == std::pair<std::string, std::string>("\xC3", "\xA9"));  // é: bytes are not negative numbers
    CHECK(v.merges[1] == std::pair<std::string, std::string>("z", "z"));
  }

  TEST_CASE("the vocabulary is bytes, merged tokens and special tokens") {
    const auto v = train_bpe("low low lower<|end|>", {.vocab_size = 260, .special = {"<|end|>"}, .pattern = {}});
    REQUIRE(v.tokens.size() == 260);
    for (int b = 0; b < 256; ++b) CHECK(v.tokens[static_cast<size_t>(b)] == std::string(1, static_cast<char>(b)));
    CHECK(v.tokens[256] == "ow");
    CHECK(v.tokens[257] == "low");
    CHECK(v.tokens[258] == " low");
    CHECK(v.tokens[259] == "<|end|>");
    CHECK(v.special == std::vector<int32_t>{259});
    const auto small = train_bpe("ab", {.vocab_size = 1000, .special = {}, .pattern = {}});
    CHECK(small.tokens.size() == 257);  // no pair is left
    CHECK(train_bpe("", {.vocab_size = 300, .special = {}, .pattern = {}}).tokens.size() == 256);
  }

  TEST_CASE("nothing merges across pieces or special tokens") {
    std::string text;
    for (int i = 0; i < 20; ++i) text += "xy<s>xy<s><s>x1y!";
    const auto v = train_bpe(text, {.vocab_size = 400, .special = {"<s>", "<s><s>"}, .pattern = {}});
    CHECK(v.merges == Merges{{"x", "y"}});
    const auto tokenizer = parse_tokenizer_json(write_tokenizer_json(v));
    CHECK(tokenizer->encode("xy<s><s>", {.parse_special = true}) == std::vector<int32_t>{256, 258});  // the longest
  }

  TEST_CASE("a pattern of one's own cuts in training and in encoding") {
    const auto v = train_bpe("ab12ab12", {.vocab_size = 300, .special = {}, .pattern = R"(\p{L}|\p{N}+)"});
    CHECK(v.merges == Merges{{"1", "2"}});
    const auto tokenizer = parse_tokenizer_json(write_tokenizer_json(v));
    CHECK(tokenizer->encode("12ab") == std::vector<int32_t>{256, 'a', 'b'});
  }

  TEST_CASE("threads and blocks change nothing") {
    std::string text(embedded_corpus().substr(0, 700'000));
    text += std::string(1'200'000, 'a') + " \xFF\xE2\x80 " + std::string(embedded_corpus().substr(0, 900'000));
    const Regex pattern(R"(\p{L}+| ?[^\s\p{L}]+|\s+(?!\S)|\s)");
    const int threads = num_threads();
    std::vector<WordCounts::Entry> first;
    for (const int n : {1, 2, 4}) {
      set_num_threads(n);
      const auto counted = count_words(text, pattern, AddedTokens()).entries;
      if (first.empty()) {
        std::map<std::string_view, int64_t> direct;  // cut from the front to the end
        RegexMatcher matcher(pattern);
        const size_t bad = text.find('\xFF');
        for (const std::string_view run :
             {std::string_view(text).substr(0, bad), std::string_view(text).substr(bad + 3)})
          for (size_t at = 0; at < run.size();) {
            const RegexMatch m = matcher.find(run, at);
            if (m.begin != at || m.end == at) FAIL("the pattern leaves a gap at " << at);
            ++direct[run.substr(at, m.end - at)];
            at = m.end;
          }
        ++direct["\xFF"];
        ++direct["\xE2\x80"];
        REQUIRE(counted.size() == direct.size());
        CHECK(std::all_of(counted.begin(), counted.end(), [&](const auto& e) { return direct[e.word] == e.count; }));
        first = counted;
      }
      REQUIRE(counted.size() == first.size());
      CHECK(std::equal(first.begin(), first.end(), counted.begin(),
                       [](const auto& a, const auto& b) { return a.word == b.word && a.count == b.count; }));
    }
    set_num_threads(threads);
  }

  TEST_CASE("what cannot be made is refused") {
    const auto train = [](BpeTrainOptions options) { (void)train_bpe("text", options); };
    CHECK_THROWS_WITH_AS(train({.vocab_size = 256, .special = {"<s>"}, .pattern = {}}),
                         "bpe: vocab_size is 256; 256 bytes and 1 special tokens need at least 257", ValueError);
    CHECK_THROWS_AS(train({.vocab_size = 300, .special = {""}, .pattern = {}}), ValueError);
    CHECK_THROWS_AS(train({.vocab_size = 300, .special = {"<a>", "<a>"}, .pattern = {}}), ValueError);
    CHECK_THROWS_AS(train({.vocab_size = 300, .special = {"a"}, .pattern = {}}), ValueError);
    CHECK_THROWS_AS(train({.vocab_size = 300, .special = {}, .pattern = "["}), FormatError);
  }
}
