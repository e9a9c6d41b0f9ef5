// NumPy's indexing: index, index_put, and the masked ones, masked_select, masked_scatter, nonzero.
// Views, index_select, index_add and put_slices put together: no kernel and no derivative of its own.
// Next: segment.cpp.
#include <algorithm>

#include "../autograd/function.h"
#include "../autograd/parallel.h"
#include "error_text.h"
#include "indices.h"

namespace tapestry {
namespace {

using namespace detail;  // indices.h
using Kind = Index::Kind;
using Indices = std::vector<Index>;

bool is_tensor(const Index& i) { return i.kind == Kind::tensor; }

/// Columns (n) of the (n, rank) places where the mask is true, one index tensor for each dim it covers.
Indices columns_of(const char* op, const Tensor& x, int dim, const Tensor& mask) {
  bool fits = mask.dim() > 0 && dim + mask.dim() <= x.dim();
  for (int d = 0; d < mask.dim() && fits; ++d) fits = mask.shape()[d] == x.shape()[dim + d];
  if (!fits)
    fail<ShapeError>("{}: the mask {} does not fit {} from dim {} on; it needs the sizes of the dims it stands for", op,
                     mask.describe(), x.describe(), dim);
  const Tensor places = nonzero(mask);
  Indices columns;
  for (int d = 0; d < mask.dim(); ++d) columns.emplace_back(contiguous(select(places, 1, d)));
  return columns;
}

/// One index for each dim of x: masks replaced by what they stand for, indices checked and counted from the front, dims left out added.
Indices spelled_out(const char* op, const Tensor& x, const Indices& indices) {
  require_defined(op, x);
  Indices result;
  for (const Index& i : indices) {
    const int dim = static_cast<int>(result.size());
    if (is_tensor(i) && i.tensor.defined() && i.tensor.dtype() == DType::boolean) {
      for (Index& column : columns_of(op, x, dim, i.tensor)) result.push_back(std::move(column));
      continue;
    }
    if (is_tensor(i)) require_indices(op, i.tensor);
    if (dim >= x.dim())
      fail<IndexError>("{}: {} indices for {}, which has {} dims; give at most one a dim", op, indices.size(),
                       x.describe(), x.dim());
    const int64_t n = x.shape()[dim];
    result.push_back(i);
    if (is_tensor(i)) result.back().tensor = checked_along(op, i.tensor, x, dim, true);
    if (i.kind == Kind::number) {
      if (i.number < -n || i.number >= n)
        fail<IndexError>("{}: index {} is out of range for dim {} of {}; use {} to {}", op, i.number, dim, x.describe(),
                         -n, n - 1);
      result.back().number += i.number < 0 ? n : 0;
    }
  }
  result.resize(static_cast<size_t>(x.dim()));
  return result;
}

/// x with its indexed dims brought together and seen as (outer, size, inner), so that one list of places picks from them.
struct Picking {
  Dims order;                // dims of x as they are brought together
  Shape shape, block;        // x's in that order; the index tensors' common one
  int first = 0, count = 0;  // where in it the indexed dims stand
  int64_t outer = 1, size = 1, inner = 1;
  Tensor places;  // (n) i64, in [0, size)

