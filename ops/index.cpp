// Picking by tensors of indices: embedding, gather and index_select, and their adjoints scatter_add and index_add; one_hot.
// Every index is checked before a kernel runs; parts chosen by numbers are views (slice.cpp).
// Next: kernels/indexed.h.
#include "../autograd/function.h"
#include "../autograd/strided.h"
#include "error_text.h"
#include "kernels/indexed.h"
#include "ops.h"

namespace tapestry {
namespace {

using kernels::add_slices;
using kernels::select_slices;

void* memory_of(const Tensor& fresh) { return const_cast<void*>(fresh.raw_data()); }

/// "[3, 17]": place of element i of a tensor of this shape.
std::string place(const Shape& shape, int64_t i) {
  Dims at = shape;
  for (int d = shape.rank() - 1; d >= 0; --d) {
    at[d] = i % shape[d];
    i /= shape[d];
  }
  return to_string(at);
}

/// The indices, dense and in [0, n); with `wraps`, negative ones count from the end. `target` says of what n is the size.
template <class Target>
Tensor checked(const char* op, const Tensor& index, int64_t n, bool wraps, Target target) {
  detail::require_indices(op, index);
  Tensor result = dense(index.detach());
  const auto* at = result.data<int64_t>();
  const int64_t count = result.numel();
  bool negative = false;
  for (int64_t i = 0; i < count; ++i) {
    if (at[i] >= n || at[i] < (wraps ? -n : 0))
      fail<IndexError>("{}: index {} at {} is out of range for {}", op, at[i], place(index.shape(), i), target());
    negative = negative || at[i] < 0;
  }
  if (!negative) return result;
  result = clone(result);
  auto* wrapped = static_cast<int64_t*>(memory_of(result));
  for (int64_t i = 0; i < count; ++i) wrapped[i] += wrapped[i] < 0 ? n : 0;
  return result;
}

Tensor checked_along(const char* op, const Tensor& index, const Tensor& x, int dim, bool wraps) {
  return checked(op, index, x.shape()[dim], wraps, [&] { return fmt::format("dim {} of {}", dim, x.describe()); });
}

/// Zeros that cost one element of memory: what the adjoints add into is a copy of them.
Tensor zeros_view(const Shape& shape, DType dtype) { return expand(scalar(0, dtype), shape); }

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

/// A contiguous tensor around `dim`, as (outer, size, inner).
struct Around {
  int64_t outer = 1, size, inner = 1;
  Around(const Shape& shape, int dim) : size(shape[dim]) {
    for (int i = 0; i < dim; ++i) outer *= shape[i];
    for (int i = dim + 1; i < shape.rank(); ++i) inner *= shape[i];
  }
};

// Note [Indices are inputs]: they get no gradient, but as saved inputs a write to them between forward and backward is noticed.

struct Embedding {
  static constexpr std::string_view name = "embedding", formula = "y[…] = table[ids[…]]",
                                    vjp = "rows of g added up at ids";
  Shape table;

