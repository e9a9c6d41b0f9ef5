// Whether a model computes the same with a cache as without, in every way of cutting what it reads.
// Not here: the cache (kv_cache.h).
// Next: lm.h.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lm.h"

namespace tapestry {

struct CacheCheckOptions {
  int64_t tokens = 0;       ///< of each sequence; 0: 64, or 8 more than the window, but at most max_seq_len
  int64_t chunk = 7;        ///< tokens at once where they are read in pieces
  bool bf16_cache = false;  ///< keys and values are rounded to bf16
  uint64_t seed = 1;        ///< of the tokens
};

struct CacheCheck {
  struct Row {
    std::string way;        ///< how the tokens were cut
    double difference = 0;  ///< largest |cached − recomputed logit| over the largest |logit|
  };
  std::vector<Row> rows;
  int64_t tokens = 0;
  double largest_logit = 0;
  bool fills_window = true;  ///< false: the tokens were too few for a sliding layer to forget one
  [[nodiscard]] double worst() const;
};

/// Reads three sequences of random tokens with a cache, in one piece, in pieces, token by token, and with padding in
/// front as prompts of different lengths are read, and compares the logits of all tokens with those of a call without.
/// Products round differently for other shapes, so the difference is not 0: about 1e-6 in f32. ValueError for options
/// out of their domain.
CacheCheck check_cache(const Transformer& model, CacheCheckOptions options = {});

}  // namespace tapestry
