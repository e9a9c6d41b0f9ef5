// Where a text ends, however it was cut.
// Next: ../models/text/stop_strings.h.
#include <doctest/doctest.h>

#include <algorithm>
#include <random>

#include "../autograd/error.h"
#include "../models/text/stop_strings.h"

using namespace tapestry;

namespace {

/// The text up to the first stop string that is complete, by trying every end.
std::pair<std::string, bool> plain(const std::string& text, const std::vector<std::string>& stops) {
  for (size_t end = 0; end <= text.size(); ++end) {
    size_t length = 0;
    for (const std::string& s : stops)
      if (s.size() > length && text.substr(0, end).ends_with(s)) length = s.size();
    if (length > 0) return {text.substr(0, end - length), true};
  }
  return {text, false};
}

}  // namespace

TEST_SUITE("stop_strings") {
  TEST_CASE("a table, cut in pieces of every length") {
    struct Row {
      std::string text;
      std::vector<std::string> stops;
      std::string want;
      bool stopped;
    };
    const Row rows[] = {
        {"hello world", {}, "hello world", false},
        {"hello world", {"xyz"}, "hello world", false},
        {"hello world", {"o w"}, "hell", true},
        {"hello world", {"hello"}, "", true},
        {"hello world", {"world!"}, "hello world", false},
        {"aaab", {"aab"}, "a", true},  // the beginning of a match inside another
        {"abcabd", {"abd"}, "abc", true},
        {"abcd", {"bcd", "bc"}, "a", true},  // the one complete first
        {"abcd", {"cd", "bcd"}, "a", true},  // at the same byte: the longest
        {"User: hi\nUser:", {"\nUser:"}, "User: hi", true},
        {"caf\xC3\xA9!", {"\xC3\xA9"}, "caf", true},
        {"ababac", {"abac"}, "ab", true},
        {"", {"a"}, "", false},
    };
    for (const Row& row : rows) {
      CAPTURE(row.text);
      CHECK(plain(row.text, row.stops) == std::pair(row.want, row.stopped));
      for (size_t n = 1; n <= row.text.size() + 1; ++n) {
        StopStrings stop(row.stops);
        std::string got;
        for (size_t at = 0; at < row.text.size(); at += n) got += stop.push(row.text.substr(at, n));
        got += stop.flush();
        CHECK(got == row.want);
        CHECK(stop.stopped() == row.stopped);
        if (stop.stopped()) CHECK(stop.push("more").empty());
      }
    }
    CHECK_THROWS_AS(StopStrings({"a", ""}), ValueError);
  }

  TEST_CASE("random texts of two letters, and nothing is kept back that no stop string begins with") {
    std::mt19937 draw(1);
    const auto text_of = [&](size_t n) {
      std::string text(n, 'a');
      for (char& c : text) c = draw() % 2 != 0 ? 'a' : 'b';
      return text;
    };
    for (int i = 0; i < 500; ++i) {
      const std::vector<std::string> stops = {text_of(1 + draw() % 6), text_of(3 + draw() % 4)};
      const std::string text = text_of(30);
      StopStrings stop(stops);
      std::string got;
      for (size_t at = 0; at < text.size();) {
        const size_t n = 1 + draw() % 5;
        got += stop.push(text.substr(at, n));
        at += n;
        if (stop.stopped()) continue;
        const std::string kept = text.substr(got.size(), std::min(at, text.size()) - got.size());
        CHECK((kept.empty() || std::any_of(stops.begin(), stops.end(), [&](auto& s) { return s.starts_with(kept); })));
      }
      got += stop.flush();
      CHECK(std::pair(got, stop.stopped()) == plain(text, stops));
    }
  }
}
