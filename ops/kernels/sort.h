// Order along dense rows: sorting, the best k, the k-th, and where values belong.
// Not their gradients (../sort.cpp), nor the one largest of a row, which is a reduction (reduce.h). Next: sort.cpp.
#pragma once

#include <cstdint>

#include "../../autograd/dtype.h"

namespace tapestry::kernels {

/// `rows` dense rows of n elements.
struct DenseRows {
  const void* data;
  DType dtype;
  int64_t rows, n;
};

// Everywhere: −0 equals 0, NaN is larger than every number, of equal elements the earlier comes first; `indices` are places in the row,
// `values` have x's dtype. Rows are cut over threads; one row belongs to one thread.

/// All of each row, ascending or descending; radix sort from 512 elements on.
void sort(const DenseRows& x, bool descending, void* values, int64_t* indices);
/// The k largest (or smallest) of each row, best first, into (rows, k); reads a row once.
void top(const DenseRows& x, int64_t k, bool largest, void* values, int64_t* indices);
/// The k-th smallest of each row, k from 0, into (rows); with `nan_wins` the first NaN where there is one.
void kth(const DenseRows& x, int64_t k, bool nan_wins, void* values, int64_t* indices);
/// The number of elements of an ascending row that are smaller than the value (with `right`: not larger). Row i of `values` belongs to row i of `sorted`, or
/// to its only one.
void searchsorted(const DenseRows& sorted, const DenseRows& values, bool right, int64_t* out);

}  // namespace tapestry::kernels
