// Sliding windows along a dim as a view, and its adjoint, which sums them back.
// Not here: convolution and pooling.
// Next: as_strided.cpp.
#include "kernels/windows.h"
#include "../autograd/function.h"
#include "error_text.h"
#include "ops.h"

namespace tapestry {
namespace {

struct Unfold {
  static constexpr std::string_view name = "unfold", formula = "y[…i…][k] = x[…i·step + k…], k < size",
                                    vjp = "fold(g, dim, x.size(dim), step)";
  int dim;
  int64_t length, size, step;
  Tensor forward(Context&, const Tensor& x) const {
    Shape shape = x.shape();
    Strides strides = x.strides();
    const int64_t count = (length - size) / step + 1;
    shape.push_back(size);
    strides.push_back(strides[dim]);
    shape[dim] = count;
    if (count > 1) strides[dim] *= step;
    return x.view_of(shape, strides, x.offset());
  }
  Grads backward(Context& c, const Tensor& g) const {
    return grads(c, [&] { return fold(g, dim, length, step); });
  }
};

struct Fold {
  static constexpr std::string_view name = "fold",
                                    formula = "y[…l…] = Σ x[…i…][l − i·step] over the windows i that hold l",
                                    vjp = "unfold(g, dim, size, step)";
  int dim;
  int64_t length, size, step;
  Tensor forward(Context&, const Tensor& x) const {
    const Tensor windows = dense(x);
    Shape shape = x.shape();
    shape.erase(x.dim() - 1);
    int64_t outer = 1, inner = 1;
    for (int d = 0; d < shape.rank(); ++d) (d < dim ? outer : inner) *= d == dim ? 1 : shape[d];
    const int64_t count = shape[dim];
    shape[dim] = length;
    Tensor y = empty(shape, x.dtype());
    kernels::fold_windows(x.dtype(), windows.raw_data(), y.body()->storage->data, outer, length, inner, count, size,
                          step);
    return y;
  }
  Grads backward(Context& c, const Tensor& g) const {
    return grads(c, [&] { return unfold(g, dim, size, step); });
  }
};

void require_positive(const char* op, const char* what, int64_t n) {
  if (n < 1) fail<ValueError>("{}: {} {}; it must be 1 or more", op, what, n);
}

}  // namespace

Tensor unfold(const Tensor& x, int64_t dim, int64_t size, int64_t step) {
  detail::require_defined("unfold", x);
  const int d = normalize_dim("unfold", dim, x.dim());
  require_positive("unfold", "size", size);
  require_positive("unfold", "step", step);
  if (size > x.shape()[d])
    fail<ShapeError>("unfold: windows of size {} are longer than dim {} of {}; use at most {}", size, d, x.describe(),
                     x.shape()[d]);
  if (x.dim() == max_rank)
    fail<ShapeError>("unfold: {} already has {} dims, the most there can be", x.describe(), max_rank);
  return apply(Unfold{d, x.shape()[d], size, step}, x);
}

Tensor fold(const Tensor& windows, int64_t dim, int64_t length, int64_t step) {
  detail::require_defined("fold", windows);
  if (windows.dim() < 2)
    fail<ShapeError>("fold: {} has rank {}; it needs a dim of windows and, last, one of their entries",
                     windows.describe(), windows.dim());
  const int d = normalize_dim("fold", dim, windows.dim() - 1);
  require_positive("fold", "step", step);
  if (windows.dtype() == DType::boolean)
    fail<DTypeError>("fold: bool elements cannot be added, windows are {}; convert with to(x, DType::i64)",
                     windows.describe());
  const int64_t size = windows.size(-1), count = windows.shape()[d];
  require_positive("fold", "windows of size", size);
  if (length < size || (length - size) / step + 1 != count)
    fail<ShapeError>(
        "fold: a dim of {} has {} windows of {} every {}, but dim {} of {} holds {}; give the length that was unfolded",
        length, length < size ? 0 : (length - size) / step + 1, size, step, d, windows.describe(), count);
  return apply(Fold{d, length, size, step}, windows);
}

}  // namespace tapestry
