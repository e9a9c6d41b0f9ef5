// Reading, adding and putting at computed places: whole slices along a dim (index_select, embedding and their adjoint) and single elements (gather,
// scatter_add, scatter). Indices are checked before (ops/indices.h). Targets named twice are met in the order of the indices, whatever the thread count.
// Next: indexed.cpp.
#pragma once

#include "../../autograd/shape.h"

namespace tapestry::kernels {

/// y (outer, count, inner)[o][k] = x (outer, size, inner)[o][index[k]], all contiguous; index in [0, size).
void select_slices(DType dtype, const void* x, const int64_t* index, void* y, int64_t outer, int64_t size,
                   int64_t count, int64_t inner);

/// y (outer, size, inner)[o][index[k]] += src (outer, count, inner)[o][k], all contiguous, f32, f64 or i64. Each element has one owner: pieces are
/// cut over outer and inner, never over the indices.
void add_slices(DType dtype, void* y, const int64_t* index, const void* src, int64_t outer, int64_t size, int64_t count,
                int64_t inner);

/// The same with = in place of +=, for every dtype: the last of several that meet stays.
void put_slices(DType dtype, void* y, const int64_t* index, const void* src, int64_t outer, int64_t size, int64_t count,
                int64_t inner);

/// The same with the larger of both in place of the sum, f32, f64 or bf16; NaN wins.
void max_slices(DType dtype, void* y, const int64_t* index, const void* src, int64_t outer, int64_t size, int64_t count,
                int64_t inner);

/// y[i…] = x[i…] with the entry at `dim` replaced by index[i…]. y and index contiguous of `shape`; x with its strides in elements.
void gather_elements(DType dtype, const void* x, const Strides& x_strides, int dim, const int64_t* index,
                     const Shape& shape, void* y);

/// y[i…] with the entry at `dim` replaced by index[i…] += src[i…]. src and index contiguous of `shape`; f32, f64 or i64.
void add_elements(DType dtype, void* y, const Strides& y_strides, int dim, const int64_t* index, const Shape& shape,
                  const void* src);

/// The same with = in place of +=, for every dtype: the last in row-major order of several that meet stays.
void put_elements(DType dtype, void* y, const Strides& y_strides, int dim, const int64_t* index, const Shape& shape,
                  const void* src);

}  // namespace tapestry::kernels
