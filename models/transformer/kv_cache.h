// The keys and values of the tokens a Transformer has read, so that the next token costs one row and not all of them
// again.
// Not here: what happens when the memory is full (generate.h).
// Next: generate.h.
#pragma once

#include <vector>

#include "lm.h"

namespace tapestry {

/// Memory for max_seq_len tokens of every layer, taken once. Not recorded: use it under NoGrad.
///
///     KeyValueCache cache(model.config);
///     Tensor logits = model(prompt, TransformerArgs{.positions = cache.next_positions(n), .stores = cache.stores()});
class KeyValueCache {
 public:
  explicit KeyValueCache(const TransformerConfig& c, int64_t rows = 1, DType dtype = DType::f32);
  KeyValueCache(const KeyValueCache&) = delete;
  KeyValueCache& operator=(const KeyValueCache&) = delete;

  /// Tokens held.
  [[nodiscard]] int64_t size() const { return layers_.front().size(); }
  /// Positions size() … size() + n − 1 of the next n tokens.
  [[nodiscard]] Tensor next_positions(int64_t n) const;
  /// One store per layer, for TransformerArgs.
  [[nodiscard]] std::vector<KeyValueStore*> stores();
  /// Forgets all tokens and keeps the memory.
  void clear();

 private:
  class LayerStore final : public KeyValueStore {
   public:
    LayerStore(const Shape& shape, DType dtype);
    /// Appends (B, Hkv, T, Dh) and returns views of all so far. ShapeError when they do not fit; AutogradError while
    /// recording.
    std::array<Tensor, 2> extend(const Tensor& keys, const Tensor& values) override;
    [[nodiscard]] int64_t size() const { return size_; }
    void clear() { size_ = 0; }

   private:
    Tensor keys_, values_;  // (B, Hkv, max_seq_len, Dh)
    int64_t size_ = 0;
  };
  std::vector<LayerStore> layers_;
};

}  // namespace tapestry
