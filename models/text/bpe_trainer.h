// Making a vocabulary of byte pairs from a text (Gage 1994; Sennrich et al. 2016).
// Not here: encoding with it (bpe.h).
// Next: tokenizer_json.h.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer_json.h"

namespace tapestry {

struct BpeTrainOptions {
  int64_t vocab_size = 512;          ///< 256 bytes, merges and special tokens together
  std::vector<std::string> special;  ///< texts that are tokens by themselves; of overlapping ones the longest counts
  std::string pattern;               ///< the expression whose matches are the pieces; "" for GPT-2's
};

/// The vocabulary: ids 0 … 255 are the bytes, then a merged token each, then the special ones in their order.
///
/// Every merge joins the adjacent pair with the highest count in the text; of pairs with the same count the greater one,
/// comparing the bytes of the left tokens and then those of the right ones. Pairs are counted inside pieces only, which
/// are cut between special tokens: nothing merges across either. The result depends on the text and the options alone,
/// not on the number of threads. Where no pair is left the vocabulary is smaller than asked for.
///
/// Throws ValueError for a vocab_size that has no room for bytes and special tokens, and for special tokens that are
/// empty or given twice; FormatError for a pattern that is not supported.
ByteLevelVocabulary train_bpe(std::string_view text, const BpeTrainOptions& options);

}  // namespace tapestry
