// Order along a dim: sort, argsort, topk, kthvalue, median, quantile, searchsorted.
// Each picks elements of x and says where they lay, so the gradient of the values goes back to those places.
// Next: index.cpp.
#include "kernels/sort.h"

#include <cmath>

#include "../autograd/function.h"
#include "error_text.h"
#include "reduction.h"

namespace tapestry {
namespace {

using namespace detail;  // reduction.h

/// What the ops below share: elements of x picked along dim, and where they lie.
struct Pick {
  int dim;
  Shape from;

  /// {values, indices} of `width` elements a row, by kernel(rows, values, indices): dim is swapped to the end and back.
  template <class F>
  std::array<Tensor, 2> pick(Context& c, const Tensor& x, int64_t width, F&& kernel) const {
    const Tensor rows = dense(transpose(x.detach(), dim, -1));
    const int64_t n = rows.size(-1);
    Shape shape = rows.shape();
    shape[shape.rank() - 1] = width;
    const Tensor values = empty(shape, x.dtype()), indices = empty(shape, DType::i64);
    kernel(kernels::DenseRows{rows.raw_data(), rows.dtype(), n == 0 ? 0 : rows.numel() / n, n},
           values.body()->storage->data, static_cast<int64_t*>(indices.body()->storage->data));
    const Tensor places = transpose(indices, dim, -1);
    c.save(places.detach());
    return {transpose(values, dim, -1), places};
  }
  Grads backward(Context& c, std::span<const Tensor> gs) const {
    if (!gs[0].defined()) return {Tensor{}};
    return grads(c, [&] { return scatter_add(expand(scalar(0, gs[0].dtype()), from), dim, c.saved(0), gs[0]); });
  }
};

struct Sort : Pick {
  static constexpr std::string_view name = "sort", formula = "y = x in order along dim, and the places i it came from",
                                    vjp = "g added at i";
  bool descending;
  std::array<Tensor, 2> forward(Context& c, const Tensor& x) const {
    return pick(c, x, x.size(dim), [&](const kernels::DenseRows& rows, void* values, int64_t* indices) {
      kernels::sort(rows, descending, values, indices);
    });
  }
};

struct TopK : Pick {
  static constexpr std::string_view name = "topk", formula = "y = the k largest x along dim, and their places i",
                                    vjp = "g added at i";
  int64_t k;
  bool largest;
  std::array<Tensor, 2> forward(Context& c, const Tensor& x) const {
    return pick(c, x, k, [&](const kernels::DenseRows& rows, void* values, int64_t* indices) {
      kernels::top(rows, k, largest, values, indices);
    });
  }
};

struct KthValue : Pick {
  static constexpr std::string_view formula = "y = the k-th smallest x along dim, and its place i", vjp = "g at i";
  std::string_view name;
  int64_t k;  ///< from 0
  bool nan_wins;
  std::array<Tensor, 2> forward(Context& c, const Tensor& x) const {
    return pick(c, x, 1, [&](const kernels::DenseRows& rows, void* values, int64_t* indices) {
      kernels::kth(rows, k, nan_wins, values, indices);
    });
  }
};

std::array<Tensor, 2> kth(std::string_view name, const Tensor& x, int dim, int64_t k, bool nan_wins, bool keepdim) {
  auto [values, indices] = apply(KthValue{{dim, x.shape()}, name, k, nan_wins}, x);
  if (keepdim) return {values, indices};
  return {select(values, dim, 0), select(indices, dim, 0)};
}

}  // namespace

std::array<Tensor, 2> sort(const Tensor& x, int64_t dim, bool descending) {
  return apply(Sort{{dim_of("sort", x, dim), x.shape()}, descending}, x);
}

Tensor argsort(const Tensor& x, int64_t dim, bool descending) {
  const int d = dim_of("argsort", x, dim);
  return sort(x.detach(), d, descending)[1];
}

std::array<Tensor, 2> topk(const Tensor& x, int64_t k, int64_t dim, bool largest) {
  const int d = dim_of("topk", x, dim);
  if (k < 0 || k > x.size(d))
    fail<ValueError>("topk: k is {}, {} has {} elements along dim {}; use 0 ≤ k ≤ {}", k, x.describe(), x.size(d), d,
                     x.size(d));
  return apply(TopK{{d, x.shape()}, k, largest}, x);
}

std::array<Tensor, 2> kthvalue(const Tensor& x, int64_t k, int64_t dim, bool keepdim) {
  const int d = dim_of("kthvalue", x, dim);
  if (k < 1 || k > x.size(d))
    fail<ValueError>("kthvalue: k is {}, {} has {} elements along dim {}; k counts from 1", k, x.describe(), x.size(d),
                     d);
  return kth("kthvalue", x, d, k - 1, false, keepdim);
}

std::array<Tensor, 2> median(const Tensor& x, int64_t dim, bool keepdim) {
  const int d = dim_of("median", x, dim);
  require_elements("median", x, plan("median", x, {d}, keepdim));
  return kth("median", x, d, (x.size(d) - 1) / 2, true, keepdim);
}

Tensor median(const Tensor& x) {
  require_elements("median", x, plan("median", x, {}, false));
  return median(reshape(x, {x.numel()}), 0)[0];
}

Tensor quantile(const Tensor& x, double q, int64_t dim, bool keepdim) {
  require_floating("quantile", x);
  if (!(q >= 0 && q <= 1)) fail<ValueError>("quantile: q is {}; use 0 ≤ q ≤ 1", q);
  const int d = dim_of("quantile", x, dim);
  require_elements("quantile", x, plan("quantile", x, {d}, keepdim));
  if (x.dtype() == DType::bf16) return to(quantile(to(x, DType::f32), q, d, keepdim), DType::bf16);
  const double place = q * static_cast<double>(x.size(d) - 1), low = std::floor(place), weight = place - low;
  const auto k = static_cast<int64_t>(low);
  const Tensor below = kth("quantile", x, d, k, true, keepdim)[0];
  if (weight == 0) return below;
  return add(mul(below, 1 - weight), mul(kth("quantile", x, d, k + 1, true, keepdim)[0], weight));
}

Tensor searchsorted(const Tensor& sorted, const Tensor& values, bool right) {
  require_same_dtype("searchsorted", sorted, values);
  bool matching = sorted.dim() == 1 || (sorted.dim() > 1 && sorted.dim() == values.dim());
  for (int d = 0; matching && sorted.dim() > 1 && d + 1 < sorted.dim(); ++d)
    matching = sorted.size(d) == values.size(d);
  if (!matching)
    fail<ShapeError>("searchsorted: sorted is {}, values is {}; sorted has rank 1, or both have the same leading dims",
                     sorted.describe(), values.describe());
  const Tensor rows = dense(sorted.detach()), wanted = dense(values.detach()), y = empty(values.shape(), DType::i64);
  const int64_t n = sorted.size(-1), width = sorted.dim() == 1 ? values.numel() : values.size(-1);
  if (y.numel() == 0) return y;
  const int64_t count = values.numel() / width;
  kernels::searchsorted({rows.raw_data(), sorted.dtype(), count, n}, {wanted.raw_data(), values.dtype(), count, width},
                        right, static_cast<int64_t*>(y.body()->storage->data));
  return y;
}

}  // namespace tapestry
