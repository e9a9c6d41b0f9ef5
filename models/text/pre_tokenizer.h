// How a tokenizer file cuts text into the pieces whose bytes may merge: regular expressions and Metaspace.
// Not here: what happens inside a piece (bpe.h).
// Next: bpe.h.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <variant>
#include <vector>

#include "regex.h"

namespace tapestry {

/// Cuts at the matches of an expression.
struct SplitStep {
  /// What a match becomes: a piece of its own, nothing, part of the piece before or after it; `contiguous`: matches that
  /// touch are one piece.
  enum class Behavior { isolated, removed, merged_with_previous, merged_with_next, contiguous };
  Regex pattern;
  Behavior behavior = Behavior::isolated;
  bool invert = false;  ///< what lies between the matches is taken for the matches
};
/// Puts a space before a piece that does not begin with one.
struct PrefixSpaceStep {};
/// Spaces become a character of the vocabulary, which is also put before the text; then cuts before each (SentencePiece).
struct MetaspaceStep {
  enum class Prepend { never, first, always };
  std::string replacement;
  Prepend prepend = Prepend::always;
  bool split = true;
};

/// Who takes the pieces: a reference to a callable (piece), which must outlive it.
class PieceTaker {
 public:
  template <class F>
  requires(!std::is_same_v<std::remove_cvref_t<F>, PieceTaker>) PieceTaker(F& f)  // NOLINT(google-explicit-constructor)
      : object_(std::addressof(f)), call_([](void* o, std::string_view piece) { (*static_cast<F*>(o))(piece); }) {}
  void operator()(std::string_view piece) const { call_(object_, piece); }

 private:
  void* object_;
  void (*call_)(void*, std::string_view);
};

/// The steps, each applied to every piece of the one before.
class PreTokenizer {
 public:
  using Step = std::variant<SplitStep, PrefixSpaceStep, MetaspaceStep>;

  PreTokenizer() = default;
  explicit PreTokenizer(std::vector<Step> steps) : steps_(std::move(steps)) {}
  [[nodiscard]] const std::vector<Step>& steps() const { return steps_; }

  /// Matchers for the steps, for one thread.
  class Scratch {
   public:
    explicit Scratch(const PreTokenizer& p);

   private:
    friend class PreTokenizer;
    std::vector<std::optional<RegexMatcher>> matchers_;
  };

  /// Gives `take` in order the pieces of a text, none of them empty; a piece is valid during the call. A damaged
  /// piece of UTF-8 is a piece of its own. `first`: the text is the beginning of what is encoded.
  void run(std::string_view text, bool first, Scratch& scratch, PieceTaker take) const;

  /// How much of the front of `text` can be cut by itself: whatever text follows, the pieces are those of the front and
  /// those of the rest. Less than all since a match may go on, or look ahead.
  [[nodiscard]] size_t decided(std::string_view text, Scratch& scratch) const;

 private:
  void run_step(size_t step, std::string_view piece, bool first, Scratch& scratch, PieceTaker take) const;
  std::vector<Step> steps_;
};

}  // namespace tapestry
