// Copies in row-major order: contiguous and clone; and the triangles tril and triu.
// Not here: conversion to another dtype (to, in pointwise.cpp).
// Next: rearrange.cpp.
#include <algorithm>
#include <cstring>

#include "../autograd/function.h"
#include "../autograd/parallel.h"
#include "../autograd/strided.h"
#include "error_text.h"
#include "ops.h"

namespace tapestry {
namespace {

struct Clone {
  static constexpr std::string_view name = "clone", formula = "y = x, in memory of its own", vjp = "g";
  Tensor forward(Context&, const Tensor& x) const {
    const Tensor y = empty(x.shape(), x.dtype());
    strided_copy(x.shape(), y.dtype(), y.body()->storage->data, y.strides(), x.dtype(), x.raw_data(), x.strides());
    return y;
  }
  Grads backward(Context&, const Tensor& g) const { return {g}; }
};

template <bool upper>
struct Triangle {
  static constexpr std::string_view name = upper ? "triu" : "tril",
                                    formula = upper ? "y[i][j] = x[i][j] where j ≥ i + diagonal, else 0"
                                                    : "y[i][j] = x[i][j] where j ≤ i + diagonal, else 0",
                                    vjp = upper ? "triu(g, diagonal)" : "tril(g, diagonal)";
  int64_t diagonal;

  Tensor forward(Context&, const Tensor& x) const {
    const Tensor from = dense(x), y = empty(x.shape(), x.dtype());
    const int64_t rows = x.size(-2), columns = x.size(-1), width = columns * size_of(x.dtype());
    auto* to = static_cast<char*>(y.body()->storage->data);
    const auto* source = static_cast<const char*>(from.raw_data());
    if (width == 0) return y;
    parallel_for(x.numel() / columns, std::max<int64_t>(1, 65536 / width), [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        // Columns below `edge` belong to one side of the diagonal, the others to the other; the diagonal itself is kept by both.
        const int64_t edge =
            std::clamp(clamped(row % rows, columns) + (upper ? 0 : 1), int64_t{0}, columns) * size_of(x.dtype());
        char* out = to + row * width;
        const char* in = source + row * width;
        if constexpr (upper) {
          std::memset(out, 0, static_cast<size_t>(edge));
          std::memcpy(out + edge, in + edge, static_cast<size_t>(width - edge));
        } else {
          std::memcpy(out, in, static_cast<size_t>(edge));
          std::memset(out + edge, 0, static_cast<size_t>(width - edge));
        }
      }
    });
    return y;
  }
  Grads backward(Context& c, const Tensor& g) const {
    return grads(c, [&] { return upper ? triu(g, diagonal) : tril(g, diagonal); });
  }

 private:
  /// Column of the diagonal in a row, without overflow for diagonals far outside.
  [[nodiscard]] int64_t clamped(int64_t row, int64_t columns) const {
    return row + std::clamp(diagonal, -row - 1, columns);
  }
};

}  // namespace

Tensor contiguous(const Tensor& x) {
  detail::require_defined("contiguous", x);
  return x.is_contiguous() ? x : apply(Clone{}, x);
}

Tensor clone(const Tensor& x) {
  detail::require_defined("clone", x);
  return apply(Clone{}, x);
}

Tensor tril(const Tensor& x, int64_t diagonal) {
  detail::require_defined("tril", x);
  if (x.dim() < 2) fail<ShapeError>("tril: {} has rank {}; it needs the two dims of a matrix", x.describe(), x.dim());
  return apply(Triangle<false>{diagonal}, x);
}

Tensor triu(const Tensor& x, int64_t diagonal) {
  detail::require_defined("triu", x);
  if (x.dim() < 2) fail<ShapeError>("triu: {} has rank {}; it needs the two dims of a matrix", x.describe(), x.dim());
  return apply(Triangle<true>{diagonal}, x);
}

}  // namespace tapestry
