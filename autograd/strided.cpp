// Choosing the order of the dims and merging neighbours. Next: tensor.h.
#include "strided.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "error.h"
#include "parallel.h"

namespace tapestry {

StridedLoop::StridedLoop(const Shape& full, std::span<const Strides> lists, std::span<const int64_t> sizes) {
  operands = static_cast<int>(lists.size());
  if (operands > max_operands)
    fail<ShapeError>("strided loop: {} operands, at most {} are supported", operands, max_operands);
  int order[max_rank];
  for (int i = 0; i < full.rank(); ++i)
    if (full[i] != 1) order[rank++] = i;
  // The output's strides fall from the outermost dim to the innermost; where it does not move, later operands decide.
  const auto outer_than = [&](int a, int b) {
    for (int k = 0; k < operands; ++k) {
      const int64_t sa = std::abs(lists[static_cast<size_t>(k)][a]), sb = std::abs(lists[static_cast<size_t>(k)][b]);
      if (sa != sb && sa != 0 && sb != 0) return sa > sb;
    }
    return a < b;
  };
  for (int i = 1; i < rank; ++i)
    for (int j = i; j > 0 && outer_than(order[j], order[j - 1]); --j) std::swap(order[j], order[j - 1]);

  int merged = 0;
  for (int i = 0; i < rank; ++i) {
    const int dim = order[i];
    bool joins = merged > 0;
    for (int k = 0; k < operands && joins; ++k)
      joins = strides[k][merged - 1] == full[dim] * lists[static_cast<size_t>(k)][dim] * sizes[static_cast<size_t>(k)];
    if (joins) {
      shape[merged - 1] *= full[dim];
    } else {
      shape[merged++] = full[dim];
    }
    for (int k = 0; k < operands; ++k)
      strides[k][merged - 1] = lists[static_cast<size_t>(k)][dim] * sizes[static_cast<size_t>(k)];
  }
  rank = merged;
  if (rank == 0) {
    rank = 1;
    shape[0] = 1;
  }
}

int64_t StridedLoop::outer() const {
  int64_t n = 1;
  for (int i = 0; i + 1 < rank; ++i) n *= shape[i];
  return n;
}

void StridedLoop::offsets(int64_t index, int64_t* out) const {
  std::fill_n(out, operands, int64_t{0});
  for (int i = rank - 2; i >= 0; --i) {
    const int64_t at = index % shape[i];
    index /= shape[i];
    for (int k = 0; k < operands; ++k) out[k] += at * strides[k][i];
  }
}

namespace {

template <class To, class From>
void copy_row(char* dst, int64_t dst_step, const char* src, int64_t src_step, int64_t n) {
  if (dst_step == sizeof(To) && src_step == sizeof(From)) {
    if constexpr (std::is_same_v<To, From>) {
      std::memcpy(dst, src, static_cast<size_t>(n) * sizeof(To));
    } else {
      auto* d = reinterpret_cast<To*>(dst);
      const auto* s = reinterpret_cast<const From*>(src);
      for (int64_t i = 0; i < n; ++i) d[i] = convert<To>(s[i]);
    }
    return;
  }
  for (int64_t i = 0; i < n; ++i)
    *reinterpret_cast<To*>(dst + i * dst_step) = convert<To>(*reinterpret_cast<const From*>(src + i * src_step));
}

// Note [Blocked copies]: where the source runs along another dim than the destination, tiles of tile x tile elements keep both in cache.
constexpr int64_t tile = 32, piece = 32768;

template <class To, class From>
void copy(const StridedLoop& loop, char* dst, const char* src) {
  const int64_t n = loop.inner(), outer = loop.outer();
  const int last = loop.rank - 1;
  const int64_t d1 = loop.strides[0][last], s1 = loop.strides[1][last];
  const bool crossed =
      loop.rank > 1 && std::abs(s1) > std::abs(loop.strides[1][last - 1]) && loop.strides[1][last - 1] != 0;
  if (!crossed) {
    if (outer == 1) {
      parallel_for(n, piece,
                   [&](int64_t b, int64_t e) { copy_row<To, From>(dst + b * d1, d1, src + b * s1, s1, e - b); });
      return;
    }
    parallel_for(outer, std::max<int64_t>(1, piece / std::max<int64_t>(n, 1)), [&](int64_t b, int64_t e) {
      for (int64_t i = b; i < e; ++i) {
        int64_t at[max_operands];
        loop.offsets(i, at);
        copy_row<To, From>(dst + at[0], d1, src + at[1], s1, n);
      }
    });
    return;
  }
  const int64_t rows = loop.shape[last - 1], d2 = loop.strides[0][last - 1], s2 = loop.strides[1][last - 1];
  const int64_t row_tiles = (rows + tile - 1) / tile;
  parallel_for(outer / std::max<int64_t>(rows, 1) * row_tiles,
               std::max<int64_t>(1, piece / (tile * std::max<int64_t>(n, 1))), [&](int64_t b, int64_t e) {
                 for (int64_t t = b; t < e; ++t) {
                   int64_t at[max_operands];
                   const int64_t first = t % row_tiles * tile, end = std::min(first + tile, rows);
                   loop.offsets(t / row_tiles * rows, at);
                   for (int64_t column = 0; column < n; column += tile)
                     for (int64_t row = first; row < end; ++row)
                       copy_row<To, From>(dst + at[0] + row * d2 + column * d1, d1,
                                          src + at[1] + row * s2 + column * s1, s1, std::min(tile, n - column));
                 }
               });
}

}  // namespace

void strided_copy(const Shape& shape, DType dst_type, void* dst, const Strides& dst_strides, DType src_type,
                  const void* src, const Strides& src_strides) {
  if (numel(shape) == 0) return;
  const Strides lists[] = {dst_strides, src_strides};
  const int64_t sizes[] = {size_of(dst_type), size_of(src_type)};
  const StridedLoop loop(shape, lists, sizes);
  dispatch(dst_type, [&]<class To> {
    dispatch(src_type,
             [&]<class From> { copy<To, From>(loop, static_cast<char*>(dst), static_cast<const char*>(src)); });
  });
}

}  // namespace tapestry
