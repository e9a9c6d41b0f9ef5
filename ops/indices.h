// What the ops that take tensors of indices share: checked indices, and the one primitive that puts slices.
// Next: indices.cpp.
#pragma once

#include <functional>
#include <string>

#include "ops.h"

namespace tapestry::detail {

// Note [Indices are inputs]: they get no gradient, but as saved inputs a write to them between forward and backward is noticed.

/// The indices, dense and in [0, n); with `wraps`, negative ones count from the end. IndexError naming the first bad one, where it lies, and `target`,
/// which says of what n is the size.
Tensor checked_indices(const char* op, const Tensor& index, int64_t n, bool wraps,
                       const std::function<std::string()>& target);
/// Indices along dim of x.
Tensor checked_along(const char* op, const Tensor& index, const Tensor& x, int dim, bool wraps);
/// ShapeError unless index has x's rank and is no larger than x outside dim.
void check_fits(const char* op, const Tensor& x, int dim, const Tensor& index);
/// (n) i64: row-major places of the elements of a bool tensor that are true.
Tensor true_places(const Tensor& mask);

/// A contiguous tensor around `dim`, as (outer, size, inner).
struct Around {
  int64_t outer = 1, size, inner = 1;
  Around(const Shape& shape, int dim) : size(shape[dim]) {
    for (int i = 0; i < dim; ++i) outer *= shape[i];
    for (int i = dim + 1; i < shape.rank(); ++i) inner *= shape[i];
  }
};

/// Zeros that cost one element of memory: what the adjoints add into is a copy of them.
Tensor zeros_view(const Shape& shape, DType dtype);
/// The memory of a tensor just made.
inline void* memory_of(const Tensor& fresh) { return const_cast<void*>(fresh.raw_data()); }

/// x (outer, size, inner) with slices src (outer, n, inner) in place of its slices at index (n, checked); of several that meet the last stays and takes
/// the gradient.
Tensor put_slices(const Tensor& x, const Tensor& index, const Tensor& src);
/// ShapeError where a result would have more dims than there can be.
void require_result_rank(const char* op, int rank);

}  // namespace tapestry::detail