  [[nodiscard]] Tensor of(const Tensor& x) const { return reshape(permute(x, order), {outer, size, inner}); }
  [[nodiscard]] Tensor back(const Tensor& y) const {
    Dims inverse = order;
    for (int i = 0; i < order.rank(); ++i) inverse[static_cast<int>(order[i])] = i;
    return permute(reshape(y, shape), inverse);
  }
  /// What is picked has this shape.
  [[nodiscard]] Shape result() const {
    Shape picked;
    for (int d = 0; d < first; ++d) picked.push_back(shape[d]);
    for (const int64_t n : block) picked.push_back(n);
    for (int d = first + count; d < shape.rank(); ++d) picked.push_back(shape[d]);
    return picked;
  }
};

/// Index tensors of the dims of x, undefined where a dim is taken whole. `in_place`: their dims take the place of the first, else they come first.
Picking picking(const char* op, const Tensor& x, const std::vector<Tensor>& tensors, bool in_place) {
  Picking p;
  Dims indexed, rest;
  for (int d = 0; d < x.dim(); ++d) {
    const Tensor& t = tensors[static_cast<size_t>(d)];
    (t.defined() ? indexed : rest).push_back(d);
    if (t.defined()) p.block = broadcast_shapes(op, p.block, t.shape());
  }
  require_result_rank(op, p.block.rank() + rest.rank());
  p.first = in_place ? static_cast<int>(indexed[0]) : 0;
  p.count = indexed.rank();
  for (int i = 0; i < p.first; ++i) p.order.push_back(rest[i]);
  for (const int64_t d : indexed) p.order.push_back(d);
  for (int i = p.first; i < rest.rank(); ++i) p.order.push_back(rest[i]);
  p.places = zeros_view(p.block, DType::i64);
  for (int i = 0; i < p.order.rank(); ++i) {
    const int64_t n = x.shape()[static_cast<int>(p.order[i])];
    p.shape.push_back(n);
    (i < p.first ? p.outer : i < p.first + p.count ? p.size : p.inner) *= n;
    if (i >= p.first && i < p.first + p.count)
      p.places = add(mul(p.places, static_cast<double>(n)), tensors[static_cast<size_t>(p.order[i])]);
  }
  p.places = flatten(p.places);
  return p;
}

/// Do the tensors stand side by side? As in NumPy, a number beside tensors is one of them: it may part or join the others.
bool side_by_side(const Indices& indices) {
  int runs = 0;
  bool among = false;
  for (const Index& i : indices) {
    const bool was = among;
    among = is_tensor(i) || i.kind == Kind::number;
    runs += among && !was ? 1 : 0;
  }
  return runs == 1;
}

/// index() with one checked index for each dim of x.
Tensor read(const char* op, const Tensor& x, const Indices& indices) {
  Tensor y = x;
  std::vector<Tensor> tensors;
  for (size_t d = 0; d < indices.size(); ++d) {
    const Index& i = indices[d];
    const auto dim = static_cast<int64_t>(tensors.size());
    if (i.kind == Kind::number) {
      y = select(y, dim, i.number);
      continue;
    }
    if (i.kind == Kind::range) y = slice(y, dim, i.start, i.stop, i.step);
    tensors.push_back(i.tensor);
  }
  if (std::none_of(indices.begin(), indices.end(), is_tensor)) return y;
  const Picking p = picking(op, y, tensors, side_by_side(indices));
  return reshape(index_select(p.of(y), 1, p.places), p.result());
}

void require_mask(const char* op, const Tensor& mask) {
  if (!mask.defined() || mask.dtype() != DType::boolean)
    fail<DTypeError>("{}: the mask must be bool, got {}; compare with !=, or convert with to(mask, DType::boolean)", op,
                     mask.describe());
}

void require_dtype_of(const char* op, const Tensor& x, const char* what, const Tensor& values) {
  require_defined(op, x);
  require_defined(op, values);
  if (x.dtype() != values.dtype())
    fail<DTypeError>("{}: dtypes differ: x is {}, {} is {}; convert with to({}, DType::{})", op, x.describe(), what,
                     values.describe(), what, name_of(x.dtype()));
}

}  // namespace

Index range(std::optional<int64_t> start, std::optional<int64_t> stop, int64_t step) {
  if (step == 0) fail<ValueError>("range: step 0; use a positive or negative step");
  Index i;
  i.kind = Kind::range;
  i.start = start;
  i.stop = stop;
  i.step = step;
  return i;
}

Tensor index(const Tensor& x, const std::vector<Index>& indices) {
  return read("index", x, spelled_out("index", x, indices));
}

Tensor index_put(const Tensor& x, const std::vector<Index>& indices, const Tensor& values, bool accumulate) {
  require_dtype_of("index_put", x, "values", values);
  if (accumulate && x.dtype() == DType::boolean)
    fail<DTypeError>("index_put: bool elements cannot be added, x is {}; convert with to(x, DType::i64)", x.describe());
  const Indices each = spelled_out("index_put", x, indices);
  const auto has = [&](Kind kind) {
    return std::any_of(each.begin(), each.end(), [&](const Index& i) { return i.kind == kind; });
  };
  const bool whole = has(Kind::tensor) && !has(Kind::number) && !has(Kind::range);  // tensors and whole dims only
  Picking p;
  Shape target;
  if (whole) {
    std::vector<Tensor> tensors;
    for (const Index& i : each) tensors.push_back(i.tensor);
    p = picking("index_put", x, tensors, side_by_side(each));
    target = p.result();
  } else {  // every element by its place, which index() itself finds
    const Tensor places = read("index_put", reshape(arange(x.numel()), x.shape()), each);
    target = places.shape();
    p = picking("index_put", reshape(x, {x.numel()}), {flatten(contiguous(places))}, true);
  }
  expanded_strides("index_put", values.shape(), values.strides(), target);  // throws in the name of index_put
  const Tensor source = reshape(expand(values, target), {p.outer, p.places.numel(), p.inner});
  const Tensor seen = whole ? p.of(x) : reshape(x, {1, x.numel(), 1});
  const Tensor y = accumulate ? index_add(seen, 1, p.places, source) : put_slices(seen, p.places, source);
  return whole ? p.back(y) : reshape(y, x.shape());
}

Tensor masked_select(const Tensor& x, const Tensor& mask) {
  require_defined("masked_select", x);
  require_mask("masked_select", mask);
  const Shape shape = broadcast_shapes("masked_select", x.shape(), mask.shape());
  return index_select(flatten(expand(x, shape)), 0, true_places(expand(mask, shape)));
}

Tensor masked_scatter(const Tensor& x, const Tensor& mask, const Tensor& src) {
  require_dtype_of("masked_scatter", x, "src", src);
  require_mask("masked_scatter", mask);
  expanded_strides("masked_scatter", mask.shape(), mask.strides(), x.shape());
  const Tensor places = true_places(expand(mask, x.shape()));
  const int64_t n = places.numel();
  if (src.numel() < n)
    fail<ShapeError>("masked_scatter: the mask is true {} times, src {} has {} elements; give as many", n,
                     src.describe(), src.numel());
  const Tensor source = slice(flatten(src), 0, 0, n);
  return reshape(put_slices(reshape(x, {1, x.numel(), 1}), places, reshape(source, {1, n, 1})), x.shape());
}

Tensor nonzero(const Tensor& x) {
  require_defined("nonzero", x);
  const Tensor places = true_places(x.dtype() == DType::boolean ? x : not_equal(x.detach(), 0.0));
  const int64_t n = places.numel();
  const int rank = x.dim();
  const Tensor y = empty({n, rank}, DType::i64);
  auto* to = static_cast<int64_t*>(memory_of(y));
  parallel_for(rank > 0 ? n : 0, 8192, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      int64_t at = places.data<int64_t>()[i];
      for (int d = rank - 1; d > 0; --d) {
        to[i * rank + d] = at % x.shape()[d];
        at /= x.shape()[d];
      }
      to[i * rank] = at;
    }
  });
  return y;
}

}  // namespace tapestry
