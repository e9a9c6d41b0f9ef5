// The sizes of a convolution, and its input as columns: what makes it a matrix product, and the adjoint of that.
// Not the products (conv.cpp). Next: conv.h.
#pragma once

#include <cstdint>

#include "../../autograd/dtype.h"

namespace tapestry::kernels {

/// x (batch, groups·in, h, w), weight (groups·out, in, kh, kw), y (batch, groups·out, out_h, out_w), all contiguous:
///
///   y[n, o, i, j] = Σ over c, k, l of weight[o, c, k, l] x[n, c, i·stride_h + k·dilation_h − pad_h, j·stride_w + …].
struct ConvShape {
  int64_t batch = 0, groups = 1, in = 0, out = 0;  // in and out: channels of one group
  int64_t h = 1, w = 1, kh = 1, kw = 1, out_h = 1, out_w = 1;
  int64_t stride_h = 1, stride_w = 1, pad_h = 0, pad_w = 0, dilation_h = 1, dilation_w = 1;

  [[nodiscard]] int64_t plane() const { return h * w; }
  [[nodiscard]] int64_t pixels() const { return out_h * out_w; }  ///< of a plane of y
  [[nodiscard]] int64_t window() const { return kh * kw; }
  [[nodiscard]] int64_t taps() const { return in * window(); }  ///< terms of an element of y
};

/// Pixels [first, first + count) of all planes of y laid end to end: pixel q is pixel q % pixels() of sample q / pixels().
struct PixelRange {
  int64_t first, count;
};

/// columns (channels·kh·kw, count): row (c, k, l) holds what tap (k, l) reads of channel c for each pixel of the range, 0 in
/// the padding. x is channel 0 of sample 0, samples lie `sample_stride` elements apart.
template <class T>
void im2col(const ConvShape& s, int64_t channels, PixelRange range, const T* x, int64_t sample_stride,
            compute_t<T>* columns);

/// Adds columns to the places of x that im2col reads: its adjoint.
template <class C>
void col2im(const ConvShape& s, int64_t channels, PixelRange range, const C* columns, C* x, int64_t sample_stride);

}  // namespace tapestry::kernels
