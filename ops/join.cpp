// Cutting into pieces and joining them: split, chunk, unbind; cat, stack. Each is the other's derivative.
// Pieces are views; joined tensors are copies.
// Next: copy.cpp.
#include <algorithm>

#include "../autograd/function.h"
#include "../autograd/strided.h"
#include "error_text.h"
#include "ops.h"

namespace tapestry {
namespace {

using Sizes = SmallVector<int64_t, 4>;

struct Split {
  static constexpr std::string_view name = "split", formula = "y₀, y₁, … = consecutive pieces of x along dim",
                                    vjp = "cat(g₀, g₁, …)";
  int dim;
  Sizes sizes;
  Tensors forward(Context&, const Tensor& x) const {
    Tensors pieces;
    Shape shape = x.shape();
    int64_t offset = x.offset();
    for (const int64_t size : sizes) {
      shape[dim] = size;
      pieces.push_back(x.view_of(shape, x.strides(), size > 0 ? offset : x.offset()));
      offset += size * x.strides()[dim];
    }
    return pieces;
  }
  Grads backward(Context& c, std::span<const Tensor> gs) const {
    return grads(c, [&] {
      Tensors pieces;
      for (size_t i = 0; i < sizes.size(); ++i) {
        const Meta& meta = c.output(static_cast<int>(i));
        // Nothing arrived: one zero, seen as a whole piece.
        pieces.push_back(gs[i].defined() ? gs[i] : expand(scalar(0, meta.dtype), meta.shape));
      }
      return cat(pieces, dim);
    });
  }
};

struct Cat {
  static constexpr std::string_view name = "cat", formula = "y = x₀, x₁, … one after the other along dim",
                                    vjp = "split(g)";
  int dim;
  Sizes sizes;
  int64_t total;
  Tensor forward(Context&, std::span<const Tensor> xs) const {
    Shape shape = xs[0].shape();
    shape[dim] = total;
    const Tensor y = empty(shape, xs[0].dtype());
    auto* to = static_cast<char*>(y.body()->storage->data);
    for (const Tensor& x : xs) {
      strided_copy(x.shape(), y.dtype(), to, y.strides(), x.dtype(), x.raw_data(), x.strides());
      to += x.shape()[dim] * y.strides()[dim] * size_of(y.dtype());
    }
    return y;
  }
  Grads backward(Context& c, const Tensor& g) const {
    const Tensors pieces = apply(Split{dim, sizes}, g);
    Grads result;
    for (size_t i = 0; i < sizes.size(); ++i) result.push_back(c.needs(static_cast<int>(i)) ? pieces[i] : Tensor{});
    return result;
  }
};

Tensors pieces_of(const Tensor& x, int dim, Sizes sizes) { return apply(Split{dim, std::move(sizes)}, x); }

}  // namespace

Tensors split(const Tensor& x, int64_t size, int64_t dim) {
  detail::require_defined("split", x);
  const int d = normalize_dim("split", dim, x.dim());
  if (size <= 0)
    fail<ValueError>("split: pieces of size {} along dim {} of {}; the size must be positive", size, d, x.describe());
  const int64_t n = x.shape()[d];
  Sizes sizes;
  for (int64_t begin = 0; begin < n; begin += std::min(size, n - begin)) sizes.push_back(std::min(size, n - begin));
  if (sizes.empty()) sizes.push_back(0);
  return pieces_of(x, d, std::move(sizes));
}

Tensors split(const Tensor& x, const std::vector<int64_t>& sizes, int64_t dim) {
  detail::require_defined("split", x);
  const int d = normalize_dim("split", dim, x.dim());
  const auto text = [&] { return to_string(std::span<const int64_t>(sizes)); };
  int64_t total = 0;
  Sizes list;
  for (const int64_t size : sizes) {
    if (size < 0) fail<ValueError>("split: negative size in {}; sizes are 0 or more", text());
    if (__builtin_add_overflow(total, size, &total)) fail<ShapeError>("split: sizes {} sum to more than 2^63", text());
    list.push_back(size);
  }
  if (total != x.shape()[d] || sizes.empty())
    fail<ShapeError>("split: sizes {} sum to {}, dim {} of {} has {}; they must agree", text(), total, d, x.describe(),
                     x.shape()[d]);
  return pieces_of(x, d, std::move(list));
}

Tensors chunk(const Tensor& x, int64_t chunks, int64_t dim) {
  detail::require_defined("chunk", x);
  const int d = normalize_dim("chunk", dim, x.dim());
  if (chunks <= 0) fail<ValueError>("chunk: {} chunks of {}; ask for at least one", chunks, x.describe());
  const int64_t n = x.shape()[d];
  return split(x, std::max<int64_t>(1, n / chunks + (n % chunks != 0)), d);
}

Tensors unbind(const Tensor& x, int64_t dim) {
  detail::require_defined("unbind", x);
  const int d = normalize_dim("unbind", dim, x.dim());
  if (x.shape()[d] == 0) return {};
  Tensors pieces = split(x, 1, d);
  for (Tensor& piece : pieces) piece = squeeze(piece, d);
  return pieces;
}

Tensor cat(std::span<const Tensor> xs, int64_t dim) {
  if (xs.empty()) fail<ShapeError>("cat: no tensors; pass at least one");
  for (const Tensor& x : xs) detail::require_defined("cat", x);
  const Shape& first = xs[0].shape();
  if (first.empty()) fail<ShapeError>("cat: {} has no dims to join along; use stack", xs[0].describe());
  const int d = normalize_dim("cat", dim, first.rank());
  Sizes sizes;
  int64_t total = 0;
  for (size_t i = 0; i < xs.size(); ++i) {
    Shape shape = xs[i].shape();
    if (xs[i].dtype() != xs[0].dtype())
      fail<DTypeError>("cat: dtypes differ: input 0 is {}, input {} is {}; convert with to(x, DType::{})",
                       xs[0].describe(), i, xs[i].describe(), name_of(xs[0].dtype()));
    if (shape.rank() == first.rank()) shape[d] = first[d];
    if (shape != first)
      fail<ShapeError>("cat: shapes differ outside dim {}: input 0 is {}, input {} is {}; only dim {} may differ", d,
                       xs[0].describe(), i, xs[i].describe(), d);
    sizes.push_back(xs[i].shape()[d]);
    if (__builtin_add_overflow(total, sizes.back(), &total))
      fail<ShapeError>("cat: the inputs have more than 2^63 entries along dim {}", d);
  }
  return apply(Cat{d, std::move(sizes), total}, xs);
}

Tensor stack(std::span<const Tensor> xs, int64_t dim) {
  if (xs.empty()) fail<ShapeError>("stack: no tensors; pass at least one");
  for (const Tensor& x : xs) detail::require_defined("stack", x);
  if (xs[0].dim() == max_rank)
    fail<ShapeError>("stack: {} already has {} dims, the most there can be; use cat", xs[0].describe(), max_rank);
  const int d = normalize_dim("stack", dim, xs[0].dim() + 1);
  Tensors rows;
  for (size_t i = 0; i < xs.size(); ++i) {
    if (xs[i].shape() != xs[0].shape())
      fail<ShapeError>("stack: shapes differ: input 0 is {}, input {} is {}; all must be equal", xs[0].describe(), i,
                       xs[i].describe());
    if (xs[i].dtype() != xs[0].dtype())
      fail<DTypeError>("stack: dtypes differ: input 0 is {}, input {} is {}; convert with to(x, DType::{})",
                       xs[0].describe(), i, xs[i].describe(), name_of(xs[0].dtype()));
    rows.push_back(unsqueeze(xs[i], d));
  }
  return cat(rows, d);
}

}  // namespace tapestry
