// Parts of a tensor: slice and select, which are views, and pad, their derivative.
// Not here: cutting into pieces and joining them (join.cpp), picking by a tensor of indices (index.cpp).
// Next: join.cpp.
#include <algorithm>

#include "../autograd/function.h"
#include "../autograd/strided.h"
#include "error_text.h"
#include "ops.h"

namespace tapestry {
namespace {

/// Which entries along a dim: start, start + step, …, `count` of them, out of `size`.
struct Entries {
  int dim;
  int64_t start, step, count, size;

  [[nodiscard]] Tensor of(const Tensor& x) const {
    Shape shape = x.shape();
    Strides strides = x.strides();
    const int64_t offset = count > 0 ? x.offset() + start * strides[dim] : x.offset();
    shape[dim] = count;
    if (count > 1) strides[dim] *= step;
    return x.view_of(shape, strides, offset);
  }
};

Tensor take(const Tensor& x, const Entries& entries);
Tensor place(const Tensor& x, const Entries& entries, double value);

struct Slice {
  static constexpr std::string_view name = "slice", formula = "y[…i…] = x[…start + i·step…]",
                                    vjp = "zeros like x with g at start, start + step, …";
  Entries entries;
  Tensor forward(Context&, const Tensor& x) const { return entries.of(x); }
  Grads backward(Context& c, const Tensor& g) const {
    return grads(c, [&] { return place(g, entries, 0); });
  }
};

struct Pad {
  static constexpr std::string_view name = "pad", formula = "y[…start + i·step…] = x[…i…], `value` elsewhere",
                                    vjp = "slice(g): its entries start, start + step, …";
  Entries entries;
  double value;
  Tensor forward(Context&, const Tensor& x) const {
    Shape shape = x.shape();
    shape[entries.dim] = entries.size;
    const Tensor y = full(shape, value, x.dtype());
    const Tensor part = entries.of(y);
    strided_copy(x.shape(), x.dtype(), const_cast<void*>(part.raw_data()), part.strides(), x.dtype(), x.raw_data(),
                 x.strides());
    return y;
  }
  Grads backward(Context& c, const Tensor& g) const {
    return grads(c, [&] { return take(g, entries); });
  }
};

Tensor take(const Tensor& x, const Entries& entries) { return apply(Slice{entries}, x); }
Tensor place(const Tensor& x, const Entries& entries, double value) { return apply(Pad{entries, value}, x); }

struct Select {
  static constexpr std::string_view name = "select", formula = "y = x[…index…], the dim dropped",
                                    vjp = "zeros like x with g at index";
  int dim;
  int64_t index, size;
  Tensor forward(Context&, const Tensor& x) const {
    Shape shape = x.shape();
    Strides strides = x.strides();
    const int64_t offset = x.offset() + index * strides[dim];
    shape.erase(dim);
    strides.erase(dim);
    return x.view_of(shape, strides, offset);
  }
  Grads backward(Context& c, const Tensor& g) const {
    return grads(c, [&] { return place(unsqueeze(g, dim), {dim, index, 1, 1, size}, 0); });
  }
};

}  // namespace

Tensor slice(const Tensor& x, int64_t dim, std::optional<int64_t> start, std::optional<int64_t> stop, int64_t step) {
  detail::require_defined("slice", x);
  const int d = normalize_dim("slice", dim, x.dim());
  if (step == 0) fail<ValueError>("slice: step 0 along dim {} of {}; use a positive or negative step", d, x.describe());
  const int64_t n = x.shape()[d], low = step > 0 ? 0 : -1, high = step > 0 ? n : n - 1;
  const auto place_of = [&](int64_t i) { return std::clamp(i < 0 ? i + n : i, low, high); };
  const int64_t first = start ? place_of(*start) : (step > 0 ? low : high);
  const int64_t end = stop ? place_of(*stop) : (step > 0 ? high : low);
  const bool none = step > 0 ? first >= end : first <= end;
  const int64_t count = none ? 0 : (end - first + (step > 0 ? -1 : 1)) / step + 1;
  if (count == n && step == 1) return x;
  return take(x, {d, count > 0 ? first : 0, count > 1 ? step : 1, count, n});
}

Tensor select(const Tensor& x, int64_t dim, int64_t index) {
  detail::require_defined("select", x);
  const int d = normalize_dim("select", dim, x.dim());
  const int64_t n = x.shape()[d], i = index < 0 ? index + n : index;
  if (i < 0 || i >= n)
    fail<IndexError>("select: index {} is out of range for dim {} of {}; use {} to {}", index, d, x.describe(), -n,
                     n - 1);
  return apply(Select{d, i, n}, x);
}

Tensor pad(const Tensor& x, int64_t dim, int64_t before, int64_t after, double value) {
  (void)detail::number_for("pad", x, value);
  const int d = normalize_dim("pad", dim, x.dim());
  const int64_t n = x.shape()[d];
  const int64_t cut = std::min<int64_t>(before, 0);
  if (cut < -n || after < -n - cut)
    fail<ShapeError>("pad: before = {} and after = {} cut more than dim {} of {} has; cut at most {}", before, after, d,
                     x.describe(), n);
  int64_t size = 0;
  if (__builtin_add_overflow(n, before, &size) || __builtin_add_overflow(size, after, &size))
    fail<ShapeError>("pad: before = {} and after = {} make dim {} of {} longer than 2^63", before, after, d,
                     x.describe());
  const Tensor kept =
      before < 0 || after < 0 ? slice(x, d, std::max<int64_t>(-before, 0), n + std::min<int64_t>(after, 0)) : x;
  if (before <= 0 && after <= 0) return kept;
  return place(kept, {d, std::max<int64_t>(before, 0), 1, kept.shape()[d], size}, value);
}

}  // namespace tapestry
