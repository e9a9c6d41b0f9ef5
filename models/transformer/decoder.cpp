// Reading rows of tokens, with padding in front of the shorter ones.
// Next: generate.cpp.
#include "decoder.h"

#include <algorithm>

#include "../../autograd/error.h"
#include "../../autograd/grad_mode.h"
#include "../../ops/ops.h"

namespace tapestry {
namespace {

using Rows = std::vector<std::vector<int32_t>>;

int64_t length(const std::vector<int32_t>& row) { return static_cast<int64_t>(row.size()); }

int64_t longest(std::span<const std::vector<int32_t>> rows) {
  int64_t most = 0;
  for (const auto& row : rows) most = std::max(most, length(row));
  return most;
}

}  // namespace

Decoder::Decoder(const Transformer& model, DecoderOptions options) : model_(model), options_(options) {
  if (options.prefill_chunk < 0)
    fail<ValueError>("generate: prefill_chunk is {}; it must not be negative", options.prefill_chunk);
}

std::vector<float> Decoder::read(std::span<const int32_t> tokens) {
  const std::vector<int32_t> row(tokens.begin(), tokens.end());
  return std::move(read(std::span<const std::vector<int32_t>>(&row, 1)).front());
}

void Decoder::check(std::span<const std::vector<int32_t>> tokens) const {
  if (!windows_.empty() && tokens.size() != windows_.size())
    fail<ValueError>("generate: there are tokens for {} sequences of {}", tokens.size(), windows_.size());
  for (const auto& row : tokens) {
    if (row.empty()) fail<ValueError>("generate: there are no tokens to read; give at least one");
    for (const int32_t id : row)
      if (id < 0 || id >= model_.config.vocab_size)
        fail<IndexError>("generate: token {} is out of range for a vocabulary of {}", id, model_.config.vocab_size);
  }
  if (options_.slide) return;
  for (size_t i = 0; i < tokens.size(); ++i) {
    const int64_t before = windows_.empty() ? 0 : length(windows_[i]);
    if (before + length(tokens[i]) > model_.config.max_seq_len)
      fail<ValueError>("generate: {} tokens after {} are more than max_seq_len {}; read less, or slide",
                       tokens[i].size(), before, model_.config.max_seq_len);
  }
}

std::vector<std::vector<float>> Decoder::read(std::span<const std::vector<int32_t>> tokens) {
  if (tokens.empty()) fail<ValueError>("generate: there are no tokens to read; give at least one");
  check(tokens);
  const NoGrad no_grad;
  const Rows before = windows_;
  try {
    return read_checked(tokens);
  } catch (...) {  // the cache holds part of what was to be read
    windows_ = before;
    cache_.reset();
    throw;
  }
}

std::vector<std::vector<float>> Decoder::read_checked(std::span<const std::vector<int32_t>> tokens) {
  windows_.resize(tokens.size());
  const int64_t most = model_.config.max_seq_len, n = length(tokens[0]);
  bool side_by_side = true, slid = false;
  for (size_t i = 0; i < tokens.size(); ++i) {
    auto& window = windows_[i];
    window.insert(window.end(), tokens[i].begin(), tokens[i].end());
    side_by_side = side_by_side && length(tokens[i]) == n;
    if (length(window) <= most) continue;
    window.erase(window.begin(), window.end() - static_cast<std::ptrdiff_t>(std::max<int64_t>(1, most / 2)));
    slid = true;
  }
  // Padding takes room, so several sequences can fill the cache before one of them is full.
  const bool fits = cache_.has_value() && cache_->size() + n <= cache_->capacity();
  if (!fits || slid || !side_by_side) return read_again();
  return read_into_cache(Rows(tokens.begin(), tokens.end()));
}

std::vector<std::vector<float>> Decoder::read_again() {
  const int64_t n = longest(windows_), rows = static_cast<int64_t>(windows_.size());
  if (!cache_ || cache_->rows() != rows)
    cache_.emplace(
        model_.config,
        KeyValueCacheOptions{.rows = rows, .dtype = options_.cache.value_or(model_.token_embedding.weight.dtype())});
  cache_->clear();
  Rows padded;
  std::vector<int64_t> padding;
  for (const auto& window : windows_) {
    padding.push_back(n - length(window));
    padded.emplace_back(static_cast<size_t>(padding.back()), 0);
    padded.back().insert(padded.back().end(), window.begin(), window.end());
  }
  cache_->set_padding(padding);
  return read_into_cache(padded);
}

std::vector<std::vector<float>> Decoder::read_into_cache(const Rows& rows) {
  const auto n_rows = static_cast<int64_t>(rows.size());
  const int64_t n = length(rows[0]), chunk = options_.prefill_chunk == 0 ? n : options_.prefill_chunk;
  std::vector<int64_t> ids;
  for (const auto& row : rows) ids.insert(ids.end(), row.begin(), row.end());
  const Tensor tokens = from(ids, {n_rows, n});
  computed_ += n_rows * n;
  for (int64_t at = 0;; at += chunk) {
    const int64_t end = std::min(n, at + chunk);
    const Tensor y =
        model_(slice(tokens, 1, at, end), TransformerArgs{.cache = &*cache_, .head = end == n, .last_only = true});
    if (end < n) continue;
    std::vector<std::vector<float>> logits;
    for (int64_t row = 0; row < n_rows; ++row) logits.push_back(select(select(y, 0, row), 0, 0).to_vector<float>());
    return logits;
  }
}

void Decoder::keep(std::span<const int64_t> sequences) {
  Rows kept;
  for (const int64_t i : sequences) {
    if (i < 0 || i >= static_cast<int64_t>(windows_.size()))
      fail<IndexError>("generate: sequence {} is out of range for {}", i, windows_.size());
    kept.push_back(windows_[static_cast<size_t>(i)]);
  }
  if (cache_) cache_->select_rows(sequences);
  windows_ = std::move(kept);
}

std::span<const int32_t> Decoder::tokens(size_t sequence) const {
  if (windows_.empty()) return {};
  if (sequence >= windows_.size())
    fail<IndexError>("generate: sequence {} is out of range for {}", sequence, windows_.size());
  return windows_[sequence];
}

}  // namespace tapestry
