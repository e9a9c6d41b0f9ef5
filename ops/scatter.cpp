// Writing at tensors of indices, on a copy: scatter_add and index_add, which add, scatter and put_slices, where the last of several that meet stays.
// Each is the adjoint of a read in index.cpp; repeated targets are met in row-major order whatever the thread count.
// Next: advanced_index.cpp.
#include "../autograd/function.h"
#include "../autograd/strided.h"
#include "error_text.h"
#include "indices.h"
#include "kernels/indexed.h"

namespace tapestry {
namespace {

using namespace detail;  // indices.h
using kernels::add_slices;

/// Calls add(memory) on a copy of x; for bf16 on one in f32, rounded once at the end: sums in bf16 would stand still at 256.
template <class Add>
Tensor added_to(const Tensor& x, Add add) {
  const DType sums = x.dtype() == DType::bf16 ? DType::f32 : x.dtype();
  const Tensor sum = empty(x.shape(), sums);
  strided_copy(x.shape(), sums, memory_of(sum), sum.strides(), x.dtype(), x.raw_data(), x.strides());
  add(sum);
  if (sums == x.dtype()) return sum;
  const Tensor y = empty(x.shape(), x.dtype());
  strided_copy(x.shape(), y.dtype(), memory_of(y), y.strides(), sums, sum.raw_data(), sum.strides());
  return y;
}

/// src as the adders want it: dense, and f32 in place of bf16.
Tensor summand(const Tensor& src) {
  if (src.dtype() != DType::bf16) return dense(src);
  const Tensor wide = empty(src.shape(), DType::f32);
  strided_copy(src.shape(), DType::f32, memory_of(wide), wide.strides(), DType::bf16, src.raw_data(), src.strides());
  return wide;
}

/// A copy of x in row-major order.
Tensor copied(const Tensor& x) {
  Tensor y = empty(x.shape(), x.dtype());
  strided_copy(x.shape(), y.dtype(), memory_of(y), y.strides(), x.dtype(), x.raw_data(), x.strides());
  return y;
}

struct ScatterAdd {
  static constexpr std::string_view name = "scatter_add", formula = "y = x; y[…index[…i…]…] += src[…i…]",
                                    vjp = "x: g; src: gather(g, dim, index)";
  int dim;
  Tensor forward(Context& c, const Tensor& x, const Tensor& index, const Tensor& src) const {
    c.save(index);
    return added_to(x, [&](const Tensor& sum) {
      kernels::add_elements(sum.dtype(), memory_of(sum), sum.strides(), dim, index.data<int64_t>(), index.shape(),
                            summand(src).raw_data());
    });
  }
  Grads backward(Context& c, const Tensor& g) const {
    return grads(
        c, [&] { return g; }, [] { return Tensor{}; }, [&] { return gather(g, dim, c.saved(0)); });
  }
};

struct IndexAdd {
  static constexpr std::string_view name = "index_add", formula = "y = x; y[…index[k]…] += src[…k…]",
                                    vjp = "x: g; src: index_select(g, dim, index)";
  int dim;
  Tensor forward(Context& c, const Tensor& x, const Tensor& index, const Tensor& src) const {
    c.save(index);
    const Around a(x.shape(), dim);
    return added_to(x, [&](const Tensor& sum) {
      add_slices(sum.dtype(), memory_of(sum), index.data<int64_t>(), summand(src).raw_data(), a.outer, a.size,
                 index.numel(), a.inner);
    });
  }
  Grads backward(Context& c, const Tensor& g) const {
    return grads(
        c, [&] { return g; }, [] { return Tensor{}; }, [&] { return index_select(g, dim, c.saved(0)); });
  }
};

// Note [Last writer]: an element that was overwritten has gradient 0, be it of x or of src. Which entries of src stayed is found again in backward,
// where it is needed, by putting their numbers instead of their values.

struct Scatter {
  static constexpr std::string_view
      name = "scatter",
      formula = "y = x; y[…index[i…]…] = src[…i…], the last one stays",
      vjp = "x: scatter(g, dim, index, 0); src: gather(g, dim, index) where it stayed, else 0";
  int dim;
  Tensor forward(Context& c, const Tensor& x, const Tensor& index, const Tensor& src) const {
    c.save(index);
    const Tensor y = copied(x);
    kernels::put_elements(y.dtype(), memory_of(y), y.strides(), dim, index.data<int64_t>(), index.shape(),
                          dense(src).raw_data());
    return y;
  }
  Grads backward(Context& c, const Tensor& g) const {
    const Tensor index = c.saved(0);
    return grads(
        c, [&] { return scatter(g, dim, index, zeros_view(index.shape(), g.dtype())); }, [] { return Tensor{}; },
        [&] {
          const Tensor number = reshape(arange(index.numel()), index.shape());
          const Tensor last = scatter(zeros_view(g.shape(), DType::i64), dim, index, number);
          return where(equal(gather(last, dim, index), number), gather(g, dim, index), 0.0);
        });
  }
};

struct PutSlices {
  static constexpr std::string_view name = "index_put", formula = "y = x; y[index[k]] = src[k], the last one stays",
                                    vjp = "x: g, 0 where written; src: g at index where it stayed, else 0";
  Tensor forward(Context& c, const Tensor& x, const Tensor& index, const Tensor& src) const {
    c.save(index);
    const Tensor y = copied(x);
    kernels::put_slices(y.dtype(), memory_of(y), index.data<int64_t>(), dense(src).raw_data(), x.size(0), x.size(1),
                        index.numel(), x.size(2));
    return y;
  }
  Grads backward(Context& c, const Tensor& g) const {
    const Tensor index = c.saved(0);
    const int64_t n = index.numel();
    return grads(
        c,
        [&] {
          return put_slices(g, index, zeros_view({g.size(0), n, g.size(2)}, g.dtype()));
        },
        [] { return Tensor{}; },
        [&] {
          const Tensor number = arange(n), none = zeros_view({1, g.size(1), 1}, DType::i64);
          const Tensor last = put_slices(none, index, reshape(number, {1, n, 1}));
          const Tensor stayed = reshape(equal(index_select(flatten(last), 0, index), number), {n, 1});
          return where(stayed, index_select(g, 1, index), 0.0);
        });
  }
};

void check_dtypes(const char* op, const Tensor& x, const Tensor& src) {
  require_defined(op, src);
  if (x.dtype() != src.dtype())
    fail<DTypeError>("{}: dtypes differ: x is {}, src is {}; convert with to(src, DType::{})", op, x.describe(),
                     src.describe(), name_of(x.dtype()));
}

void check_addable(const char* op, const Tensor& x, const Tensor& src) {
  check_dtypes(op, x, src);
  if (x.dtype() == DType::boolean)
    fail<DTypeError>("{}: bool elements cannot be added, x is {}; convert with to(x, DType::i64)", op, x.describe());
}

void check_one_shape(const char* op, const Tensor& index, const Tensor& src) {
  if (index.shape() != src.shape())
    fail<ShapeError>("{}: index is {}, src is {}; they must have one shape", op, index.describe(), src.describe());
}

}  // namespace

Tensor detail::put_slices(const Tensor& x, const Tensor& index, const Tensor& src) {
  return apply(PutSlices{}, x, index, src);
}

Tensor scatter_add(const Tensor& x, int64_t dim, const Tensor& index, const Tensor& src) {
  require_defined("scatter_add", x);
  const int d = normalize_dim("scatter_add", dim, x.dim());
  check_addable("scatter_add", x, src);
  check_fits("scatter_add", x, d, index);
  check_one_shape("scatter_add", index, src);
  return apply(ScatterAdd{d}, x, checked_along("scatter_add", index, x, d, false), src);
}

Tensor scatter(const Tensor& x, int64_t dim, const Tensor& index, const Tensor& src) {
  require_defined("scatter", x);
  const int d = normalize_dim("scatter", dim, x.dim());
  check_dtypes("scatter", x, src);
  check_fits("scatter", x, d, index);
  check_one_shape("scatter", index, src);
  return apply(Scatter{d}, x, checked_along("scatter", index, x, d, false), src);
}

Tensor index_add(const Tensor& x, int64_t dim, const Tensor& index, const Tensor& src) {
  require_defined("index_add", x);
  const int d = normalize_dim("index_add", dim, x.dim());
  check_addable("index_add", x, src);
  require_indices("index_add", index);
  if (index.dim() != 1) fail<ShapeError>("index_add: index is {}; it must have rank 1", index.describe());
  Shape expected = x.shape();
  expected[d] = index.size(0);
  if (src.shape() != expected)
    fail<ShapeError>("index_add: src is {}, with x {} and index {} along dim {} it must be {}", src.describe(),
                     x.describe(), index.describe(), d, to_string(expected));
  return apply(IndexAdd{d}, x, checked_along("index_add", index, x, d, true), src);
}

}  // namespace tapestry
