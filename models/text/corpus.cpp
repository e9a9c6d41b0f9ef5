// The split, the batch order and the evaluation windows.
// Not here: reading files (../../nn/mapped_file.h).
// Next: ../../tests/test_corpus.cpp, which holds the golden values of the order.
#include "corpus.h"

#include <algorithm>
#include <cmath>
#include <string_view>

#include "../../autograd/error.h"
#include "../../autograd/random.h"

namespace tapestry {
namespace {

void check_length(std::string_view op, std::string_view part, std::span<const int32_t> tokens, int64_t context) {
  if (context < 1) fail<ValueError>("{}: context must be at least 1: it is {}", op, context);
  if (static_cast<uint64_t>(context) >= tokens.size()) {
    fail<ValueError>(
        "{}: context {} needs at least {} tokens, the {} part has {}; shorten the context or give more text", op,
        context, static_cast<uint64_t>(context) + 1, part, tokens.size());
  }
}

/// Appends the window of `context` inputs that starts at `start`.
void append_window(TokenBatch& batch, std::span<const int32_t> tokens, int64_t start) {
  const auto window = tokens.subspan(static_cast<size_t>(start), static_cast<size_t>(batch.context) + 1);
  batch.inputs.insert(batch.inputs.end(), window.begin(), window.end() - 1);
  batch.targets.insert(batch.targets.end(), window.begin() + 1, window.end());
}

TokenBatch empty_batch(int64_t rows, int64_t context) {
  TokenBatch batch{.rows = rows, .context = context, .inputs = {}, .targets = {}};
  batch.inputs.reserve(static_cast<size_t>(rows * context));
  batch.targets.reserve(static_cast<size_t>(rows * context));
  return batch;
}

/// floor(a · b / 2⁶⁴).
uint64_t multiply_high(uint64_t a, uint64_t b) {
  __extension__ using Wide = unsigned __int128;
  return static_cast<uint64_t>((static_cast<Wide>(a) * b) >> 64);
}

}  // namespace

Corpus::Corpus(std::vector<int32_t> tokens, double held_out) : tokens_(std::move(tokens)) {
  if (!(held_out >= 0 && held_out < 1)) fail<ValueError>("corpus: held_out must lie in [0, 1): it is {}", held_out);
  if (tokens_.empty()) fail<ValueError>("corpus: the text has no tokens");
  n_train_ = static_cast<size_t>(static_cast<double>(tokens_.size()) * (1 - held_out));
}

BatchOrder::BatchOrder(std::span<const int32_t> tokens, int64_t context, uint64_t seed)
    : tokens_(tokens), context_(context), key_(seed ^ hash_name("batch_order")) {
  check_length("batch_order", "training", tokens, context);
}

int64_t BatchOrder::start(int64_t step, int64_t row) const {
  if (step < 0 || row < 0) {
    fail<ValueError>("batch_order: step and row must not be negative: step = {}, row = {}", step, row);
  }
  const auto words = philox(key_, static_cast<uint64_t>(step), static_cast<uint64_t>(row));
  const uint64_t r = words[0] | (static_cast<uint64_t>(words[1]) << 32);
  return static_cast<int64_t>(multiply_high(r, static_cast<uint64_t>(n_windows())));
}

TokenBatch BatchOrder::batch(int64_t step, int64_t rows, int64_t first_row) const {
  if (rows < 1) fail<ValueError>("batch_order: a batch needs at least 1 row: rows = {}", rows);
  TokenBatch batch = empty_batch(rows, context_);
  for (int64_t row = first_row; row < first_row + rows; ++row) append_window(batch, tokens_, start(step, row));
  return batch;
}

EvalWindows::EvalWindows(std::span<const int32_t> tokens, int64_t context) : tokens_(tokens), context_(context) {
  check_length("eval_windows", "held-out", tokens, context);
}

TokenBatch EvalWindows::batch(int64_t first, int64_t max_rows) const {
  if (first < 0 || first >= size()) fail<IndexError>("eval_windows: there is no window {} among {}", first, size());
  if (max_rows < 1) fail<ValueError>("eval_windows: a batch needs at least 1 row: max_rows = {}", max_rows);
  const int64_t full = n_targets() / context_;
  if (first == full) {
    TokenBatch batch = empty_batch(1, n_targets() % context_);
    append_window(batch, tokens_, first * context_);
    return batch;
  }
  const int64_t rows = std::min(max_rows, full - first);
  TokenBatch batch = empty_batch(rows, context_);
  for (int64_t row = 0; row < rows; ++row) append_window(batch, tokens_, (first + row) * context_);
  return batch;
}

}  // namespace tapestry
