// A Transformer that reads tokens and says what comes next: a cache, and what happens at the end of its memory.
// Not here: the choice of a token (sampler.h), or the loop around it (generate.h).
// Next: generate.h.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "lm.h"

namespace tapestry {

struct DecoderOptions {
  bool slide = false;               ///< else reading more than max_seq_len tokens is an error
  int64_t prefill_chunk = 0;        ///< tokens of a prompt that are read at once; 0: all
  std::optional<DType> cache = {};  ///< dtype of the keys and values; the model's, or bf16 for half the memory
};

/// Reads one sequence, or several side by side: prompts of any lengths, and then as many tokens of each.
///
/// Where it slides, what is kept costs one pass every max_seq_len/2 tokens, and every prediction rests on max_seq_len/2
/// to max_seq_len tokens.
class Decoder {
 public:
  /// Borrows the model. ValueError for a negative chunk.
  explicit Decoder(const Transformer& model, DecoderOptions options = {});
  /// Logits (V) of the token that follows `tokens`, which follow what was read before. ValueError for none, or where
  /// they are more than max_seq_len; IndexError for an id out of range. What was read before stays after an error.
  std::vector<float> read(std::span<const int32_t> tokens);
  /// The same for several sequences, a list of tokens each; the first call decides how many.
  std::vector<std::vector<float>> read(std::span<const std::vector<int32_t>> tokens);
  /// Goes on with these sequences alone, in this order.
  void keep(std::span<const int64_t> sequences);
  /// What the model sees of a sequence.
  [[nodiscard]] std::span<const int32_t> tokens(size_t sequence = 0) const;
  /// Tokens of the sequences that were computed so far, padding and what was read again included.
  [[nodiscard]] int64_t computed() const { return computed_; }
  [[nodiscard]] const Transformer& model() const { return model_; }

 private:
  void check(std::span<const std::vector<int32_t>> tokens) const;
  std::vector<std::vector<float>> read_checked(std::span<const std::vector<int32_t>> tokens);
  std::vector<std::vector<float>> read_again();
  std::vector<std::vector<float>> read_into_cache(const std::vector<std::vector<int32_t>>& rows);

  const Transformer& model_;
  DecoderOptions options_;
  std::optional<KeyValueCache> cache_;
  std::vector<std::vector<int32_t>> windows_;  // what the cache holds, a row each
  int64_t computed_ = 0;
};

}  // namespace tapestry
