// The gradient of one training step, whatever number of micro-batches it is computed in, and the loss on a text.
// Not here: the update (trainer.h).
// Next: checkpoint.h.
#pragma once

#include <functional>
#include <span>

#include "../../autograd/tensor.h"
#include "../text/corpus.h"

namespace tapestry {

/// A target that counts for nothing: no loss, no gradient, no token.
inline constexpr int64_t ignored_target = -100;

/// What training needs to know of a language model: the sum of the token losses, in nats, of tokens against targets,
/// both i64 (B, T); an ignored_target adds nothing.
using LossFn = std::function<Tensor(const Tensor& tokens, const Tensor& targets)>;
/// Cross-entropy of a model that maps tokens to logits (B, T, V).
LossFn summed_cross_entropy(std::function<Tensor(const Tensor& tokens)> logits);

/// A sum of token losses, in nats, and how many there were.
struct TokenLoss {
  double sum = 0;
  int64_t tokens = 0;
  [[nodiscard]] double mean() const { return tokens == 0 ? 0 : sum / static_cast<double>(tokens); }  ///< 0 over nothing
  [[nodiscard]] double perplexity() const;
};

/// Adds d(mean loss of all tokens of all micro-batches)/d(parameter) to every .grad. Every token weighs the same
/// wherever it stands: the sums are divided by the number of targets of the whole step, never a mean of means. Without
/// any target nothing is added.
TokenLoss accumulate_gradients(const LossFn& summed_loss, std::span<const TokenBatch> micro_batches);

/// The loss over held-out windows without recording; `max_windows` of them spread evenly over the text, or all for 0.
TokenLoss evaluate(const LossFn& summed_loss, const EvalWindows& windows, int64_t max_windows = 0);

}  // namespace tapestry
