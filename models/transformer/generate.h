// Writing on: a Transformer's own tokens, one after the other, with a cache.
// Not here: text (../text/), or the choice of one token (sampler.h).
// Next: kv_cache.h.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "lm.h"
#include "sampler.h"

namespace tapestry {

/// Reads tokens of one sequence of any length and says what comes next.
///
/// The model sees at most max_seq_len tokens. When they are full, the last max_seq_len/2 are read again from position 0
/// and the rest is forgotten: what is kept then costs one pass every max_seq_len/2 tokens, and every prediction rests
/// on max_seq_len/2 to max_seq_len tokens.
class Decoder {
 public:
  /// Borrows the model.
  explicit Decoder(const Transformer& model);
  /// Logits (V) of the token that follows `tokens`, which follow what was read before. ValueError for none, IndexError
  /// for an id out of range.
  std::vector<float> read(std::span<const int32_t> tokens);

 private:
  Tensor forward(std::span<const int32_t> tokens);

  const Transformer& model_;
  KeyValueCache cache_;
  std::vector<int32_t> window_;  // what the cache holds
};

struct GenerateOptions {
  int64_t max_tokens = 500;
  SamplerOptions sampler;
  uint64_t seed = 1;  ///< token i is drawn with number i of this seed's stream: same seed, same text
};

/// Draws options.max_tokens tokens after `prompt` and gives each to `emit` as soon as it is drawn. Errors as Decoder
/// and sample().
void generate(const Transformer& model, std::span<const int32_t> prompt, const GenerateOptions& options,
              const std::function<void(int32_t id)>& emit);

}  // namespace tapestry
