// One table per dtype, made when first asked for.
#include "rope.h"

#include <mutex>

#include "../autograd/error.h"

namespace tapestry {

struct RotaryEmbedding::Tables {
  int64_t rotary_dim, max_positions;
  double theta;
  std::mutex mutex;
  RopeTable f32, f64;

  /// bf16 activations are turned in f32.
  const RopeTable& of(DType dtype) {
    const bool wide = dtype == DType::f64;
    RopeTable& table = wide ? f64 : f32;
    const std::lock_guard lock(mutex);
    if (!table.cos.defined()) table = rope_table(max_positions, rotary_dim, theta, wide ? DType::f64 : DType::f32);
    return table;
  }
};

RotaryEmbedding::RotaryEmbedding(int64_t rotary_dim, int64_t max_positions, RotaryOptions options)
    : max_positions_(max_positions), layout_(options.layout) {
  if (rotary_dim < 2 || rotary_dim % 2 != 0 || max_positions < 1 || !(options.theta > 0))
    fail<ValueError>("RotaryEmbedding: rotary_dim {} must be even and positive, max_positions {} and theta {} positive",
                     rotary_dim, max_positions, options.theta);
  tables_ = std::make_shared<Tables>();
  tables_->rotary_dim = rotary_dim;
  tables_->max_positions = max_positions;
  tables_->theta = options.theta;
}

Tensor RotaryEmbedding::forward(const Tensor& x, const Tensor& positions) const {
  return rope(x, tables_->of(x.dtype()), positions, layout_);
}

}  // namespace tapestry
