// How many words of a generated text exist: a check that a model has learnt to spell.
// Not a measure of meaning, and no tokenizer.
// Next: ../transformer/sampler.h.
#pragma once

#include <cstdint>
#include <string_view>

namespace tapestry {

struct WordCount {
  int64_t known = 0;  ///< words that occur in the corpus
  int64_t total = 0;
  [[nodiscard]] double share() const {
    return total == 0 ? 0.0 : static_cast<double>(known) / static_cast<double>(total);
  }
};

/// Counts the words of `text` that are words of `corpus`, repeats included. A word is a longest run of ASCII letters,
/// apostrophes and bytes above 0x7F (letters of other scripts); case matters.
WordCount count_known_words(std::string_view text, std::string_view corpus);

}  // namespace tapestry
