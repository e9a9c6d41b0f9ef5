// Checking indices with messages that say where the bad one lies, and the op that puts slices. Next: index.cpp.
#include "indices.h"

#include <algorithm>

#include "../autograd/parallel.h"
#include "error_text.h"

namespace tapestry::detail {

Tensor checked_indices(const char* op, const Tensor& index, int64_t n, bool wraps,
                       const std::function<std::string()>& target) {
  require_indices(op, index);
  Tensor result = dense(index.detach());
  const auto* at = result.data<int64_t>();
  const int64_t count = result.numel();
  bool negative = false;
  for (int64_t i = 0; i < count; ++i) {
    if (at[i] >= n || at[i] < (wraps ? -n : 0))
      fail<IndexError>("{}: index {} at {} is out of range for {}", op, at[i], place_of(index.shape(), i), target());
    negative = negative || at[i] < 0;
  }
  if (!negative) return result;
  result = clone(result);
  auto* wrapped = static_cast<int64_t*>(memory_of(result));
  for (int64_t i = 0; i < count; ++i) wrapped[i] += wrapped[i] < 0 ? n : 0;
  return result;
}

Tensor checked_along(const char* op, const Tensor& index, const Tensor& x, int dim, bool wraps) {
  return checked_indices(op, index, x.shape()[dim], wraps,
                         [&] { return fmt::format("dim {} of {}", dim, x.describe()); });
}

void check_fits(const char* op, const Tensor& x, int dim, const Tensor& index) {
  require_indices(op, index);
  bool fits = index.dim() == x.dim();
  for (int i = 0; i < x.dim() && fits; ++i) fits = i == dim || index.shape()[i] <= x.shape()[i];
  if (!fits)
    fail<ShapeError>("{}: index {} does not fit x {}; it needs x's rank and no size larger than x's outside dim {}", op,
                     index.describe(), x.describe(), dim);
}

void require_result_rank(const char* op, int rank) {
  if (rank > max_rank)
    fail<ShapeError>("{}: the result would have {} dims, at most {} are supported", op, rank, max_rank);
}

Tensor true_places(const Tensor& mask) {
  constexpr int64_t piece = 65536;
  const Tensor flags = dense(mask);
  const bool* flag = flags.data<bool>();
  const int64_t n = flags.numel(), pieces = (n + piece - 1) / piece;
  std::vector<int64_t> before(static_cast<size_t>(pieces) + 1);  // how many are true before each piece
  parallel_for(pieces, 1, [&](int64_t begin, int64_t end) {
    for (int64_t p = begin; p < end; ++p)
      before[static_cast<size_t>(p) + 1] = std::count(flag + p * piece, flag + std::min(n, (p + 1) * piece), true);
  });
  for (size_t p = 1; p < before.size(); ++p) before[p] += before[p - 1];
  const Tensor places = empty({before.back()}, DType::i64);
  auto* to = static_cast<int64_t*>(memory_of(places));
  parallel_for(pieces, 1, [&](int64_t begin, int64_t end) {
    for (int64_t p = begin; p < end; ++p) {
      int64_t* next = to + before[static_cast<size_t>(p)];
      const int64_t* last = to + before[static_cast<size_t>(p) + 1];
      for (int64_t i = p * piece; next < last; ++i) {  // without a branch on the flag, which nothing predicts
        *next = i;
        next += flag[i] ? 1 : 0;
      }
    }
  });
  return places;
}

Tensor zeros_view(const Shape& shape, DType dtype) { return expand(scalar(0, dtype), shape); }

}  // namespace tapestry::detail
