// The diagonal of two dims as a view, and its adjoint, which lays a dim on a diagonal of zeros.
// Not here: the triangles tril and triu (copy.cpp), trace.
// Next: windows.cpp.
#include <algorithm>

#include "../autograd/function.h"
#include "../autograd/strided.h"
#include "error_text.h"
#include "ops.h"

namespace tapestry {
namespace {

/// The entries (row, column) = (i, i + offset) of two dims, as a last dim.
struct Line {
  int rows, columns;  // dims
  int64_t offset;

  [[nodiscard]] Tensor of(const Tensor& x) const {
    const int64_t n = x.shape()[rows], m = x.shape()[columns], shift = std::clamp(offset, -n, m);
    const int64_t length =
        std::max<int64_t>(0, std::min(n + std::min<int64_t>(shift, 0), m - std::max<int64_t>(shift, 0)));
    const int64_t step = x.strides()[rows] + x.strides()[columns];
    const int64_t first = shift >= 0 ? shift * x.strides()[columns] : -shift * x.strides()[rows];
    Shape shape = x.shape();
    Strides strides = x.strides();
    for (const int d : {std::max(rows, columns), std::min(rows, columns)}) {
      shape.erase(d);
      strides.erase(d);
    }
    shape.push_back(length);
    strides.push_back(length > 1 ? step : 1);
    return x.view_of(shape, strides, length > 0 && x.numel() > 0 ? x.offset() + first : x.offset());
  }
};

Tensor laid_on(const Tensor& x, const Line& line, const Shape& shape);

struct Diagonal {
  static constexpr std::string_view name = "diagonal", formula = "y[…i] = x[…i…i + offset…]",
                                    vjp = "zeros like x with g on the diagonal";
  Line line;
  Shape from;
  Tensor forward(Context&, const Tensor& x) const { return line.of(x); }
  Grads backward(Context& c, const Tensor& g) const {
    return grads(c, [&] { return laid_on(g, line, from); });
  }
};

struct DiagEmbed {
  static constexpr std::string_view name = "diag_embed", formula = "y[…i][i + offset] = x[…i], 0 elsewhere",
                                    vjp = "diagonal(g, offset)";
  Line line;
  Shape shape;
  Tensor forward(Context&, const Tensor& x) const {
    const Tensor y = zeros(shape, x.dtype()), place = line.of(y);
    strided_copy(x.shape(), x.dtype(), const_cast<void*>(place.raw_data()), place.strides(), x.dtype(), x.raw_data(),
                 x.strides());
    return y;
  }
  Grads backward(Context& c, const Tensor& g) const {
    return grads(c, [&] { return diagonal(g, line.offset, line.rows, line.columns); });
  }
};

Tensor laid_on(const Tensor& x, const Line& line, const Shape& shape) { return apply(DiagEmbed{line, shape}, x); }

}  // namespace

Tensor diagonal(const Tensor& x, int64_t offset, int64_t dim0, int64_t dim1) {
  detail::require_defined("diagonal", x);
  if (x.dim() < 2)
    fail<ShapeError>("diagonal: {} has rank {}; it needs the two dims of a matrix", x.describe(), x.dim());
  const int rows = normalize_dim("diagonal", dim0, x.dim()), columns = normalize_dim("diagonal", dim1, x.dim());
  if (rows == columns)
    fail<ShapeError>("diagonal: dim0 and dim1 are both dim {} of {}; name two dims", rows, x.describe());
  return apply(Diagonal{{rows, columns, offset}, x.shape()}, x);
}

Tensor diag_embed(const Tensor& x, int64_t offset) {
  detail::require_defined("diag_embed", x);
  if (x.dim() < 1 || x.dim() == max_rank)
    fail<ShapeError>("diag_embed: {} has rank {}; it needs 1 to {} dims, the last to lay on the diagonal", x.describe(),
                     x.dim(), max_rank - 1);
  Shape shape = x.shape();
  int64_t& size = shape[x.dim() - 1];
  if (offset == INT64_MIN || __builtin_add_overflow(size, offset < 0 ? -offset : offset, &size))
    fail<ShapeError>("diag_embed: offset {} makes the square longer than 2^63 for {}", offset, x.describe());
  shape.push_back(shape[x.dim() - 1]);
  return laid_on(x, {x.dim() - 1, x.dim(), offset}, shape);
}

}  // namespace tapestry
