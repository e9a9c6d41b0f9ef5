// Any view of a tensor's storage, given by sizes, strides and an offset.
// Not for everyday use: views.cpp, slice.cpp, diagonal.cpp and windows.cpp say what they mean.
// Next: reduce.cpp.
#include <algorithm>
#include <vector>

#include "../autograd/function.h"
#include "../autograd/parallel.h"
#include "error_text.h"
#include "indices.h"

namespace tapestry {
namespace {

// Note [Gradients of as_strided]: y reads the storage, but the gradient belongs to the elements of x. So g is added up per storage position; each element
// of x then takes the sum at its position, and elements that lie on one position (x was expanded, say) share it evenly, as they also share the value. All
// of it is index_add and index_select on tables of positions, so every order works. A position that x does not cover has nobody to give its gradient to.

/// First and last storage position of a view, counted from its own first element; ShapeError past 2^63.
struct Reach {
  int64_t low = 0, high = 0;
  Reach(const Shape& shape, const Strides& strides) {
    for (int d = 0; d < shape.rank(); ++d) {
      int64_t way = 0;
      if (__builtin_mul_overflow(shape[d] - 1, strides[d], &way) ||
          __builtin_add_overflow(way < 0 ? low : high, way, way < 0 ? &low : &high))
        fail<ShapeError>("as_strided: {} with strides {} reaches further than 2^63", to_string(shape),
                         to_string(strides));
    }
  }
};

/// (numel) i64: storage position of every element, plus `start`.
Tensor positions(const Shape& shape, const Strides& strides, int64_t start) {
  const int64_t n = numel(shape);
  const Tensor result = empty({n}, DType::i64);
  auto* to = static_cast<int64_t*>(detail::memory_of(result));
  parallel_for(n, 16384, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      int64_t at = start, rest = i;
      for (int d = shape.rank() - 1; d >= 0; --d) {
        at += rest % shape[d] * strides[d];
        rest /= shape[d];
      }
      to[i] = at;
    }
  });
  return result;
}

/// Where the elements of x lie, in a table of the positions they span.
struct Table {
  Tensor places;  // (x.numel()) i64
  int64_t low, size;
  Table(const Shape& shape, const Strides& strides) {
    const Reach reach(shape, strides);
    low = reach.low;
    size = reach.high - reach.low + 1;
    places = positions(shape, strides, -low);
  }
};

struct AsStrided {
  static constexpr std::string_view name = "as_strided", formula = "y[j…] = x's storage at offset + Σ j·strides",
                                    vjp = "g added up at its positions; elements of x on one position share the sum";
  Shape shape;
  Strides strides;
  int64_t offset;
  Shape from;
  Strides from_strides;

  Tensor forward(Context&, const Tensor& x) const {
    return x.view_of(shape, strides, numel(shape) > 0 ? x.offset() + offset : x.offset());
  }
  Grads backward(Context& c, const Tensor& g) const {
    return grads(c, [&] {
      const int64_t n = numel(from);
      if (n == 0 || g.numel() == 0) return detail::zeros_view(from, g.dtype());
      const Table table(from, from_strides);
      const Tensor sums = index_add(detail::zeros_view({table.size}, g.dtype()), 0,
                                    positions(shape, strides, offset - table.low), flatten(g));
      if (is_contiguous(from, from_strides)) return reshape(sums, from);
      const Tensor owners = bincount(table.places, table.size);
      const Tensor shared = max(owners).item() > 1 ? div(sums, to(maximum(owners, 1), g.dtype())) : sums;
      return reshape(index_select(shared, 0, table.places), from);
    });
  }
};

/// ShapeError if the view reads what x does not cover.
void require_covered(const Tensor& x, const Shape& shape, const Strides& strides, int64_t offset) {
  const auto refuse = [&](int64_t position) {
    fail<ShapeError>(
        "as_strided: the view reads position {} of the storage, counted from x's first element, where x {} with "
        "strides "
        "{} has none: no element takes its gradient; detach() x, or take the view of what x was made from",
        position, x.describe(), to_string(x.strides()));
  };
  if (x.is_contiguous()) {
    const Reach reach(shape, strides);
    if (offset + reach.low < 0) refuse(offset + reach.low);
    if (offset + reach.high >= x.numel()) refuse(offset + reach.high);
    return;
  }
  const Table table(x.shape(), x.strides());
  std::vector<bool> covered(static_cast<size_t>(table.size));
  for (int64_t i = 0; i < x.numel(); ++i) covered[static_cast<size_t>(table.places.data<int64_t>()[i])] = true;
  const Tensor read = positions(shape, strides, offset);
  for (int64_t i = 0; i < read.numel(); ++i) {
    const int64_t at = read.data<int64_t>()[i] - table.low;
    if (at < 0 || at >= table.size || !covered[static_cast<size_t>(at)]) refuse(at + table.low);
  }
}

}  // namespace

Tensor as_strided(const Tensor& x, const Shape& shape, const std::vector<int64_t>& strides, int64_t offset) {
  detail::require_defined("as_strided", x);
  const std::span<const int64_t> list(strides);
  if (strides.size() != shape.size())
    fail<ShapeError>("as_strided: shape {} has {} dims, strides {} {}; give one stride a dim", to_string(shape),
                     shape.rank(), to_string(list), strides.size());
  const Strides steps(list);
  if (numel(shape) > 0) {
    const Reach reach(shape, steps);
    const int64_t held = x.body()->storage->bytes / size_of(x.dtype());
    int64_t first = 0, last = 0;
    if (__builtin_add_overflow(x.offset(), offset, &first) || __builtin_add_overflow(first, reach.high, &last) ||
        __builtin_add_overflow(first, reach.low, &first) || first < 0 || last >= held)
      fail<ShapeError>(
          "as_strided: {} with strides {} and offset {} leaves the storage of {}: it holds {} elements, x begins at {}",
          to_string(shape), to_string(list), offset, x.describe(), held, x.offset());
    if (grad_enabled() && x.requires_grad()) require_covered(x, shape, steps, offset);
  }
  return apply(AsStrided{shape, steps, offset, x.shape(), x.strides()}, x);
}

}  // namespace tapestry
