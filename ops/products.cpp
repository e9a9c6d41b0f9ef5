// Products beside matmul: outer, dot, tensordot, bilinear, trace, kron, cross; each a few lines of matmul, mul and views, so that every order of
// derivative comes with them.
// Not Einstein's sums (einsum.cpp) nor distances (distance.cpp).
// Next: einsum.cpp.
#include <algorithm>

#include "../autograd/error.h"
#include "error_text.h"
#include "ops.h"

namespace tapestry {
namespace {

/// Of one dtype that can be multiplied.
void require_factors(const char* op, const Tensor& a, const Tensor& b) {
  detail::require_same_dtype(op, a, b);
  if (a.dtype() == DType::boolean)
    fail<DTypeError>("{}: bool has no product: a is {}, b is {}; convert with to(x, DType::i64)", op, a.describe(),
                     b.describe());
}

void require_rank(const char* op, const char* name, const Tensor& x, int rank) {
  if (!x.defined() || x.dim() != rank)
    fail<ShapeError>("{}: {} is {}; it must have rank {}", op, name, x.describe(), rank);
}

/// The dims of x that are not among `dims`, in order.
Dims others(const Tensor& x, const Dims& dims) {
  Dims rest;
  for (int d = 0; d < x.dim(); ++d)
    if (std::find(dims.begin(), dims.end(), d) == dims.end()) rest.push_back(d);
  return rest;
}

Dims joined(Dims a, const Dims& b) {
  for (const int64_t d : b) a.push_back(d);
  return a;
}

Shape sizes_of(const Tensor& x, const Dims& dims) {
  Shape shape;
  for (const int64_t d : dims) shape.push_back(x.size(d));
  return shape;
}

Dims distinct_dims(const char* name, const Tensor& x, const Dims& dims) {
  Dims found;
  for (const int64_t dim : dims) {
    const int64_t d = normalize_dim("tensordot", dim, x.dim());
    if (std::find(found.begin(), found.end(), d) != found.end())
      fail<ShapeError>("tensordot: dim {} of {} ({}) is named twice in {}; name each dim once", d, name, x.describe(),
                       to_string(dims));
    found.push_back(d);
  }
  return found;
}

/// x[…, (i + 1) mod 3, …] along dim.
Tensor next_component(const Tensor& x, int dim) { return cat({slice(x, dim, 1, 3), slice(x, dim, 0, 1)}, dim); }

}  // namespace

Tensor outer(const Tensor& a, const Tensor& b) {
  require_factors("outer", a, b);
  require_rank("outer", "a", a, 1);
  require_rank("outer", "b", b, 1);
  return mul(unsqueeze(a, 1), unsqueeze(b, 0));
}

Tensor dot(const Tensor& a, const Tensor& b) {
  require_factors("dot", a, b);
  require_rank("dot", "a", a, 1);
  require_rank("dot", "b", b, 1);
  if (a.size(0) != b.size(0))
    fail<ShapeError>("dot: lengths differ: a is {}, b is {}; both need as many elements", a.describe(), b.describe());
  return matmul(a, b);
}

Tensor tensordot(const Tensor& a, const Tensor& b, const Dims& dims_a, const Dims& dims_b) {
  require_factors("tensordot", a, b);
  if (dims_a.rank() != dims_b.rank())
    fail<ShapeError>("tensordot: {} dims of a {} against {} of b {}; name them in pairs", dims_a.rank(),
                     to_string(dims_a), dims_b.rank(), to_string(dims_b));
  const Dims inner_a = distinct_dims("a", a, dims_a), inner_b = distinct_dims("b", b, dims_b);
  for (int i = 0; i < inner_a.rank(); ++i)
    if (a.size(inner_a[i]) != b.size(inner_b[i]))
      fail<ShapeError>("tensordot: sizes differ: a is {}, b is {} (a.size({}) = {}, b.size({}) = {})", a.describe(),
                       b.describe(), inner_a[i], a.size(inner_a[i]), inner_b[i], b.size(inner_b[i]));
  if (a.dim() + b.dim() - 2 * inner_a.rank() > max_rank)
    fail<ShapeError>("tensordot: a is {}, b is {}; the result has {} dims, at most {} are supported", a.describe(),
                     b.describe(), a.dim() + b.dim() - 2 * inner_a.rank(), max_rank);
  const Dims outer_a = others(a, inner_a), outer_b = others(b, inner_b);
  const Shape rows = sizes_of(a, outer_a), columns = sizes_of(b, outer_b);
  const int64_t m = numel(rows), n = numel(columns), k = numel(sizes_of(a, inner_a));
  const Tensor left = reshape(permute(a, joined(outer_a, inner_a)), {m, k});
  const Tensor right = reshape(permute(b, joined(inner_b, outer_b)), {k, n});
  return reshape(matmul(left, right), joined(rows, columns));
}

Tensor bilinear(const Tensor& a, const Tensor& b, const Tensor& weight, const Tensor& bias) {
  require_factors("bilinear", a, b);
  detail::require_same_dtype("bilinear", a, weight);
  require_rank("bilinear", "weight", weight, 3);
  if (a.dim() == 0 || b.dim() == 0 || a.size(-1) != weight.size(1) || b.size(-1) != weight.size(2))
    fail<ShapeError>("bilinear: a is {}, b is {}, weight is {}; the last dims of a and b must be weight's dims 1 and 2",
                     a.describe(), b.describe(), weight.describe());
  const int64_t k = weight.size(0), n = weight.size(1), m = weight.size(2);
  if (bias.defined() && bias.shape() != Shape{k})
    fail<ShapeError>("bilinear: bias is {}, weight is {}; bias must be [{}]", bias.describe(), weight.describe(), k);
  Shape shape = a.shape();
  shape[a.dim() - 1] = k;
  shape.push_back(m);
  const Tensor weighted = reshape(matmul(a, reshape(permute(weight, {1, 0, 2}), {n, k * m})), shape);  // aᵀ Wₖ
  const Tensor y = squeeze(matmul(weighted, unsqueeze(b, -1)), -1);
  return bias.defined() ? add(y, bias) : y;
}

Tensor trace(const Tensor& x) {
  if (!x.defined() || x.dim() < 2) fail<ShapeError>("trace: x is {}; it needs two dims for a matrix", x.describe());
  return sum(diagonal(x), {-1});
}

Tensor kron(const Tensor& a, const Tensor& b) {
  require_factors("kron", a, b);
  require_rank("kron", "a", a, 2);
  require_rank("kron", "b", b, 2);
  const int64_t m = a.size(0), n = a.size(1), p = b.size(0), q = b.size(1);
  return reshape(mul(reshape(a, {m, 1, n, 1}), reshape(b, {1, p, 1, q})), {m * p, n * q});
}

Tensor cross(const Tensor& a, const Tensor& b, int64_t dim) {
  require_factors("cross", a, b);
  Tensor x = a, y = b;
  detail::expand_together("cross", x, y);
  const int d = normalize_dim("cross", dim, x.dim());
  if (x.size(d) != 3)
    fail<ShapeError>("cross: a is {}, b is {}; dim {} must have size 3, it has {}", a.describe(), b.describe(), d,
                     x.size(d));
  return next_component(sub(mul(x, next_component(y, d)), mul(next_component(x, d), y)), d);
}

}  // namespace tapestry
