// Picking by tensors of indices: embedding, gather, take_along_dim and index_select; one_hot.
// Not here: their adjoints (scatter.cpp), NumPy's indexing (advanced_index.cpp), parts chosen by numbers, which are views (slice.cpp).
// Next: scatter.cpp.
#include "../autograd/function.h"
#include "error_text.h"
#include "indices.h"
#include "kernels/indexed.h"

namespace tapestry {
namespace {

using namespace detail;  // indices.h
using kernels::add_slices, kernels::select_slices;

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

}  // namespace

Tensor embedding(const Tensor& table, const Tensor& ids, std::optional<int64_t> padding_idx) {
  require_defined("embedding", table);
  if (table.dim() != 2) fail<ShapeError>("embedding: the table is {}; it must be (rows, width)", table.describe());
  const Tensor rows = checked_indices("embedding", ids, table.size(0), false,
                                      [&] { return fmt::format("a table of {} rows", table.size(0)); });
  require_result_rank("embedding", ids.dim() + 1);
  const Tensor y = apply(Embedding{table.shape()}, table, rows);
  if (!padding_idx) return y;
  if (*padding_idx < 0 || *padding_idx >= table.size(0))
    fail<IndexError>("embedding: padding_idx {} is out of range for a table of {} rows", *padding_idx, table.size(0));
  return where(unsqueeze(equal(rows, static_cast<double>(*padding_idx)), -1), y.detach(), y);
}

Tensor gather(const Tensor& x, int64_t dim, const Tensor& index) {
  require_defined("gather", x);
  const int d = normalize_dim("gather", dim, x.dim());
  check_fits("gather", x, d, index);
  return apply(Gather{d, x.shape()}, x, checked_along("gather", index, x, d, false));
}

Tensor take_along_dim(const Tensor& x, const Tensor& index, int64_t dim) {
  require_defined("take_along_dim", x);
  require_indices("take_along_dim", index);
  const int d = normalize_dim("take_along_dim", dim, x.dim());
  if (index.dim() != x.dim())
    fail<ShapeError>("take_along_dim: index is {}, x is {}; they must have one rank", index.describe(), x.describe());
  Shape from = x.shape(), to = index.shape();
  from[d] = to[d] = 1;
  from = to = broadcast_shapes("take_along_dim", from, to);
  from[d] = x.shape()[d];
  to[d] = index.shape()[d];
  return apply(Gather{d, from}, expand(x, from),
               dense(expand(checked_along("take_along_dim", index, x, d, false), to)));
}

Tensor index_select(const Tensor& x, int64_t dim, const Tensor& index) {
  require_defined("index_select", x);
  const int d = normalize_dim("index_select", dim, x.dim());
  require_indices("index_select", index);
  if (index.dim() != 1) fail<ShapeError>("index_select: index is {}; it must have rank 1", index.describe());
  return apply(IndexSelect{d, x.shape()}, x, checked_along("index_select", index, x, d, true));
}

Tensor one_hot(const Tensor& ids, int64_t classes, DType dtype) {
  if (classes < 0) fail<ValueError>("one_hot: {} classes; the number must not be negative", classes);
  const Tensor hot =
      checked_indices("one_hot", ids, classes, false, [&] { return fmt::format("{} classes", classes); });
  require_result_rank("one_hot", ids.dim() + 1);
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
