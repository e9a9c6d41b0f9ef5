// gemm.cpp: gemm.h on OpenBLAS, one BLAS thread per caller; how products are cut for the pool is decided here.
// Not a GEMM kernel of our own. Next: attention.cpp, its heaviest user.
#include "gemm.h"

#include <cblas.h>
#include <dlfcn.h>

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <mutex>

#include "../../autograd/error.h"
#include "../../autograd/parallel.h"
#include "scratch.h"

namespace tapestry::kernels {
namespace {

constexpr int64_t min_piece_macs = int64_t{1} << 20;
constexpr int64_t gemv_piece_macs = int64_t{1} << 17;

void blas_gemm(CBLAS_TRANSPOSE ta, CBLAS_TRANSPOSE tb, int m, int n, int k, float alpha, const float* a, int lda,
               const float* b, int ldb, float beta, float* c, int ldc) {
  cblas_sgemm(CblasRowMajor, ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
}
void blas_gemm(CBLAS_TRANSPOSE ta, CBLAS_TRANSPOSE tb, int m, int n, int k, double alpha, const double* a, int lda,
               const double* b, int ldb, double beta, double* c, int ldc) {
  cblas_dgemm(CblasRowMajor, ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
}
void blas_gemv(CBLAS_TRANSPOSE t, int m, int n, float alpha, const float* a, int lda, const float* x, int incx,
               float* y, int incy) {
  cblas_sgemv(CblasRowMajor, t, m, n, alpha, a, lda, x, incx, 1.0F, y, incy);
}
void blas_gemv(CBLAS_TRANSPOSE t, int m, int n, double alpha, const double* a, int lda, const double* x, int incx,
               double* y, int incy) {
  cblas_dgemv(CblasRowMajor, t, m, n, alpha, a, lda, x, incx, 1.0, y, incy);
}

template <class C>
void scale(int64_t m, int64_t n, C beta, C* c, int64_t ldc) {
  for (int64_t i = 0; i < m; ++i)
    for (int64_t j = 0; j < n; ++j) c[i * ldc + j] = beta == C(0) ? C(0) : beta * c[i * ldc + j];
}

template <class C>
void block(bool trans_a, bool trans_b, int64_t m, int64_t n, int64_t k, C alpha, const C* a, int64_t lda, const C* b,
           int64_t ldb, C beta, C* c, int64_t ldc) {
  if (m == 0 || n == 0) return;
  if (k == 0) return scale(m, n, beta, c, ldc);
  use_one_blas_thread();
  if (m == 1 || n == 1) {
    // A row times B is Bᵀ times the row; both are a matrix times a strided vector.
    if (beta != C(1)) scale(m, n, beta, c, ldc);
    const auto i = [](int64_t x) { return static_cast<int>(x); };
    if (n == 1) {
      const int step = i(trans_b ? 1 : ldb);
      if (trans_a) return blas_gemv(CblasTrans, i(k), i(m), alpha, a, i(lda), b, step, c, i(ldc));
      return blas_gemv(CblasNoTrans, i(m), i(k), alpha, a, i(lda), b, step, c, i(ldc));
    }
    const int step = i(trans_a ? lda : 1);
    if (trans_b) return blas_gemv(CblasNoTrans, i(n), i(k), alpha, b, i(ldb), a, step, c, 1);
    return blas_gemv(CblasTrans, i(k), i(n), alpha, b, i(ldb), a, step, c, 1);
  }
  blas_gemm(trans_a ? CblasTrans : CblasNoTrans, trans_b ? CblasTrans : CblasNoTrans, static_cast<int>(m),
            static_cast<int>(n), static_cast<int>(k), alpha, a, static_cast<int>(lda), b, static_cast<int>(ldb), beta,
            c, static_cast<int>(ldc));
}

// What BLAS reads: data, leading dimension, transposed or not.
template <class C>
struct Operand {
  const C* data;
  int64_t ld;
  bool trans;
};

struct LeftTag;
struct RightTag;
struct OutTag;

template <class Tag, class C, class T>
Operand<C> prepare(Matrix<T> x, int64_t rows, int64_t cols) {
  constexpr int64_t max_ld = std::numeric_limits<int>::max();
  if constexpr (std::is_same_v<T, C>) {
    const auto readable = [](int64_t n_lines, int64_t length, int64_t line_stride, int64_t stride) {
      return (stride == 1 || length == 1) && (n_lines == 1 || (line_stride >= length && line_stride <= max_ld));
    };
    if (readable(rows, cols, x.row_stride, x.col_stride)) return {x.data, rows == 1 ? cols : x.row_stride, false};
    if (readable(cols, rows, x.col_stride, x.row_stride)) return {x.data, cols == 1 ? rows : x.col_stride, true};
  }
  // Copied in the order that reads the shorter stride in the inner loop.
  const bool trans = std::abs(x.row_stride) < std::abs(x.col_stride);
  const int64_t lines = trans ? cols : rows, length = trans ? rows : cols;
  const int64_t line_stride = trans ? x.col_stride : x.row_stride, stride = trans ? x.row_stride : x.col_stride;
  C* copy = scratch<C, Tag>(lines * length);
  for (int64_t i = 0; i < lines; ++i) {
    const T* from = x.data + i * line_stride;
    C* to = copy + i * length;
    if (stride == 1)
      for (int64_t j = 0; j < length; ++j) to[j] = convert<C>(from[j]);
    else
      for (int64_t j = 0; j < length; ++j) to[j] = convert<C>(from[j * stride]);
  }
  return {copy, length, trans};
}

template <class In, class Out>
void piece(int64_t m, int64_t n, int64_t k, double alpha, Matrix<In> a, Matrix<In> b, double beta, Out* c,
           int64_t ldc) {
  using C = compute_t<Out>;
  if (k == 0) {  // keeps the operands' strides, which may be anything, away from BLAS
    for (int64_t i = 0; i < m; ++i)
      for (int64_t j = 0; j < n; ++j)
        c[i * ldc + j] = beta == 0 ? Out(0) : convert<Out>(C(beta) * convert<C>(c[i * ldc + j]));
    return;
  }
  const auto left = prepare<LeftTag, C>(a, m, k);
  const auto right = prepare<RightTag, C>(b, k, n);
  if constexpr (std::is_same_v<Out, C>) {
    block(left.trans, right.trans, m, n, k, C(alpha), left.data, left.ld, right.data, right.ld, C(beta), c, ldc);
  } else {
    C* wide = scratch<C, OutTag>(m * n);
    if (beta != 0)
      for (int64_t i = 0; i < m; ++i)
        for (int64_t j = 0; j < n; ++j) wide[i * n + j] = convert<C>(c[i * ldc + j]);
    block(left.trans, right.trans, m, n, k, C(alpha), left.data, left.ld, right.data, right.ld, C(beta), wide, n);
    for (int64_t i = 0; i < m; ++i)
      for (int64_t j = 0; j < n; ++j) c[i * ldc + j] = convert<Out>(wide[i * n + j]);
  }
}

template <>
void piece(int64_t m, int64_t n, int64_t k, double alpha, Matrix<int64_t> a, Matrix<int64_t> b, double beta, int64_t* c,
           int64_t ldc) {
  const auto factor = static_cast<int64_t>(alpha), keep = static_cast<int64_t>(beta);
  for (int64_t i = 0; i < m; ++i)
    for (int64_t j = 0; j < n; ++j) {
      int64_t sum = 0;
      for (int64_t l = 0; l < k; ++l)
        sum += a.data[i * a.row_stride + l * a.col_stride] * b.data[l * b.row_stride + j * b.col_stride];
      c[i * ldc + j] = factor * sum + (keep == 0 ? 0 : keep * c[i * ldc + j]);
    }
}

// Note [How a product is cut]
// By shape alone, so that bits do not depend on the threads: into four pieces, into more when they stay above 2^29
// multiply-adds, into fewer when they would fall below 2^20, where OpenBLAS switches to another kernel and packing
// outweighs the gain. Cuts are along rows and columns at multiples of 64 and never along k. Every piece packs its rows
// of A and columns of B again, so the evenest grid that packs least is taken.
struct Grid {
  int64_t rows = 1, cols = 1;          // pieces
  int64_t row_step = 1, col_step = 1;  // size of a piece
};

int64_t pieces_wanted(int64_t m, int64_t n, int64_t k) {
  int64_t pieces = 4;
  while (pieces < 64 && m * n / pieces * k > int64_t{1} << 29) pieces *= 2;
  return pieces;
}

Grid cut(int64_t m, int64_t n, int64_t k, int64_t wanted) {
  Grid best{1, 1, m, n};
  const bool vector = m == 1 || n == 1;
  const int64_t target = std::min(wanted, m * n * k / (vector ? gemv_piece_macs : min_piece_macs));
  double best_cost = std::numeric_limits<double>::infinity();
  for (int64_t rows = 1; rows <= target; ++rows) {
    if (target % rows != 0) continue;
    const auto step = [](int64_t size, int64_t pieces) { return ((size + pieces - 1) / pieces + 63) / 64 * 64; };
    Grid g;
    g.row_step = step(m, rows);
    g.col_step = step(n, target / rows);
    g.rows = (m + g.row_step - 1) / g.row_step;
    g.cols = (n + g.col_step - 1) / g.col_step;
    const double cost = 1e3 * static_cast<double>(std::min(g.row_step, m) * std::min(g.col_step, n)) +
                        static_cast<double>(g.cols * m + g.rows * n);
    if (cost < best_cost) best_cost = cost, best = g;
  }
  return best;
}

// The matrices of one batch index.
template <class In, class Out>
void move_to(const GemmBatch& batch, int64_t index, Matrix<In>& a, Matrix<In>& b, Out*& c) {
  for (int d = batch.shape.rank() - 1; d >= 0; --d) {
    const int64_t i = index % batch.shape[d];
    index /= batch.shape[d];
    a.data += i * batch.a[d];
    b.data += i * batch.b[d];
    c += i * batch.c[d];
  }
}

// A batch dim along which b repeats and the rows of a and c go on is more rows of one product.
template <class In>
void fold_rows(GemmBatch& batch, int64_t& m, Matrix<In> a, int64_t ldc) {
  while (!batch.shape.empty()) {
    const int d = batch.shape.rank() - 1;
    const bool folds =
        batch.shape[d] == 1 || (batch.b[d] == 0 && batch.a[d] == m * a.row_stride && batch.c[d] == m * ldc);
    if (!folds) return;
    m *= batch.shape[d];
    for (Dims* dims : {&batch.shape, &batch.a, &batch.b, &batch.c}) dims->erase(d);
  }
}

}  // namespace

// Note [One BLAS thread]
// OpenBLAS' pthread build has one global thread count; its OpenMP build follows the calling thread's OpenMP setting.
// Both are set to one, the second for every thread that comes by, and found at run time, because either build may stand
// behind the same library name.
void use_one_blas_thread() {
  thread_local const bool done = [] {
    static std::once_flag once;
    std::call_once(once, [] { openblas_set_num_threads(1); });
    if (void* symbol = dlsym(RTLD_DEFAULT, "omp_set_num_threads")) reinterpret_cast<void (*)(int)>(symbol)(1);
    return true;
  }();
  (void)done;
}

void gemm_block(bool trans_a, bool trans_b, int64_t m, int64_t n, int64_t k, float alpha, const float* a, int64_t lda,
                const float* b, int64_t ldb, float beta, float* c, int64_t ldc) {
  block(trans_a, trans_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
}
void gemm_block(bool trans_a, bool trans_b, int64_t m, int64_t n, int64_t k, double alpha, const double* a, int64_t lda,
                const double* b, int64_t ldb, double beta, double* c, int64_t ldc) {
  block(trans_a, trans_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
}

template <class In, class Out>
void gemm_batched(const GemmBatch& given, int64_t m, int64_t n, int64_t k, double alpha, Matrix<In> a, Matrix<In> b,
                  double beta, Out* c, int64_t ldc) {
  GemmBatch batch = given;
  const int64_t all = numel(batch.shape);
  if (all == 0 || m == 0 || n == 0) return;
  if (m > 1) fold_rows(batch, m, a, ldc);
  constexpr int64_t most = std::numeric_limits<int>::max();
  if (m > most || n > most || k > most || ldc > most)
    fail<ValueError>("matmul: a dim is too large for BLAS: m = {}, n = {}, k = {}, ldc = {}; at most {}", m, n, k, ldc,
                     most);
  const int64_t count = numel(batch.shape);
  const int64_t target = pieces_wanted(m, n, k);
  const Grid grid = cut(m, n, k, (target + count - 1) / count);
  const int64_t pieces = grid.rows * grid.cols;
  const int64_t macs = grid.row_step * grid.col_step * std::max<int64_t>(k, 1);
  const int64_t grain = std::max<int64_t>(1, std::min(min_piece_macs / macs, (count * pieces + 15) / 16));
  parallel_for(count * pieces, grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      Matrix<In> x = a, y = b;
      Out* z = c;
      move_to(batch, i / pieces, x, y, z);
      const int64_t row = i % pieces / grid.cols * grid.row_step, col = i % pieces % grid.cols * grid.col_step;
      x.data += row * x.row_stride;
      y.data += col * y.col_stride;
      piece(std::min(grid.row_step, m - row), std::min(grid.col_step, n - col), k, alpha, x, y, beta,
            z + row * ldc + col, ldc);
    }
  });
}

template <class In, class Out>
void gemm(int64_t m, int64_t n, int64_t k, double alpha, Matrix<In> a, Matrix<In> b, double beta, Out* c, int64_t ldc) {
  gemm_batched(GemmBatch{}, m, n, k, alpha, a, b, beta, c, ldc);
}

#define TAPESTRY_GEMM(In, Out)                                                                                     \
  template void gemm<In, Out>(int64_t, int64_t, int64_t, double, Matrix<In>, Matrix<In>, double, Out*, int64_t);   \
  template void gemm_batched<In, Out>(const GemmBatch&, int64_t, int64_t, int64_t, double, Matrix<In>, Matrix<In>, \
                                      double, Out*, int64_t);
TAPESTRY_GEMM(float, float)
TAPESTRY_GEMM(double, double)
TAPESTRY_GEMM(bf16, bf16)
TAPESTRY_GEMM(bf16, float)
TAPESTRY_GEMM(int64_t, int64_t)
#undef TAPESTRY_GEMM

}  // namespace tapestry::kernels
