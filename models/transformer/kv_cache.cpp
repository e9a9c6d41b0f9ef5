// Writing into the layers' memory and lending views of it. A sliding layer's memory is a ring: token i lies in slot
// i mod W.
// Next: lm.cpp.
#include "kv_cache.h"

#include <algorithm>
#include <array>
#include <utility>

#include "../../autograd/error.h"
#include "../../autograd/grad_mode.h"
#include "../../ops/ops.h"

namespace tapestry {

class KeyValueCache::LayerStore final : public KeyValueStore {
 public:
  /// Remembers the last `most` tokens, which are all there can be unless it is a ring.
  LayerStore(const KeyValueCache& cache, const Shape& shape, DType dtype, int64_t most, bool ring)
      : cache_(cache), most_(most), ring_(ring), memory_{empty(shape, dtype), empty(shape, dtype)} {
    mark();
  }

  StoredKeys extend(const Tensor& keys, const Tensor& values) override {
    check(keys, values);
    const NoGrad no_grad;
    const int64_t n = keys.size(2), end = size_ + n;
    reserve(std::min(end, most_));
    const Pair fresh{keys, values};
    StoredKeys seen;
    if (!ring_) {
      write(fresh, 0, n, size_);
      seen = {read(0, 0, end), read(1, 0, end)};
      first_ = 0;
    } else if (n == 1) {
      write(fresh, 0, 1, size_ % most_);
      const int64_t held = std::min(end, most_);
      seen = {read(0, 0, held), read(1, 0, held)};
      first_ = in_slots;
    } else {
      const int64_t before = std::min(size_, most_ - 1);  // what the first query still sees
      seen = {with_last(0, before, keys), with_last(1, before, values)};
      first_ = size_ - before;
      for (int64_t at = std::max<int64_t>(0, n - most_); at < n;) {  // in runs that do not wrap
        const int64_t slot = (size_ + at) % most_, run = std::min(n - at, most_ - slot);
        write(fresh, at, run, slot);
        at += run;
      }
    }
    size_ = end;
    lent_ = seen.keys.size(2);
    seen.mask = padding_mask();
    for (Tensor* t : {&seen.keys, &seen.values})
      if (t->dtype() != keys.dtype()) *t = to(*t, keys.dtype());
    return seen;
  }

  [[nodiscard]] Tensor mask_columns(const Tensor& mask) const override {
    if (!ring_ || mask.size(-1) == 1) return mask;
    if (mask.size(-1) != size_)
      fail<ShapeError>("kv_cache: mask is {}; its last dim must be 1 or the {} tokens read", mask.describe(), size_);
    std::vector<int64_t> tokens;
    for (int64_t key = 0; key < lent_; ++key) tokens.push_back(token_of(key));
    return index_select(mask, -1, from(tokens));
  }

  [[nodiscard]] int64_t size() const { return size_; }
  [[nodiscard]] int64_t bytes() const { return 2 * memory_[0].numel() * size_of(memory_[0].dtype()); }
  void clear() { size_ = 0; }
  void select_rows(std::span<const int64_t> rows) {
    const NoGrad no_grad;
    const int64_t held = std::min(size_, most_);
    replace(static_cast<int64_t>(rows.size()), memory_[0].size(2), [&](const Tensor& to, const Tensor& from) {
      for (size_t i = 0; i < rows.size(); ++i)
        slice(select(to, 0, static_cast<int64_t>(i)), 1, 0, held).copy_(slice(select(from, 0, rows[i]), 1, 0, held));
    });
  }

 private:
  using Pair = std::array<Tensor, 2>;
  static constexpr int64_t in_slots = -1;

  void check(const Tensor& keys, const Tensor& values) const {
    if (grad_enabled() && (keys.requires_grad() || values.requires_grad()))
      fail<AutogradError>(
          "kv_cache: keys and values are being recorded, but what is stored carries no gradient; call the model under "
          "NoGrad");
    const Tensor& memory = memory_[0];
    const bool fits = keys.dim() == 4 && keys.shape() == values.shape() && keys.size(0) == memory.size(0) &&
                      keys.size(1) == memory.size(1) && keys.size(3) == memory.size(3) &&
                      size_ + keys.size(2) <= cache_.capacity_;
    if (!fits)
      fail<ShapeError>(
          "kv_cache: keys are {} and values {}; a cache of {} for at most {} tokens that holds {} has no place for "
          "them",
          keys.describe(), values.describe(), memory.describe(), cache_.capacity_, size_);
  }

  void mark() {
    for (const Tensor& t : memory_) t.body()->storage->mark(MemoryKind::cache);
  }
  /// New memory, filled by copy(to, from).
  template <class Copy>
  void replace(int64_t rows, int64_t slots, Copy&& copy) {
    for (Tensor& t : memory_) {
      const Tensor fresh = empty({rows, t.size(1), slots, t.size(3)}, t.dtype());
      copy(fresh, t);
      t = fresh;
    }
    mark();
  }
  /// Doubles, so that each token is copied about once. A ring wraps only at its full size.
  void reserve(int64_t slots) {
    const int64_t had = memory_[0].size(2);
    if (slots <= had) return;
    replace(memory_[0].size(0), std::min(most_, std::max(slots, 2 * had)),
            [&](const Tensor& to, const Tensor& from) { slice(to, 2, 0, had).copy_(from); });
  }

