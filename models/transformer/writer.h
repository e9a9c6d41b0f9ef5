// One text as it is drawn, token by token: what its draws depend on, what came out, and why it ended.
// Not here: where logits come from (decoder.h).
// Next: generate.h.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "../../autograd/random.h"
#include "sampler.h"

namespace tapestry {

/// What happens to a text once the model has read max_seq_len tokens of it.
enum class WhenFull {
  stop,   ///< it ends, with EndReason::max_seq_len
  slide,  ///< the last max_seq_len/2 tokens are read again from position 0, and the rest is forgotten
  error   ///< ValueError
};

struct GenerateOptions {
  int64_t max_tokens = 500;
  SamplerOptions sampler = {};
  uint64_t seed = 1;                   ///< token i is drawn with number i of this seed's stream: same seed, same text
  std::vector<int32_t> stop_ids = {};  ///< tokens that end the text and are no part of it
  WhenFull when_full = WhenFull::stop;
  int64_t prefill_chunk = 0;       ///< tokens of a prompt that are read at once; 0: all
  bool bf16_cache = false;         ///< keys and values are rounded to bf16, for half the memory
  int64_t log_probabilities = -1;  ///< n: keep the log-probability of each token, and of the n most likely; −1: none
};

enum class EndReason {
  max_tokens,   ///< as many as were asked for
  stop_id,      ///< the model drew one of stop_ids
  stopped,      ///< whoever takes the tokens wanted no more, such as at a stop string
  max_seq_len,  ///< the model has read max_seq_len tokens
};
/// "max_tokens" and so on.
std::string_view name_of(EndReason reason);

struct Generation {
  std::vector<int32_t> ids;  ///< without the prompt and without a stop id
  EndReason reason = EndReason::max_tokens;
  std::vector<double> log_probabilities;         ///< of each token, in the model's own distribution; if asked for
  std::vector<std::vector<LogProbability>> top;  ///< the most likely ones at each place; if asked for
  double prompt_seconds = 0;                     ///< until the prompt was read
  double decode_seconds = 0;                     ///< for all that follows
};

/// Draws the tokens of one text. A pure function of options, seed, prompt and the logits handed over.
class Writer {
 public:
  /// `prompt` is what penalties count as seen. ValueError for bad options.
  Writer(const GenerateOptions& options, uint64_t seed, std::span<const int32_t> prompt);
  /// The text has ended.
  [[nodiscard]] bool done() const { return done_; }
  /// Draws the next token, unless it is a stop id, which ends the text.
  std::optional<int32_t> draw(std::span<const float> logits);
  void end(EndReason reason);
  Generation result;

 private:
  const GenerateOptions& options_;
  Ticket ticket_;
  TokenCounts counts_;
  bool done_ = false;
};

}  // namespace tapestry
