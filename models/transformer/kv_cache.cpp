// Writing into the preallocated memory and lending views of it.
// Next: generate.cpp.
#include "kv_cache.h"

#include "../../autograd/error.h"
#include "../../autograd/grad_mode.h"
#include "../../ops/ops.h"

namespace tapestry {

KeyValueCache::LayerStore::LayerStore(const Shape& shape, DType dtype)
    : keys_(empty(shape, dtype)), values_(empty(shape, dtype)) {
  for (const Tensor& t : {keys_, values_}) t.body()->storage->mark(MemoryKind::cache);
}

std::array<Tensor, 2> KeyValueCache::LayerStore::extend(const Tensor& keys, const Tensor& values) {
  if (grad_enabled() && (keys.requires_grad() || values.requires_grad()))
    fail<AutogradError>(
        "kv_cache: keys and values are being recorded, but what is stored carries no gradient; call the model under "
        "NoGrad");
  const int64_t end = size_ + keys.size(2);
  const bool fits = keys.dim() == 4 && keys.shape() == values.shape() && keys.size(0) == keys_.size(0) &&
                    keys.size(1) == keys_.size(1) && keys.size(3) == keys_.size(3) && end <= keys_.size(2);
  if (!fits)
    fail<ShapeError>("kv_cache: keys are {} and values {}; a cache of {} that holds {} tokens has no place for them",
                     keys.describe(), values.describe(), keys_.describe(), size_);
  const NoGrad no_grad;
  slice(keys_, 2, size_, end).copy_(keys);
  slice(values_, 2, size_, end).copy_(values);
  size_ = end;
  return {slice(keys_, 2, 0, end), slice(values_, 2, 0, end)};
}

KeyValueCache::KeyValueCache(const TransformerConfig& c, int64_t rows, DType dtype) {
  c.validate();
  if (rows < 1) fail<ValueError>("kv_cache: rows is {}; it must be at least 1", rows);
  layers_.reserve(static_cast<size_t>(c.n_layers));
  for (int64_t i = 0; i < c.n_layers; ++i)
    layers_.emplace_back(Shape{rows, c.n_kv_heads, c.max_seq_len, c.head_dim()}, dtype);
}

Tensor KeyValueCache::next_positions(int64_t n) const { return arange(n) + static_cast<double>(size()); }

std::vector<KeyValueStore*> KeyValueCache::stores() {
  std::vector<KeyValueStore*> stores;
  for (LayerStore& layer : layers_) stores.push_back(&layer);
  return stores;
}

void KeyValueCache::clear() {
  for (LayerStore& layer : layers_) layer.clear();
}

}  // namespace tapestry
