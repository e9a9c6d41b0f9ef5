// Unicode regular expressions as tokenizer files write them (Oniguruma's and Rust's syntax), run by PCRE2.
// Not here: which pieces a match makes (pre_tokenizer.h). docs/adr/0005-pcre2.md says why PCRE2.
// Next: pre_tokenizer.h.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

namespace tapestry {

/// A compiled expression. Copies share the compiled form, which threads may use at once.
class Regex {
 public:
  /// FormatError, naming the place, for what is no expression, and for constructs that mean something else in PCRE2 than
  /// in the libraries these expressions were written for (anchors ^ and $, nested sets, \h, \b, (?m), …).
  explicit Regex(std::string_view pattern);
  [[nodiscard]] const std::string& pattern() const { return pattern_; }

 private:
  friend class RegexMatcher;
  std::string pattern_;
  std::shared_ptr<void> code_;
};

/// What one search finds.
struct RegexMatch {
  enum class Kind {
    found,      ///< [begin, end) of the text
    none,       ///< no match begins at `from` or later
    undecided,  ///< partial searches only: more text could change the answer; `begin` is where that match would begin
  };
  Kind kind = Kind::none;
  size_t begin = 0;
  size_t end = 0;
};

/// Searches with one expression, one thread at a time.
class RegexMatcher {
 public:
  explicit RegexMatcher(const Regex& regex);
  /// The leftmost match that begins at or after `from`, which must be the place of a character. `text` must be valid
  /// UTF-8. ValueError if the expression backtracks without end.
  /// `partial`: the text may go on; a match counts only if no further text could change it.
  RegexMatch find(std::string_view text, size_t from, bool partial = false);

 private:
  Regex regex_;
  std::shared_ptr<void> data_;
};

}  // namespace tapestry
