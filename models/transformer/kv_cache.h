// The keys and values of the tokens a Transformer has read, so that the next token costs one row and not all of them
// again.
// Not here: what happens when the memory is full (generate.h).
// Next: lm.h.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "config.h"

namespace tapestry {

struct KeyValueCacheOptions {
  int64_t rows = 1;          ///< B, sequences read side by side
  DType dtype = DType::f32;  ///< of what is stored: the model's, or bf16 for half the memory
  int64_t max_tokens = 0;    ///< memory for so many, taken at once; 0: for max_seq_len, taken as it is needed
};

/// Memory for the tokens of every full layer and for the `window` last ones of every sliding layer. It doubles when it
/// is full, up to the capacity; with max_tokens it is taken once. Not recorded: use it under NoGrad.
///
///     KeyValueCache cache(model.config);
///     Tensor logits = model(prompt, TransformerArgs{.cache = &cache});  // and so on, in pieces of any length
///
/// Prompts of different lengths are read side by side with padding in front: set_padding({2, 0}) says that the first two
/// tokens of row 0 are none. Positions then count from each row's first token, and no query sees padding.
class KeyValueCache {
 public:
  /// ValueError for an invalid config, no rows, or max_tokens above max_seq_len.
  explicit KeyValueCache(const TransformerConfig& c, KeyValueCacheOptions options = {});
  KeyValueCache(const KeyValueCache&) = delete;
  KeyValueCache& operator=(const KeyValueCache&) = delete;
  ~KeyValueCache();

  /// Tokens read, padding included. ValueError after a call of the model that failed midway, until clear().
  [[nodiscard]] int64_t size() const;
  [[nodiscard]] int64_t rows() const { return rows_; }
  /// Tokens there can be.
  [[nodiscard]] int64_t capacity() const { return capacity_; }
  /// Bytes taken so far for keys and values.
  [[nodiscard]] int64_t bytes() const;
  /// Positions of the next n tokens: (n), or (rows, n) where there is padding, whose own position is 0.
  [[nodiscard]] Tensor next_positions(int64_t n) const;
  /// Number of tokens at the front of each row that are none. ValueError unless there is one for each row, none is
  /// negative, and nothing was read yet.
  void set_padding(std::span<const int64_t> padding);
  /// Keeps these rows, in this order; one named twice is copied. IndexError for a row out of range, ValueError for none.
  void select_rows(std::span<const int64_t> rows);
  [[nodiscard]] size_t n_layers() const { return layers_.size(); }
  /// What layer i reads and extends. extend() throws ShapeError for keys that do not fit and AutogradError while
  /// recording.
  KeyValueStore& store(size_t layer);
  /// Forgets all tokens and the padding, and keeps the memory.
  void clear();
  /// For a model whose call failed that began with `before` tokens: unless all layers still have as many, size() throws.
  void abandon(int64_t before);

 private:
  class LayerStore;
  int64_t rows_, capacity_;
  bool failed_ = false;
  std::vector<int64_t> padding_;  // empty: none
  std::vector<std::unique_ptr<LayerStore>> layers_;
};

}  // namespace tapestry
