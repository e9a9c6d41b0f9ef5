// What the ops of linear algebra share: checks of matrices with their messages, and copies in the order LAPACK reads.
// Not part of the API: linalg.cpp and factorize.cpp include it.
// Next: linalg.cpp.
#pragma once

#include <string>

#include "kernels/lapack.h"
#include "ops.h"

namespace tapestry::detail {

/// ShapeError unless a has a matrix in its last two dims, DTypeError unless it is f32 or f64.
void require_matrices(const char* op, const Tensor& a);
/// The same, and ShapeError unless they are square.
void require_square(const char* op, const Tensor& a);

/// Calls f.operator()<T>() with float or double.
template <class F>
void dispatch_real(DType dtype, F&& f) {
  if (dtype == DType::f32)
    f.template operator()<float>();
  else
    f.template operator()<double>();
}

/// Product of the sizes before the last two.
int64_t batch_of(const Tensor& a);
/// A shape with other sizes for the last two dims.
Shape with_last_two(const Shape& shape, int64_t rows, int64_t columns);
/// A shape without its last `count` dims.
Shape without_last(Shape shape, int count);

/// Uninitialised memory whose last two dims lie column after column.
Tensor empty_columns(const Shape& shape, DType dtype);
/// A copy of x that lies so.
Tensor column_major(const Tensor& x);
/// The same of a part of x; ValueError naming the first NaN or infinity in it.
Tensor finite_columns(const char* op, const Tensor& x, kernels::Part part = kernels::Part::all);

/// "the matrix", "matrix 3 of the batch" or "matrix [0, 3] of the batch".
std::string place_in_batch(const Shape& shape, int64_t matrix);

/// x as a factor of the matrices of a batch: x[…, None, None], or beside columns x[…, None, :], or rows x[…, :, None].
inline Tensor per_matrix(const Tensor& x) { return unsqueeze(unsqueeze(x, -1), -1); }
inline Tensor per_column(const Tensor& x) { return unsqueeze(x, -2); }
inline Tensor per_row(const Tensor& x) { return unsqueeze(x, -1); }

}  // namespace tapestry::detail
