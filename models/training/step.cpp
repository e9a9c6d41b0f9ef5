// Sums of token losses, forward and backward.
// Next: trainer.cpp.
#include "step.h"

#include <algorithm>
#include <cmath>

#include "../../autograd/grad_mode.h"
#include "../../ops/ops.h"

namespace tapestry {
namespace {

Tensor as_tensor(const std::vector<int64_t>& ids, const TokenBatch& b) { return from(ids, {b.rows, b.context}); }

Tensor loss_of(const LossFn& summed_loss, const TokenBatch& b) {
  return summed_loss(as_tensor(b.inputs, b), as_tensor(b.targets, b));
}

int64_t count_targets(const TokenBatch& b) {
  return static_cast<int64_t>(b.targets.size()) - std::count(b.targets.begin(), b.targets.end(), ignored_target);
}

}  // namespace

LossFn summed_cross_entropy(std::function<Tensor(const Tensor& tokens)> logits) {
  return [logits = std::move(logits)](const Tensor& tokens, const Tensor& targets) {
    return cross_entropy(logits(tokens), targets, {.ignore_index = ignored_target, .reduction = Reduction::sum});
  };
}

double TokenLoss::perplexity() const { return std::exp(mean()); }

TokenLoss accumulate_gradients(const LossFn& summed_loss, std::span<const TokenBatch> micro_batches) {
  TokenLoss total;
  for (const TokenBatch& b : micro_batches) total.tokens += count_targets(b);
  for (const TokenBatch& b : micro_batches) {
    if (count_targets(b) == 0) continue;
    const Tensor loss = loss_of(summed_loss, b);
    loss.backward(scalar(1 / static_cast<double>(total.tokens), loss.dtype()));
    total.sum += loss.item();
  }
  return total;
}

TokenLoss evaluate(const LossFn& summed_loss, const EvalWindows& windows, int64_t max_windows) {
  const NoGrad no_grad;
  // Rows of one forward pass: enough to fill the cores, few enough for small memory.
  const int64_t rows = std::max<int64_t>(1, 2048 / windows.batch(0, 1).context);
  const bool all = max_windows <= 0 || max_windows >= windows.size();
  const int64_t batches = all ? 0 : (max_windows + rows - 1) / rows;
  TokenLoss total;
  const auto add = [&](int64_t first) {
    const TokenBatch b = windows.batch(first, rows);
    total.sum += loss_of(summed_loss, b).item();
    total.tokens += count_targets(b);
    return b.rows;
  };
  if (all)
    for (int64_t first = 0; first < windows.size();) first += add(first);
  else
    for (int64_t i = 0; i < batches; ++i) add(i * windows.size() / batches);
  return total;
}

}  // namespace tapestry
