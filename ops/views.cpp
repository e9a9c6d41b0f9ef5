// Views that only rename dims: reshape, view, flatten, squeeze, unsqueeze, transpose, permute, mT, expand.
// Nothing is copied, except by reshape where the strides do not allow a view. Parts of tensors are in slice.cpp, sums in reduce.cpp.
// Next: slice.cpp.
#include "../autograd/function.h"
#include "error_text.h"
#include "ops.h"

namespace tapestry {
namespace {

struct Reshape {
  static constexpr std::string_view name = "reshape", formula = "y = x in row-major order under another shape",
                                    vjp = "reshape(g, x.shape)";
  Shape to, from;
  Strides strides;
  Tensor forward(Context&, const Tensor& x) const { return x.view_of(to, strides, x.offset()); }
  Grads backward(Context& c, const Tensor& g) const {
    return grads(c, [&] { return reshape(g, from); });
  }
};

struct Squeeze {
  static constexpr std::string_view name = "squeeze", formula = "y = x without a dim of size 1",
                                    vjp = "unsqueeze(g, dim)";
  int dim;
  Tensor forward(Context&, const Tensor& x) const {
    Shape shape = x.shape();
    Strides strides = x.strides();
    shape.erase(dim);
    strides.erase(dim);
    return x.view_of(shape, strides, x.offset());
  }
  Grads backward(Context& c, const Tensor& g) const {
    return grads(c, [&] { return unsqueeze(g, dim); });
  }
};

struct Unsqueeze {
  static constexpr std::string_view name = "unsqueeze", formula = "y = x with a new dim of size 1",
                                    vjp = "squeeze(g, dim)";
  int dim;
  Tensor forward(Context&, const Tensor& x) const {
    Shape shape = x.shape();
    Strides strides = x.strides();
    strides.insert(dim, dim < shape.rank() ? shape[dim] * strides[dim] : 1);
    shape.insert(dim, 1);
    return x.view_of(shape, strides, x.offset());
  }
  Grads backward(Context& c, const Tensor& g) const {
    return grads(c, [&] { return squeeze(g, dim); });
  }
};

struct Transpose {
  static constexpr std::string_view name = "transpose", formula = "y[…i…j…] = x[…j…i…]",
                                    vjp = "transpose(g, dim0, dim1)";
  int dim0, dim1;
  Tensor forward(Context&, const Tensor& x) const {
    Shape shape = x.shape();
    Strides strides = x.strides();
    std::swap(shape[dim0], shape[dim1]);
    std::swap(strides[dim0], strides[dim1]);
    return x.view_of(shape, strides, x.offset());
  }
  Grads backward(Context& c, const Tensor& g) const {
    return grads(c, [&] { return transpose(g, dim0, dim1); });
  }
};

struct Permute {
  static constexpr std::string_view name = "permute", formula = "dim i of y is dim dims[i] of x",
                                    vjp = "permute(g, inverse of dims)";
  Dims dims;
  Tensor forward(Context&, const Tensor& x) const {
    Shape shape = x.shape();
    Strides strides = x.strides();
    for (int i = 0; i < dims.rank(); ++i) {
      shape[i] = x.shape()[static_cast<int>(dims[i])];
      strides[i] = x.strides()[static_cast<int>(dims[i])];
    }
    return x.view_of(shape, strides, x.offset());
  }
  Grads backward(Context& c, const Tensor& g) const {
    Dims inverse = dims;
    for (int i = 0; i < dims.rank(); ++i) inverse[static_cast<int>(dims[i])] = i;
    return grads(c, [&] { return permute(g, inverse); });
  }
};

struct Expand {
  static constexpr std::string_view name = "expand", formula = "y = x, repeated along dims of size 1 and new ones",
                                    vjp = "sum_to(g, x.shape)";
  Shape to, from;
  Tensor forward(Context&, const Tensor& x) const {
    return x.view_of(to, expanded_strides("expand", from, x.strides(), to), x.offset());
  }
  Grads backward(Context& c, const Tensor& g) const {
    return grads(c, [&] { return sum_to(g, from); });
  }
};

/// `shape` with its −1 replaced; ShapeError unless it has as many elements as x.
Shape resolve(const char* op, const Tensor& x, Shape shape) {
  int unknown = -1;
  int64_t known = 1;
  for (int i = 0; i < shape.rank(); ++i) {
    if (shape[i] < -1) fail<ShapeError>("{}: negative size in {}; only -1 has a meaning", op, to_string(shape));
    if (shape[i] == -1) {
      if (unknown >= 0)
        fail<ShapeError>("{}: more than one -1 in {}; at most one size can be inferred", op, to_string(shape));
      unknown = i;
    }
  }
  if (unknown >= 0) {
    Shape rest = shape;
    rest.erase(unknown);
    known = numel(rest);
    if (known == 0 || x.numel() % known != 0)
      fail<ShapeError>(
          "{}: cannot infer the -1 in {}: {} has {} elements, the other sizes have product {}; give sizes that divide",
          op, to_string(shape), x.describe(), x.numel(), known);
    shape[unknown] = x.numel() / known;
  }
  if (numel(shape) != x.numel())
    fail<ShapeError>("{}: {} has {} elements, {} has {}; give a shape of as many elements", op, x.describe(), x.numel(),
                     to_string(shape), numel(shape));
  return shape;
}

}  // namespace

Tensor reshape(const Tensor& x, const Shape& shape) {
  detail::require_defined("reshape", x);
  const Shape to = resolve("reshape", x, shape);
  if (to == x.shape()) return x;
  Strides strides;
  if (view_strides(x.shape(), x.strides(), to, strides)) return apply(Reshape{to, x.shape(), strides}, x);
  return apply(Reshape{to, x.shape(), contiguous_strides(to)}, contiguous(x));
}

Tensor view(const Tensor& x, const Shape& shape) {
  detail::require_defined("view", x);
  const Shape to = resolve("view", x, shape);
  if (to == x.shape()) return x;
  Strides strides;
  if (!view_strides(x.shape(), x.strides(), to, strides))
    fail<ShapeError>("view: {} with strides {} cannot be seen as {} without a copy; use reshape", x.describe(),
                     to_string(x.strides()), to_string(to));
  return apply(Reshape{to, x.shape(), strides}, x);
}

Tensor flatten(const Tensor& x, int64_t first, int64_t last) {
  detail::require_defined("flatten", x);
  if (x.dim() == 0) {
    if (first < -1 || first > 0 || last < -1 || last > 0)
      fail<IndexError>("flatten: dims {} to {} are out of range for rank 0; use 0 and -1", first, last);
    return reshape(x, {1});
  }
  const int begin = normalize_dim("flatten", first, x.dim()), end = normalize_dim("flatten", last, x.dim());
  if (begin > end)
    fail<ShapeError>("flatten: the first dim {} comes after the last {} in {}; swap them", begin, end, x.describe());
  Shape shape;
  for (int i = 0; i < x.dim(); ++i) {
    if (i <= begin || i > end)
      shape.push_back(x.shape()[i]);
    else
      shape[begin] *= x.shape()[i];
  }
  return reshape(x, shape);
}

Tensor transpose(const Tensor& x, int64_t dim0, int64_t dim1) {
  detail::require_defined("transpose", x);
  const int a = normalize_dim("transpose", dim0, x.dim()), b = normalize_dim("transpose", dim1, x.dim());
  return a == b ? x : apply(Transpose{a, b}, x);
}

Tensor mT(const Tensor& x) {
  detail::require_defined("mT", x);
  if (x.dim() < 2) fail<ShapeError>("mT: {} has rank {}; it needs two dims to swap", x.describe(), x.dim());
  return apply(Transpose{x.dim() - 2, x.dim() - 1}, x);
}

Tensor permute(const Tensor& x, const Dims& dims) {
  detail::require_defined("permute", x);
  if (dims.rank() != x.dim())
    fail<ShapeError>("permute: {} dims {} for {}; name each of its {} dims once", dims.rank(), to_string(dims),
                     x.describe(), x.dim());
  Dims order = dims;
  bool seen[max_rank] = {}, same = true;
  for (int i = 0; i < order.rank(); ++i) {
    const int dim = normalize_dim("permute", dims[i], x.dim());
    if (seen[dim])
      fail<ShapeError>("permute: dim {} is named twice in {} for {}; name each dim once", dim, to_string(dims),
                       x.describe());
    seen[dim] = true;
    order[i] = dim;
    same = same && dim == i;
  }
  return same ? x : apply(Permute{order}, x);
}

Tensor expand(const Tensor& x, const Shape& shape) {
  detail::require_defined("expand", x);
  Shape to = shape;
  const int lead = to.rank() - x.dim();
  for (int i = 0; i < to.rank(); ++i) {
    if (to[i] >= 0) continue;
    if (to[i] != -1 || i < lead)
      fail<ShapeError>("expand: cannot expand {} to {} (dim {}: {}); -1 keeps the size of a dim that x has",
                       x.describe(), to_string(shape), i - to.rank(), to[i]);
    to[i] = x.shape()[i - lead];
  }
  if (to == x.shape()) return x;
  expanded_strides("expand", x.shape(), x.strides(), to);  // throws before anything is recorded
  numel(to);  // a shape that memory never limits must still have a countable number of elements
  return apply(Expand{to, x.shape()}, x);
}

Tensor squeeze(const Tensor& x) {
  detail::require_defined("squeeze", x);
  Shape shape;
  for (const int64_t size : x.shape())
    if (size != 1) shape.push_back(size);
  return reshape(x, shape);
}

Tensor squeeze(const Tensor& x, int64_t dim) {
  detail::require_defined("squeeze", x);
  const int d = normalize_dim("squeeze", dim, x.dim());
  return x.shape()[d] == 1 ? apply(Squeeze{d}, x) : x;
}

Tensor unsqueeze(const Tensor& x, int64_t dim) {
  detail::require_defined("unsqueeze", x);
  if (x.dim() == max_rank)
    fail<ShapeError>("unsqueeze: {} already has {} dims, the most there can be", x.describe(), max_rank);
  return apply(Unsqueeze{normalize_dim("unsqueeze", dim, x.dim() + 1)}, x);
}

}  // namespace tapestry
