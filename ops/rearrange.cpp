// The same elements in another order or several times: flip, roll, movedim, repeat, repeat_interleave, meshgrid.
// Only flip is an op of its own; the others are views, cat and index_select. Dims renamed: views.cpp.
// Next: diagonal.cpp.
#include "../autograd/function.h"
#include "error_text.h"
#include "ops.h"

namespace tapestry {
namespace {

using detail::require_defined;

struct Flip {
  static constexpr std::string_view name = "flip", formula = "y[…i…] = x[…n − 1 − i…] along dims",
                                    vjp = "flip(g, dims)";
  Dims dims;
  Tensor forward(Context&, const Tensor& x) const {
    Strides strides = x.strides();
    int64_t offset = x.offset();
    for (const int64_t dim : dims) {
      const int d = static_cast<int>(dim);
      if (x.shape()[d] < 2) continue;
      offset += (x.shape()[d] - 1) * strides[d];
      strides[d] = -strides[d];
    }
    return x.view_of(x.shape(), strides, x.numel() > 0 ? offset : x.offset());
  }
  Grads backward(Context& c, const Tensor& g) const {
    return grads(c, [&] { return flip(g, dims); });
  }
};

int64_t product(const Shape& shape, int first, int end) {
  int64_t n = 1;
  for (int d = first; d < end; ++d) n *= shape[d];
  return n;
}

/// `shape` with dim d `times` as long; ShapeError where memory could not count it.
Shape lengthened(const char* op, const Tensor& x, int d, int64_t times) {
  Shape shape = x.shape();
  if (__builtin_mul_overflow(shape[d], times, &shape[d]))
    fail<ShapeError>("{}: dim {} of {} becomes longer than 2^63 when repeated {} times", op, d, x.describe(), times);
  numel(shape);
  return shape;
}

}  // namespace

Tensor flip(const Tensor& x, const Dims& dims) {
  require_defined("flip", x);
  Dims chosen;
  bool seen[max_rank] = {};
  for (const int64_t dim : dims) {
    const int d = normalize_dim("flip", dim, x.dim());
    if (seen[d])
      fail<ShapeError>("flip: dim {} is named twice in {} for {}; name each dim once", d, to_string(dims),
                       x.describe());
    seen[d] = true;
    chosen.push_back(d);
  }
  return chosen.empty() ? x : apply(Flip{chosen}, x);
}

Tensor roll(const Tensor& x, const std::vector<int64_t>& shifts, const Dims& dims) {
  require_defined("roll", x);
  if (shifts.size() != dims.size())
    fail<ShapeError>("roll: {} shifts for {} dims of {}; give one shift a dim", shifts.size(), dims.size(),
                     x.describe());
  Tensor y = x;
  for (int i = 0; i < dims.rank(); ++i) {
    const int d = normalize_dim("roll", dims[i], x.dim());
    const int64_t n = x.shape()[d];
    if (n == 0) continue;
    const int64_t shift = (shifts[static_cast<size_t>(i)] % n + n) % n;
    if (shift != 0) y = cat({slice(y, d, n - shift, n), slice(y, d, 0, n - shift)}, d);
  }
  return y;
}

Tensor movedim(const Tensor& x, int64_t from, int64_t to) {
  require_defined("movedim", x);
  const int source = normalize_dim("movedim", from, x.dim()), target = normalize_dim("movedim", to, x.dim());
  Dims order;
  for (int d = 0; d < x.dim(); ++d)
    if (d != source) order.push_back(d);
  order.insert(target, source);
  return permute(x, order);
}

Tensor repeat(const Tensor& x, const std::vector<int64_t>& repeats) {
  require_defined("repeat", x);
  const auto text = [&] { return to_string(std::span<const int64_t>(repeats)); };
  if (repeats.size() < static_cast<size_t>(x.dim()) || repeats.size() > max_rank)
    fail<ShapeError>("repeat: {} repeats {} for {}; give one for each dim, and more for new ones in front, at most {}",
                     repeats.size(), text(), x.describe(), max_rank);
  for (const int64_t times : repeats)
    if (times < 0) fail<ValueError>("repeat: negative repeats in {}; use 0 or more", text());
  Tensor y = x;
  while (y.dim() < static_cast<int>(repeats.size())) y = unsqueeze(y, 0);
  for (int d = y.dim(); d-- > 0;) {
    const int64_t times = repeats[static_cast<size_t>(d)];
    if (times == 1) continue;
    const Shape shape = lengthened("repeat", y, d, times);
    const int64_t outer = product(y.shape(), 0, d), inner = product(y.shape(), d, y.dim());
    y = reshape(expand(reshape(y, {outer, 1, inner}), {outer, times, inner}), shape);
  }
  return contiguous(y);  // the last step may have been a view
}

Tensor repeat_interleave(const Tensor& x, int64_t repeats, int64_t dim) {
  require_defined("repeat_interleave", x);
  const int d = normalize_dim("repeat_interleave", dim, x.dim());
  if (repeats < 0)
    fail<ValueError>("repeat_interleave: {} repeats of dim {} of {}; use 0 or more", repeats, d, x.describe());
  const Shape shape = lengthened("repeat_interleave", x, d, repeats);
  const int64_t outer = product(x.shape(), 0, d + 1), inner = product(x.shape(), d + 1, x.dim());
  return contiguous(reshape(expand(reshape(x, {outer, 1, inner}), {outer, repeats, inner}), shape));
}

Tensor repeat_interleave(const Tensor& x, const Tensor& repeats, int64_t dim) {
  require_defined("repeat_interleave", x);
  const int d = normalize_dim("repeat_interleave", dim, x.dim());
  detail::require_indices("repeat_interleave", repeats);
  if (repeats.shape() != Shape{x.shape()[d]})
    fail<ShapeError>("repeat_interleave: repeats are {}, dim {} of {} needs [{}]", repeats.describe(), d, x.describe(),
                     x.shape()[d]);
  const auto counts = repeats.to_vector<int64_t>();
  int64_t total = 0;
  for (size_t i = 0; i < counts.size(); ++i) {
    if (counts[i] < 0) fail<ValueError>("repeat_interleave: {} repeats at [{}]; use 0 or more", counts[i], i);
    if (__builtin_add_overflow(total, counts[i], &total))
      fail<ShapeError>("repeat_interleave: the repeats sum to more than 2^63");
  }
  const Tensor sources = empty({total}, DType::i64);
  auto* source = static_cast<int64_t*>(sources.body()->storage->data);
  for (size_t i = 0; i < counts.size(); ++i) source = std::fill_n(source, counts[i], static_cast<int64_t>(i));
  return index_select(x, d, sources);
}

Tensors meshgrid(std::span<const Tensor> xs) {
  if (xs.empty()) fail<ShapeError>("meshgrid: no tensors; pass at least one");
  Shape grid;
  for (size_t i = 0; i < xs.size(); ++i) {
    require_defined("meshgrid", xs[i]);
    if (xs[i].dim() != 1) fail<ShapeError>("meshgrid: input {} is {}; it must have rank 1", i, xs[i].describe());
    grid.push_back(xs[i].size(0));
  }
  Tensors ys;
  for (size_t i = 0; i < xs.size(); ++i) {
    Shape alone = grid;
    for (int64_t& size : alone) size = 1;
    alone[static_cast<int>(i)] = xs[i].size(0);
    ys.push_back(expand(reshape(xs[i], alone), grid));
  }
  return ys;
}

}  // namespace tapestry
