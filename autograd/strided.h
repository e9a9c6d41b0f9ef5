// Walks several strided operands of one shape as few long inner loops.
// Pointers and sizes only: kernels use it, and it knows no Tensor.
// Next: tensor.h.
#pragma once

#include <cstdint>
#include <span>

#include "dtype.h"
#include "shape.h"

namespace tapestry {

inline constexpr int max_operands = 8;

/// A common shape and, per operand, byte strides; dims of size 1 dropped, neighbours merged where every operand allows, and the dims ordered
/// so that the first operand (the output) moves least in the innermost. `shape[rank-1]` is the inner loop. Rank is at least 1.
struct StridedLoop {
  int rank = 0, operands = 0;
  int64_t shape[max_rank] = {};
  int64_t strides[max_operands][max_rank] = {};  ///< bytes

  /// `strides[k]` in elements of `sizes[k]` bytes, one list per operand. ShapeError for more than max_operands.
  StridedLoop(const Shape& shape, std::span<const Strides> strides, std::span<const int64_t> sizes);

  [[nodiscard]] int64_t inner() const { return shape[rank - 1]; }
  [[nodiscard]] int64_t outer() const;
  /// Byte offsets of every operand at outer index i (row-major over all dims but the inner one).
  void offsets(int64_t i, int64_t* out) const;
};

/// dst[...] = convert(src[...]) over `shape`, any strides (in elements), any dtypes. Blocked where the two run across each other. Uses the pool.
/// dst must not overlap src except exactly.
void strided_copy(const Shape& shape, DType dst_type, void* dst, const Strides& dst_strides, DType src_type,
                  const void* src, const Strides& src_strides);

}  // namespace tapestry
