// Matrix products on pointers, strides and sizes: C = alpha A B + beta C, one or a batch of them.
// Not here: shape rules and broadcasting (../matmul.cpp). The only kernel that sees cblas.h is gemm.cpp.
// Next: gemm.cpp.
#pragma once

#include <cstdint>

#include "../../autograd/dtype.h"
#include "../../autograd/shape.h"

namespace tapestry::kernels {

/// An operand: element (i, j) is data[i * row_stride + j * col_stride]. Any strides: a transposed view is read in
/// place, and what BLAS cannot read (no stride of 1, a stride of 0, a negative one) is copied piece by piece.
template <class T>
struct Matrix {
  const T* data;
  int64_t row_stride, col_stride;
};

/// Equally shaped products: sizes of the batch dims and, in elements, their strides in a, b (0 repeats a matrix) and c.
struct GemmBatch {
  Dims shape, a, b, c;
};

/// c (m, n) = alpha a (m, k) b (k, n) + beta c; c has unit column stride and ldc >= n. With beta = 0, c is not read.
///
/// (In, Out): (float, float), (double, double), (bf16, bf16), (bf16, float), (int64_t, int64_t). bf16 is widened,
/// accumulated in f32 over all of k and rounded once. Cut into pieces by shape alone, over rows and columns and never
/// over k: the bits do not depend on the threads. ValueError for a dim past 2^31 - 1.
template <class In, class Out>
void gemm(int64_t m, int64_t n, int64_t k, double alpha, Matrix<In> a, Matrix<In> b, double beta, Out* c, int64_t ldc);

/// The same for every index of `batch`, in one parallel loop.
template <class In, class Out>
void gemm_batched(const GemmBatch& batch, int64_t m, int64_t n, int64_t k, double alpha, Matrix<In> a, Matrix<In> b,
                  double beta, Out* c, int64_t ldc);

/// Keeps BLAS on the calling thread from now on (gemm.cpp, Note [One BLAS thread]): every kernel that calls it does so first.
void use_one_blas_thread();

/// One uncut product on the calling thread, for kernels that tile themselves: op(a) op(b), row-major, ld >= the row's
/// length.
void gemm_block(bool trans_a, bool trans_b, int64_t m, int64_t n, int64_t k, float alpha, const float* a, int64_t lda,
                const float* b, int64_t ldb, float beta, float* c, int64_t ldc);
void gemm_block(bool trans_a, bool trans_b, int64_t m, int64_t n, int64_t k, double alpha, const double* a, int64_t lda,
                const double* b, int64_t ldb, double beta, double* c, int64_t ldc);

}  // namespace tapestry::kernels