  /// Tokens [at, at + run) of the new ones into slots [slot, slot + run).
  void write(const Pair& fresh, int64_t at, int64_t run, int64_t slot) {
    for (size_t i = 0; i < 2; ++i) slice(memory_[i], 2, slot, slot + run).copy_(slice(fresh[i], 2, at, at + run));
  }
  [[nodiscard]] Tensor read(size_t which, int64_t begin, int64_t end) const {
    return slice(memory_[which], 2, begin, end);
  }
  /// The last `before` tokens of the ring, in order of time, then the new ones, all rounded as they are stored.
  [[nodiscard]] Tensor with_last(size_t which, int64_t before, const Tensor& fresh) const {
    std::vector<Tensor> pieces;
    for (int64_t token = size_ - before; token < size_;) {
      const int64_t slot = token % most_, run = std::min(size_ - token, most_ - slot);
      pieces.push_back(read(which, slot, slot + run));
      token += run;
    }
    pieces.push_back(to(fresh, memory_[which].dtype()));
    return cat(pieces, 2);
  }

  /// The token that key number `key` of the last extend() stands for.
  [[nodiscard]] int64_t token_of(int64_t key) const {
    return first_ == in_slots ? size_ - 1 - (size_ - 1 - key) % most_ : first_ + key;
  }
  /// Which of the keys lent are no padding: (B, 1, 1, keys); undefined if all are.
  [[nodiscard]] Tensor padding_mask() const {
    if (cache_.padding_.empty()) return {};
    const Tensor mask = empty({cache_.rows_, 1, 1, lent_}, DType::boolean);
    bool* data = mask.mutable_data<bool>();
    for (const int64_t padding : cache_.padding_)
      for (int64_t key = 0; key < lent_; ++key) *data++ = token_of(key) >= padding;
    return mask;
  }

  const KeyValueCache& cache_;
  int64_t most_;
  bool ring_;
  int64_t size_ = 0, lent_ = 0, first_ = 0;  // tokens read; keys of the last extend() and the token of the first
  Pair memory_;                              // keys, values: (B, Hkv, slots, Dh)
};

KeyValueCache::KeyValueCache(const TransformerConfig& c, KeyValueCacheOptions o)
    : rows_(o.rows), capacity_(o.max_tokens == 0 ? c.max_seq_len : o.max_tokens) {
  c.validate();
  if (rows_ < 1) fail<ValueError>("kv_cache: rows is {}; it must be at least 1", rows_);
  if (capacity_ < 1 || capacity_ > c.max_seq_len)
    fail<ValueError>("kv_cache: max_tokens is {}; it must be 1 to max_seq_len {}", capacity_, c.max_seq_len);
  for (int64_t i = 0; i < c.n_layers; ++i) {
    const bool ring = c.is_sliding(i) && c.window < capacity_;
    const int64_t most = ring ? c.window : capacity_;
    const Shape shape{rows_, c.n_kv_heads, o.max_tokens == 0 ? 0 : most, c.head_width()};
    layers_.push_back(std::make_unique<LayerStore>(*this, shape, o.dtype, most, ring));
  }
}

KeyValueCache::~KeyValueCache() = default;

int64_t KeyValueCache::size() const {
  const int64_t first = layers_.front()->size(), last = layers_.back()->size();
  if (failed_ || first != last)
    fail<ValueError>("kv_cache: a call that failed left {} tokens in the first layer and {} in the last; clear() it",
                     first, last);
  return first;
}

int64_t KeyValueCache::bytes() const {
  int64_t total = 0;
  for (const auto& layer : layers_) total += layer->bytes();
  return total;
}

Tensor KeyValueCache::next_positions(int64_t n) const {
  const Tensor next = arange(n) + static_cast<double>(size());
  if (padding_.empty()) return next;
  const Tensor own = unsqueeze(next, 0) - unsqueeze(from(padding_), 1);  // (rows, n)
  return where(own < 0.0, zeros(own.shape(), DType::i64), own);
}

void KeyValueCache::set_padding(std::span<const int64_t> padding) {
  if (static_cast<int64_t>(padding.size()) != rows_)
    fail<ValueError>("kv_cache: padding has {} entries for {} rows", padding.size(), rows_);
  for (const int64_t p : padding)
    if (p < 0) fail<ValueError>("kv_cache: padding is {}; it must not be negative", p);
  if (size() != 0) fail<ValueError>("kv_cache: {} tokens were read before the padding was set; clear() first", size());
  const bool any = std::any_of(padding.begin(), padding.end(), [](int64_t p) { return p > 0; });
  padding_.assign(padding.begin(), any ? padding.end() : padding.begin());
}

void KeyValueCache::select_rows(std::span<const int64_t> rows) {
  if (rows.empty()) fail<ValueError>("kv_cache: there are no rows to select; give at least one");
  for (const int64_t row : rows)
    if (row < 0 || row >= rows_) fail<IndexError>("kv_cache: row {} is out of range for {} rows", row, rows_);
  for (const auto& layer : layers_) layer->select_rows(rows);
  std::vector<int64_t> padding;
  if (!padding_.empty())
    for (const int64_t row : rows) padding.push_back(padding_[static_cast<size_t>(row)]);
  padding_ = std::move(padding);
  rows_ = static_cast<int64_t>(rows.size());
}

KeyValueStore& KeyValueCache::store(size_t layer) {
  if (layer >= layers_.size()) fail<IndexError>("kv_cache: layer {} of {}", layer, layers_.size());
  return *layers_[layer];
}

void KeyValueCache::clear() {
  for (const auto& layer : layers_) layer->clear();
  padding_.clear();
  failed_ = false;
}

void KeyValueCache::abandon(int64_t before) {
  for (const auto& layer : layers_) failed_ = failed_ || layer->size() != before;
}

}  // namespace tapestry
