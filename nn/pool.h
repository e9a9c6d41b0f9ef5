// Layers without parameters on lines and images: pooling, resizing, and flattening what comes out of them.
// Not here: the formulas (ops/pool.cpp, ops/interpolate.cpp).
// Next: batch_norm.h.
#pragma once

#include <optional>

#include "../ops/ops.h"
#include "module.h"

namespace tapestry {

/// The largest of each window of (B, C, L); the stride is the window's size unless given.
struct MaxPool1d : Layer<MaxPool1d> {
  int64_t window;
  PoolOptions options;
  explicit MaxPool1d(int64_t size, PoolOptions o = {}) : window(size), options(o) {}
  [[nodiscard]] Tensor forward(const Tensor& x) const { return max_pool1d(x, window, options); }
};

/// The largest of each window of (B, C, H, W).
struct MaxPool2d : Layer<MaxPool2d> {
  Pair window;
  PoolOptions options;
  explicit MaxPool2d(Pair size, PoolOptions o = {}) : window(size), options(o) {}
  [[nodiscard]] Tensor forward(const Tensor& x) const { return max_pool2d(x, window, options); }
};

/// The mean of each window of (B, C, L).
struct AvgPool1d : Layer<AvgPool1d> {
  int64_t window;
  PoolOptions options;
  explicit AvgPool1d(int64_t size, PoolOptions o = {}) : window(size), options(o) {}
  [[nodiscard]] Tensor forward(const Tensor& x) const { return avg_pool1d(x, window, options); }
};

/// The mean of each window of (B, C, H, W).
struct AvgPool2d : Layer<AvgPool2d> {
  Pair window;
  PoolOptions options;
  explicit AvgPool2d(Pair size, PoolOptions o = {}) : window(size), options(o) {}
  [[nodiscard]] Tensor forward(const Tensor& x) const { return avg_pool2d(x, window, options); }
};

/// Means over as many windows as the result has pixels: (B, C, H, W) to (B, C, size); size 1 is the mean of a plane.
struct AdaptiveAvgPool2d : Layer<AdaptiveAvgPool2d> {
  Pair size;
  explicit AdaptiveAvgPool2d(Pair pixels) : size(pixels) {}
  [[nodiscard]] Tensor forward(const Tensor& x) const { return adaptive_avg_pool2d(x, size); }
};

/// The largest of as many windows as the result has pixels.
struct AdaptiveMaxPool2d : Layer<AdaptiveMaxPool2d> {
  Pair size;
  explicit AdaptiveMaxPool2d(Pair pixels) : size(pixels) {}
  [[nodiscard]] Tensor forward(const Tensor& x) const { return adaptive_max_pool2d(x, size); }
};

struct UpsampleOptions {
  std::optional<Pair> size = {};  ///< of the result; or
  Pair scale_factor = 2;          ///< times the size of x
  Interpolation mode = Interpolation::nearest;
  bool align_corners = false;
};

/// (B, C, H, W) or (B, C, L) resized.
struct Upsample : Layer<Upsample> {
  UpsampleOptions options;
  explicit Upsample(UpsampleOptions o = {}) : options(o) {}
  [[nodiscard]] Tensor forward(const Tensor& x) const {
    const Pair by = options.scale_factor;
    const bool image = x.dim() == 4;
    const Pair scaled = x.dim() < 3 ? by : Pair(x.size(2) * by.h, image ? x.size(3) * by.w : 1);
    return interpolate(x, options.size.value_or(scaled), options.mode, options.align_corners);
  }
};

/// (B, …) to (B, elements of a sample); or other dims first … last as one.
struct Flatten : Layer<Flatten> {
  int64_t first, last;
  explicit Flatten(int64_t first_dim = 1, int64_t last_dim = -1) : first(first_dim), last(last_dim) {}
  [[nodiscard]] Tensor forward(const Tensor& x) const { return flatten(x, first, last); }
};

}  // namespace tapestry
