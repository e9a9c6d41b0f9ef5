// The gradient of one training step, whatever number of micro-batches it is computed in, and the loss on a text.
// Not here: the update (trainer.h).
// Next: checkpoint.h.
#pragma once

#include <functional>
#include <span>

#include "../../autograd/tensor.h"
#include "../text/corpus.h"

namespace tapestry {

/// What training needs to know of a language model: tokens i64 (B, T) to logits (B, T, V).
using LogitsFn = std::function<Tensor(const Tensor& tokens)>;

/// A sum of token losses, in nats, and how many there were.
struct TokenLoss {
  double sum = 0;
  int64_t tokens = 0;
  [[nodiscard]] double mean() const { return tokens == 0 ? 0 : sum / static_cast<double>(tokens); }  ///< 0 over nothing
  [[nodiscard]] double perplexity() const;
};

/// A target that counts for nothing: no loss, no gradient, no token.
inline constexpr int64_t ignored_target = -100;

/// Adds d(mean loss of all tokens of all micro-batches)/d(parameter) to every .grad. Every token weighs the same
/// wherever it stands: the sums are divided by the number of targets of the whole step, never a mean of means. Without
/// any target nothing is added.
TokenLoss accumulate_gradients(const LogitsFn& logits, std::span<const TokenBatch> micro_batches);

/// The loss over held-out windows without recording; `max_windows` of them spread evenly over the text, or all for 0.
TokenLoss evaluate(const LogitsFn& logits, const EvalWindows& windows, int64_t max_windows = 0);

}  // namespace tapestry
