// How often each piece of a text occurs: what a vocabulary is made from.
// Not here: the merges (bpe_trainer.h).
// Next: bpe_trainer.h.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "added_tokens.h"
#include "regex.h"

namespace tapestry {

struct WordCounts {
  struct Entry {
    std::string_view word;  ///< of the text
    int64_t count = 0;
  };
  std::vector<Entry> entries;  ///< each word once, sorted by its bytes
};

/// Counts the pieces into which the expression cuts the text between special tokens. Bytes that are no UTF-8 are pieces of
/// their own. Uses the thread pool; the counts are those of cutting from the front to the end.
WordCounts count_words(std::string_view text, const Regex& pattern, const AddedTokens& special);

}  // namespace tapestry
