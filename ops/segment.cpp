// Rows reduced over equal ids: segment_sum, segment_mean, segment_max; bincount.
// Sums are index_add: ids may come in any order, and each segment adds its rows in theirs.
// Next: kernels/indexed.h.
#include <limits>

#include "../autograd/function.h"
#include "error_text.h"
#include "indices.h"
#include "kernels/indexed.h"

namespace tapestry {
namespace {

using namespace detail;  // indices.h

Shape segmented(const Tensor& x, int64_t segments) {
  Shape shape = x.shape();
  shape[0] = segments;
  return shape;
}

struct SegmentMax {
  static constexpr std::string_view name = "segment_max",
                                    formula = "y[s…] = largest x[k…] with ids[k] = s, −∞ without any",
                                    vjp = "g[ids]/(number of ties) where x = y[ids], else 0";
  int64_t segments;
  Tensor forward(Context& c, const Tensor& x, const Tensor& ids) const {
    const Tensor y = full(segmented(x, segments), -std::numeric_limits<double>::infinity(), x.dtype());
    const Around a(x.shape(), 0);
    kernels::max_slices(x.dtype(), memory_of(y), ids.data<int64_t>(), dense(x).raw_data(), 1, segments, a.size,
                        a.inner);
    c.save(x, ids, y);
    return y;
  }
  Grads backward(Context& c, const Tensor& g) const {
    const Tensor x = c.saved(0), ids = c.saved(1), y = c.saved(2);
    const Tensor is_best =
        logical_or(equal(x, index_select(y, 0, ids)), isnan(x));  // a NaN is the result wherever there is one
    const Tensor ties = index_add(zeros_view(g.shape(), g.dtype()), 0, ids, to(is_best, g.dtype()));
    return {where(is_best, index_select(div(g, maximum(ties, 1)), 0, ids), 0.0), Tensor{}};
  }
};

/// The ids, checked to be those of x's rows.
Tensor checked_ids(const char* op, const Tensor& x, const Tensor& ids, int64_t segments) {
  require_defined(op, x);
  require_indices(op, ids);
  if (segments < 0) fail<ValueError>("{}: {} segments; the number must not be negative", op, segments);
  if (x.dim() < 1 || ids.shape() != Shape{x.size(0)})
    fail<ShapeError>("{}: ids are {}, x is {}; x needs rows, and one id for each", op, ids.describe(), x.describe());
  return checked_indices(op, ids, segments, false, [&] { return fmt::format("{} segments", segments); });
}

}  // namespace

Tensor bincount(const Tensor& ids, int64_t min_length) {
  require_indices("bincount", ids);
  if (min_length < 0) fail<ValueError>("bincount: min_length {}; it must not be negative", min_length);
  const Tensor checked = checked_indices("bincount", ids, std::numeric_limits<int64_t>::max(), false,
                                         [] { return "counting, which begins at 0"; });
  const auto* id = checked.data<int64_t>();
  int64_t length = min_length;
  for (int64_t i = 0; i < checked.numel(); ++i) length = std::max(length, id[i] + 1);
  const Tensor counts = zeros({length}, DType::i64);
  auto* count = static_cast<int64_t*>(memory_of(counts));
  for (int64_t i = 0; i < checked.numel(); ++i) ++count[id[i]];
  return counts;
}

Tensor segment_sum(const Tensor& x, const Tensor& ids, int64_t segments) {
  const Tensor at = checked_ids("segment_sum", x, ids, segments);
  if (x.dtype() == DType::boolean)
    fail<DTypeError>("segment_sum: bool elements cannot be added, x is {}; convert with to(x, DType::i64)",
                     x.describe());
  return index_add(zeros_view(segmented(x, segments), x.dtype()), 0, at, x);
}

Tensor segment_mean(const Tensor& x, const Tensor& ids, int64_t segments) {
  const Tensor at = checked_ids("segment_mean", x, ids, segments);
  require_floating("segment_mean", x);
  Shape column = segmented(x, segments);
  for (int d = 1; d < column.rank(); ++d) column[d] = 1;
  // bf16 would round the sums and count to 256.
  const Tensor wide = x.dtype() == DType::bf16 ? to(x, DType::f32) : x;
  const Tensor counts = to(reshape(maximum(bincount(at, segments), 1), column), wide.dtype());
  const Tensor y = div(index_add(zeros_view(segmented(x, segments), wide.dtype()), 0, at, wide), counts);
  return x.dtype() == DType::bf16 ? to(y, DType::bf16) : y;
}

Tensor segment_max(const Tensor& x, const Tensor& ids, int64_t segments) {
  const Tensor at = checked_ids("segment_max", x, ids, segments);
  require_floating("segment_max", x);
  return apply(SegmentMax{segments}, x, at);
}

}  // namespace tapestry
