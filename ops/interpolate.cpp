// Resizing of lines and images, nearest and linear: each axis is a matrix with one or two entries a row.
// Not pooling (pool.cpp).
// Next: batch_norm.cpp.
#include <algorithm>
#include <cmath>

#include "error_text.h"
#include "ops.h"
#include "resample.h"

namespace tapestry {
namespace {

/// Pixel i takes the one at floor(i · in/out).
kernels::BandMatrix nearest(int64_t in, int64_t out) {
  kernels::BandMatrix m;
  m.in = in;
  for (int64_t i = 0; i < out; ++i) m.add_row(i * in / out, {1});
  return m;
}

/// Pixel i lies at (i + ½) · in/out − ½, not below 0, or with corners aligned at i · (in − 1)/(out − 1), between two neighbours.
kernels::BandMatrix linear(int64_t in, int64_t out, bool align_corners) {
  kernels::BandMatrix m;
  m.in = in;
  for (int64_t i = 0; i < out; ++i) {
    const auto n = static_cast<double>(in), wide = static_cast<double>(out), at = static_cast<double>(i);
    const double corner = out == 1 ? 0 : at * (n - 1) / (wide - 1);
    const double place = align_corners ? corner : std::max((at + 0.5) * n / wide - 0.5, 0.0);
    const int64_t left = std::min(static_cast<int64_t>(place), in - 1);
    const double right = left == in - 1 ? 0 : place - static_cast<double>(left);
    // A neighbour without weight is not read: 0 · inf would be NaN.
    if (right == 0)
      m.add_row(left, {1});
    else
      m.add_row(left, {1 - right, right});
  }
  return m;
}

}  // namespace

Tensor interpolate(const Tensor& x, Pair size, Interpolation mode, bool align_corners) {
  detail::require_floating("interpolate", x);
  if (x.dim() != 3 && x.dim() != 4)
    fail<ShapeError>("interpolate: x is {}; it must be (B, C, L) or (B, C, H, W)", x.describe());
  const bool image = x.dim() == 4;
  constexpr int64_t most = int64_t{1} << 31;
  for (int d = 2; d < x.dim(); ++d) {
    const int64_t out = d == 2 ? size.h : size.w;
    if (out < 1 || out > most || x.size(d) < 1)
      fail<ShapeError>("interpolate: dim {} of x {} cannot become {}; both must be at least 1", d, x.describe(), out);
  }
  if (align_corners && mode == Interpolation::nearest)
    fail<ValueError>("interpolate: align_corners is for Interpolation::bilinear; nearest has no corners to align");
  const auto axis = [&](int64_t in, int64_t out) {
    return mode == Interpolation::nearest ? nearest(in, out) : linear(in, out, align_corners);
  };
  return apply(detail::Resample{"interpolate", "y = R x Cᵀ, 1 or 2 neighbours a pixel", "Rᵀ g C",
                                image ? axis(x.size(2), size.h) : detail::single_row(),
                                axis(x.size(-1), image ? size.w : size.h)},
               x);
}

}  // namespace tapestry