  Tensor forward(Context& c, const Tensor& x, const Tensor& ids) const {
    c.save(ids);
    Shape shape = ids.shape();
    shape.push_back(table[1]);
    const Tensor rows = dense(x), y = empty(shape, x.dtype());
    select_slices(x.dtype(), rows.raw_data(), ids.data<int64_t>(), memory_of(y), 1, table[0], ids.numel(), table[1]);
    return y;
  }
  Grads backward(Context& c, const Tensor& g) const {
    const Tensor ids = c.saved(0);
    // Straight into the leaf's gradient, so that a step does not touch the rows it did not read.
    if (g.dtype() != DType::bf16)
      if (const auto destination = c.grad_destination(0)) {
        const Tensor rows = dense(g);
        void* sum = destination->grad.mutable_raw_data("embedding");
        add_slices(g.dtype(), sum, ids.data<int64_t>(), rows.raw_data(), 1, table[0], ids.numel(), table[1]);
        return {destination->grad, Tensor{}};
      }
    const int64_t n = ids.numel();
    return {index_add(zeros_view(table, g.dtype()), 0, reshape(ids, {n}), reshape(g, {n, table[1]})), Tensor{}};
  }
};

struct Gather {
  static constexpr std::string_view name = "gather", formula = "y[…i…] = x[…index[…i…]…]",
                                    vjp = "scatter_add(0, dim, index, g)";
  int dim;
  Shape from;
  Tensor forward(Context& c, const Tensor& x, const Tensor& index) const {
    c.save(index);
    const Tensor y = empty(index.shape(), x.dtype());
    kernels::gather_elements(x.dtype(), x.raw_data(), x.strides(), dim, index.data<int64_t>(), index.shape(),
                             memory_of(y));
    return y;
  }
  Grads backward(Context& c, const Tensor& g) const {
    return {scatter_add(zeros_view(from, g.dtype()), dim, c.saved(0), g), Tensor{}};
  }
};

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

struct IndexSelect {
  static constexpr std::string_view name = "index_select", formula = "y[…k…] = x[…index[k]…]",
                                    vjp = "index_add(0, dim, index, g)";
  int dim;
  Shape from;
  Tensor forward(Context& c, const Tensor& x, const Tensor& index) const {
    c.save(index);
    Shape shape = from;
    shape[dim] = index.numel();
    const Tensor rows = dense(x), y = empty(shape, x.dtype());
    const Around a(from, dim);
    select_slices(x.dtype(), rows.raw_data(), index.data<int64_t>(), memory_of(y), a.outer, a.size, index.numel(),
                  a.inner);
    return y;
  }
  Grads backward(Context& c, const Tensor& g) const {
    return {index_add(zeros_view(from, g.dtype()), dim, c.saved(0), g), Tensor{}};
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

void check_addable(const char* op, const Tensor& x, const Tensor& src) {
  if (x.dtype() != src.dtype())
    fail<DTypeError>("{}: dtypes differ: x is {}, src is {}; convert with to(src, DType::{})", op, x.describe(),
                     src.describe(), name_of(x.dtype()));
  if (x.dtype() == DType::boolean)
    fail<DTypeError>("{}: bool elements cannot be added, x is {}; convert with to(x, DType::i64)", op, x.describe());
}

void check_fits(const char* op, const Tensor& x, int dim, const Tensor& index) {
  bool fits = index.dim() == x.dim();
  for (int i = 0; i < x.dim() && fits; ++i) fits = i == dim || index.shape()[i] <= x.shape()[i];
  if (!fits)
    fail<ShapeError>("{}: index {} does not fit x {}; it needs x's rank and no size larger than x's outside dim {}", op,
                     index.describe(), x.describe(), dim);
}

}  // namespace

Tensor embedding(const Tensor& table, const Tensor& ids, std::optional<int64_t> padding_idx) {
  if (table.dim() != 2) fail<ShapeError>("embedding: the table is {}; it must be (rows, width)", table.describe());
  const Tensor rows =
      checked("embedding", ids, table.size(0), false, [&] { return fmt::format("a table of {} rows", table.size(0)); });
  const Tensor y = apply(Embedding{table.shape()}, table, rows);
  if (!padding_idx) return y;
  if (*padding_idx < 0 || *padding_idx >= table.size(0))
    fail<IndexError>("embedding: padding_idx {} is out of range for a table of {} rows", *padding_idx, table.size(0));
  return where(unsqueeze(equal(rows, static_cast<double>(*padding_idx)), -1), y.detach(), y);
}

Tensor gather(const Tensor& x, int64_t dim, const Tensor& index) {
  const int d = normalize_dim("gather", dim, x.dim());
  check_fits("gather", x, d, index);
  return apply(Gather{d, x.shape()}, x, checked_along("gather", index, x, d, false));
}

Tensor scatter_add(const Tensor& x, int64_t dim, const Tensor& index, const Tensor& src) {
  const int d = normalize_dim("scatter_add", dim, x.dim());
  check_addable("scatter_add", x, src);
  check_fits("scatter_add", x, d, index);
  if (index.shape() != src.shape())
    fail<ShapeError>("scatter_add: index is {}, src is {}; they must have one shape", index.describe(), src.describe());
  return apply(ScatterAdd{d}, x, checked_along("scatter_add", index, x, d, false), src);
}

Tensor index_select(const Tensor& x, int64_t dim, const Tensor& index) {
  const int d = normalize_dim("index_select", dim, x.dim());
  if (index.dim() != 1) fail<ShapeError>("index_select: index is {}; it must have rank 1", index.describe());
  return apply(IndexSelect{d, x.shape()}, x, checked_along("index_select", index, x, d, true));
}

Tensor index_add(const Tensor& x, int64_t dim, const Tensor& index, const Tensor& src) {
  const int d = normalize_dim("index_add", dim, x.dim());
  check_addable("index_add", x, src);
  if (index.dim() != 1) fail<ShapeError>("index_add: index is {}; it must have rank 1", index.describe());
  Shape expected = x.shape();
  expected[d] = index.size(0);
  if (src.shape() != expected)
    fail<ShapeError>("index_add: src is {}, with x {} and index {} along dim {} it must be {}", src.describe(),
                     x.describe(), index.describe(), d, to_string(expected));
  return apply(IndexAdd{d}, x, checked_along("index_add", index, x, d, true), src);
}

Tensor one_hot(const Tensor& ids, int64_t classes, DType dtype) {
  if (classes < 0) fail<ValueError>("one_hot: {} classes; the number must not be negative", classes);
  const Tensor hot = checked("one_hot", ids, classes, false, [&] { return fmt::format("{} classes", classes); });
  Shape shape = ids.shape();
  shape.push_back(classes);
  const Tensor y = zeros(shape, dtype);
  dispatch(dtype, [&]<class T> {
    for (int64_t i = 0; i < hot.numel(); ++i)
      static_cast<T*>(memory_of(y))[i * classes + hot.data<int64_t>()[i]] = convert<T>(1);
  });
  return y;
}

}  // namespace tapestry
