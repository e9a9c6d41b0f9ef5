// A text as token ids, cut into a training and a held-out part; the batch order; the windows of evaluation.
// Not here: tokenization (tokenizer.h) and tensors: batches are plain vectors of ids.
// Next: baseline.h.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace tapestry {

/// Token ids of a text. The first part is for training, the last `held_out` of it only for evaluation.
class Corpus {
 public:
  /// The training part holds floor(n · (1 − held_out)) tokens. Throws ValueError unless 0 ≤ held_out < 1 and there
  /// are tokens.
  explicit Corpus(std::vector<int32_t> tokens, double held_out = 0.1);

  [[nodiscard]] std::span<const int32_t> tokens() const { return tokens_; }
  [[nodiscard]] std::span<const int32_t> train() const { return tokens().first(n_train_); }
  [[nodiscard]] std::span<const int32_t> held_out() const { return tokens().subspan(n_train_); }

 private:
  std::vector<int32_t> tokens_;
  size_t n_train_ = 0;
};

/// Rows of consecutive tokens and the tokens that follow them: targets[r, t] is the token after inputs[r, t].
struct TokenBatch {
  int64_t rows = 0;
  int64_t context = 0;
  std::vector<int64_t> inputs;   ///< (rows, context), row-major
  std::vector<int64_t> targets;  ///< (rows, context), row-major
};

/// Which windows each training step sees: a pure function of (seed, step, row), so a run resumes from its step alone,
/// whatever the threads and the splitting of a step into smaller batches.
///
/// A window starts at s and holds tokens s … s + context, so n tokens have n − context windows, from s = 0 on.
/// Row `row` of step `step` takes s = floor(r · (n − context) / 2⁶⁴) with the 64-bit r = w₀ + 2³² · w₁ from
/// (w₀, w₁, …) = philox(key = seed XOR hash_name("batch_order"), counter_high = step, counter_low = row).
/// Windows are drawn with replacement: every one is equally likely at every step.
class BatchOrder {
 public:
  /// Borrows `tokens`. Throws ValueError, with both numbers, if there are fewer than context + 1.
  BatchOrder(std::span<const int32_t> tokens, int64_t context, uint64_t seed);

  /// Number of different windows, n − context ≥ 1.
  [[nodiscard]] int64_t n_windows() const { return static_cast<int64_t>(tokens_.size()) - context_; }
  /// Where the window of this row starts, in [0, n_windows()).
  [[nodiscard]] int64_t start(int64_t step, int64_t row) const;
  /// Rows first_row … first_row + rows − 1 of a step. A step of several smaller batches takes them one after the other.
  [[nodiscard]] TokenBatch batch(int64_t step, int64_t rows, int64_t first_row = 0) const;

 private:
  std::span<const int32_t> tokens_;
  int64_t context_ = 0;
  uint64_t key_ = 0;
};

/// Windows that cover a text without overlap: window i has the tokens i · context … as inputs, the last one is shorter
/// if it must. Every token but the first is a target exactly once.
class EvalWindows {
 public:
  /// Borrows `tokens`. Throws ValueError, with both numbers, if there are fewer than context + 1.
  EvalWindows(std::span<const int32_t> tokens, int64_t context);

  /// Number of windows, ceil((n − 1) / context).
  [[nodiscard]] int64_t size() const { return (n_targets() + context_ - 1) / context_; }
  /// Number of tokens that are targets, n − 1.
  [[nodiscard]] int64_t n_targets() const { return static_cast<int64_t>(tokens_.size()) - 1; }
  /// Windows `first`, first + 1, … as rows of one batch: at most `max_rows`, all full, or the short last one alone.
  ///
  ///     for (int64_t i = 0; i < windows.size();) { const TokenBatch b = windows.batch(i, 32); …; i += b.rows; }
  [[nodiscard]] TokenBatch batch(int64_t first, int64_t max_rows) const;

 private:
  std::span<const int32_t> tokens_;
  int64_t context_ = 0;
};

}  // namespace tapestry
