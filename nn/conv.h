// Convolutional layers of one and two dims, and their transposes.
// Not here: the convolutions (ops/conv.cpp).
// Next: pool.h.
#pragma once

#include "../ops/ops.h"
#include "module.h"

namespace tapestry {

struct ConvLayerOptions {
  Pair stride = 1, padding = 0, dilation = 1;
  int64_t groups = 1;
  Pair output_padding = 0;  ///< transposed only: rows and columns added at the end of the result
  bool bias = true;
};

/// What the convolutional layers share. weight and bias start uniform in ±1/√fan_in (PyTorch's default), fan_in being the
/// elements of weight[0].
struct ConvWeights {
  Parameter weight, bias;
  ConvOptions options;

  /// weight (out, in/groups, window…), or (in, out/groups, window…) if transposed. ValueError, which names `layer`, unless
  /// groups divides both and the sizes are at least 1.
  ConvWeights(const char* layer, int64_t in, int64_t out, const Dims& window, bool transposed,
              const ConvLayerOptions& o);
  void visit(Visitor& v);
};

/// (B, in, L) to (B, out, (L + 2·padding − dilation·(K − 1) − 1)/stride + 1). weight (out, in/groups, K), bias (out).
struct Conv1d : Layer<Conv1d> {
  ConvWeights weights;

  Conv1d(int64_t in_channels, int64_t out_channels, int64_t kernel_size, ConvLayerOptions o = {})
      : weights("Conv1d", in_channels, out_channels, {kernel_size}, false, o) {}
  [[nodiscard]] Tensor forward(const Tensor& x) const {
    return conv1d(x, weights.weight, weights.bias, weights.options);
  }
  void visit(Visitor& v) override { weights.visit(v); }
};

/// The same of (B, in, H, W) with a window of Kh × Kw. LeCun et al. 1989.
struct Conv2d : Layer<Conv2d> {
  ConvWeights weights;

  Conv2d(int64_t in_channels, int64_t out_channels, Pair kernel_size, ConvLayerOptions o = {})
      : weights("Conv2d", in_channels, out_channels, {kernel_size.h, kernel_size.w}, false, o) {}
  [[nodiscard]] Tensor forward(const Tensor& x) const {
    return conv2d(x, weights.weight, weights.bias, weights.options);
  }
  void visit(Visitor& v) override { weights.visit(v); }
};

/// The gradient of a Conv1d by its input, as a layer: (B, in, L) to (B, out, (L − 1)·stride − 2·padding + dilation·(K − 1)
/// + output_padding + 1). weight (in, out/groups, K), bias (out).
struct ConvTranspose1d : Layer<ConvTranspose1d> {
  ConvWeights weights;

  ConvTranspose1d(int64_t in_channels, int64_t out_channels, int64_t kernel_size, ConvLayerOptions o = {})
      : weights("ConvTranspose1d", in_channels, out_channels, {kernel_size}, true, o) {}
  [[nodiscard]] Tensor forward(const Tensor& x) const {
    return conv_transpose1d(x, weights.weight, weights.bias, weights.options);
  }
  void visit(Visitor& v) override { weights.visit(v); }
};

struct ConvTranspose2d : Layer<ConvTranspose2d> {
  ConvWeights weights;

  ConvTranspose2d(int64_t in_channels, int64_t out_channels, Pair kernel_size, ConvLayerOptions o = {})
      : weights("ConvTranspose2d", in_channels, out_channels, {kernel_size.h, kernel_size.w}, true, o) {}
  [[nodiscard]] Tensor forward(const Tensor& x) const {
    return conv_transpose2d(x, weights.weight, weights.bias, weights.options);
  }
  void visit(Visitor& v) override { weights.visit(v); }
};

}  // namespace tapestry
