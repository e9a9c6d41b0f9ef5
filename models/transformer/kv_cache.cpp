// Writing into the memory taken at the start and lending views of it. A sliding layer's memory is a ring: token i lies
// in slot i mod W.
// Next: lm.cpp.
#include "kv_cache.h"

#include <algorithm>
#include <array>

#include "../../autograd/error.h"
#include "../../autograd/grad_mode.h"
#include "../../ops/ops.h"

namespace tapestry {

class KeyValueCache::LayerStore final : public KeyValueStore {
 public:
  /// `window` 0: all tokens are kept.
  LayerStore(const KeyValueCache& cache, const Shape& shape, DType dtype, int64_t window)
      : cache_(cache), window_(window), memory_{empty(shape, dtype), empty(shape, dtype)} {
    for (const Tensor& t : memory_) t.body()->storage->mark(MemoryKind::cache);
  }

  StoredKeys extend(const Tensor& keys, const Tensor& values) override {
    check(keys, values);
    const NoGrad no_grad;
    const int64_t n = keys.size(2), end = size_ + n;
    const Pair fresh{keys, values};
    StoredKeys seen;
    if (window_ == 0) {
      write(fresh, 0, n, size_);
      seen = {read(0, 0, end), read(1, 0, end), mask(0, end)};
    } else if (n == 1) {
      write(fresh, 0, 1, size_ % window_);
      const int64_t held = std::min(end, window_);
      seen = {read(0, 0, held), read(1, 0, held), ring_mask(held, end)};
    } else {
      const int64_t before = std::min(size_, window_ - 1);  // what the first query still sees
      seen = {with_last(0, before, keys), with_last(1, before, values), mask(size_ - before, end)};
      for (int64_t at = std::max<int64_t>(0, n - window_); at < n;) {  // in runs that do not wrap
        const int64_t slot = (size_ + at) % window_, run = std::min(n - at, window_ - slot);
        write(fresh, at, run, slot);
        at += run;
      }
    }
    size_ = end;
    for (Tensor* t : {&seen.keys, &seen.values})
      if (t->dtype() != keys.dtype()) *t = to(*t, keys.dtype());
    return seen;
  }

  [[nodiscard]] int64_t size() const { return size_; }
  [[nodiscard]] int64_t bytes() const { return 2 * memory_[0].numel() * size_of(memory_[0].dtype()); }
  void clear() { size_ = 0; }

 private:
  using Pair = std::array<Tensor, 2>;

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
          "kv_cache: keys are {} and values {}; a cache of {} with memory for {} tokens that holds {} has no place for "
          "them",
          keys.describe(), values.describe(), memory.describe(), cache_.capacity_, size_);
  }

  /// Tokens [at, at + run) of the new ones into slots [slot, slot + run).
  void write(const Pair& fresh, int64_t at, int64_t run, int64_t slot) {
    for (size_t i = 0; i < 2; ++i) slice(memory_[i], 2, slot, slot + run).copy_(slice(fresh[i], 2, at, at + run));
  }
  [[nodiscard]] Tensor read(size_t which, int64_t begin, int64_t end) const {
    return slice(memory_[which], 2, begin, end);
  }
  /// The last `before` tokens of the ring, in order of time, then the new ones.
  [[nodiscard]] Tensor with_last(size_t which, int64_t before, const Tensor& fresh) const {
    std::vector<Tensor> pieces;
    for (int64_t token = size_ - before; token < size_;) {
      const int64_t slot = token % window_, run = std::min(size_ - token, window_ - slot);
      pieces.push_back(to(read(which, slot, slot + run), fresh.dtype()));
      token += run;
    }
    pieces.push_back(fresh);
    return cat(pieces, 2);
  }

  /// Which of the given tokens are no padding: (B, 1, 1, tokens); undefined if all are.
  template <class TokenOf>
  [[nodiscard]] Tensor mask_of(int64_t n, TokenOf&& token_of) const {
    if (cache_.padding_.empty()) return {};
    Tensor m = empty({cache_.rows_, 1, 1, n}, DType::boolean);
    bool* data = m.mutable_data<bool>();
    for (int64_t row = 0; row < cache_.rows_; ++row)
      for (int64_t i = 0; i < n; ++i) data[row * n + i] = token_of(i) >= cache_.padding_[static_cast<size_t>(row)];
    return m;
  }
  [[nodiscard]] Tensor mask(int64_t begin, int64_t end) const {
    return mask_of(end - begin, [&](int64_t i) { return begin + i; });
  }
  /// For slots of the ring once `end` tokens were read.
  [[nodiscard]] Tensor ring_mask(int64_t held, int64_t end) const {
    return mask_of(held, [&](int64_t slot) { return end - 1 - (end - 1 - slot) % window_; });
  }

  const KeyValueCache& cache_;
  int64_t window_, size_ = 0;
  Pair memory_;  // keys, values: (B, Hkv, slots, Dh)
};

KeyValueCache::KeyValueCache(const TransformerConfig& c, KeyValueCacheOptions o)
    : rows_(o.rows), capacity_(o.max_tokens == 0 ? c.max_seq_len : o.max_tokens) {
  c.validate();
  if (rows_ < 1) fail<ValueError>("kv_cache: rows is {}; it must be at least 1", rows_);
  if (capacity_ < 1 || capacity_ > c.max_seq_len)
    fail<ValueError>("kv_cache: max_tokens is {}; it must be 1 to max_seq_len {}", capacity_, c.max_seq_len);
  for (int64_t i = 0; i < c.n_layers; ++i) {
    const int64_t window = c.is_sliding(i) && c.window < capacity_ ? c.window : 0;
    const int64_t slots = window == 0 ? capacity_ : window;
    layers_.push_back(
        std::make_unique<LayerStore>(*this, Shape{rows_, c.n_kv_heads, slots, c.head_width()}, o.dtype, window));
  }
}

KeyValueCache::~KeyValueCache() = default;

int64_t KeyValueCache::size() const { return layers_.front()->size(); }

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

KeyValueStore& KeyValueCache::store(size_t layer) {
  if (layer >= layers_.size()) fail<IndexError>("kv_cache: layer {} of {}", layer, layers_.size());
  return *layers_[layer];
}

void KeyValueCache::clear() {
  for (const auto& layer : layers_) layer->clear();
  padding_.clear();
}

}  // namespace tapestry
