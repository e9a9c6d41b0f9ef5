// lapack.cpp: lapack.h on LAPACKE, by the functions that take their work space, so that a batch allocates once a piece.
// Not a solver of our own, but for the cofactors. docs/adr/0003-lapack.md says why. Next: ../linalg.cpp.
#include "lapack.h"

#include <lapacke.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <mutex>
#include <vector>

#include "../../autograd/error.h"
#include "../../autograd/parallel.h"
#include "gemm.h"

namespace tapestry::kernels {
namespace {

constexpr int columns = LAPACK_COL_MAJOR;

/// A size as LAPACK counts it.
lapack_int narrow(const char* op, int64_t size) {
  constexpr int64_t most = std::numeric_limits<lapack_int>::max();
  if (size > most) fail<ValueError>("{}: {} numbers are too many for LAPACK; at most {}", op, size, most);
  return static_cast<lapack_int>(size);
}

lapack_int at_least_1(lapack_int n) { return std::max<lapack_int>(n, 1); }

/// The lowest matrix that failed, whichever thread met it first.
class Faults {
 public:
  void report(int64_t matrix, int64_t place) {
    const std::lock_guard lock(mutex_);
    if (!first_ || matrix < first_.matrix) first_ = {matrix, place};
  }
  [[nodiscard]] Fault first() const { return first_; }

 private:
  std::mutex mutex_;
  Fault first_;
};

/// Calls f(begin, end) over pieces of the batch, big enough for `work` multiply-adds a matrix.
template <class F>
void for_pieces(int64_t count, double work, F&& f) {
  const auto grain = static_cast<int64_t>(std::max(1.0, 65536 / std::max(work, 1.0)));
  parallel_for(count, grain, [&](int64_t begin, int64_t end) {
    use_one_blas_thread();
    f(begin, end);
  });
}

double cube(int64_t n) { return static_cast<double>(n) * static_cast<double>(n) * static_cast<double>(n); }

// One name for the functions of both types.
#define TAPESTRY_LAPACK(name)                             \
  template <class... A>                                   \
  lapack_int name(float, A... arguments) {                \
    return LAPACKE_s##name##_work(columns, arguments...); \
  }                                                       \
  template <class... A>                                   \
  lapack_int name(double, A... arguments) {               \
    return LAPACKE_d##name##_work(columns, arguments...); \
  }
TAPESTRY_LAPACK(getrf)
TAPESTRY_LAPACK(getrs)
TAPESTRY_LAPACK(trtrs)
TAPESTRY_LAPACK(potrf)
TAPESTRY_LAPACK(geqrf)
TAPESTRY_LAPACK(orgqr)
TAPESTRY_LAPACK(syevd)
TAPESTRY_LAPACK(gesdd)
#undef TAPESTRY_LAPACK

/// Sign of det and ln|det| by LU; a is destroyed.
template <class T>
void log_determinant(lapack_int n, T* a, lapack_int* pivots, T& sign, T& log_abs) {
  sign = 1;
  log_abs = 0;
  getrf(T(), n, n, a, at_least_1(n), pivots);
  for (int64_t i = 0; i < n; ++i) {
    const T u = a[i + i * n];
    if ((u < 0) != (pivots[i] != i + 1)) sign = -sign;
    if (u == 0) sign = 0;
    log_abs += std::log(std::abs(u));
  }
}

}  // namespace

template <class T>
Fault find_not_finite(int64_t count, int64_t m, int64_t n, Part part, const T* a) {
  for (int64_t b = 0; b < count; ++b)
    for (int64_t j = 0; j < n; ++j) {
      const T* column = a + (b * n + j) * m;
      const int64_t begin = part == Part::lower ? std::min(j, m) : 0,
                    end = part == Part::upper ? std::min(j + 1, m) : m;
      for (int64_t i = begin; i < end; ++i)
        if (!std::isfinite(column[i])) return {b, i + j * m};
    }
  return {};
}

template <class T>
Fault solve(int64_t count, int64_t n, int64_t k, T* a, T* b) {
  const lapack_int rows = narrow("solve", n), right = narrow("solve", k);
  Faults faults;
  for_pieces(count, cube(n), [&](int64_t begin, int64_t end) {
    std::vector<lapack_int> pivots(static_cast<size_t>(n));
    for (int64_t i = begin; i < end; ++i) {
      T* factors = a + i * n * n;
      const lapack_int zero = getrf(T(), rows, rows, factors, at_least_1(rows), pivots.data());
      if (zero > 0)
        faults.report(i, zero - 1);
      else
        getrs(T(), 'N', rows, right, factors, at_least_1(rows), pivots.data(), b + i * n * k, at_least_1(rows));
    }
  });
  return faults.first();
}

template <class T>
Fault solve_triangular(int64_t count, int64_t n, int64_t k, bool upper, bool unit_diagonal, const T* a, T* b) {
  const lapack_int rows = narrow("solve_triangular", n), right = narrow("solve_triangular", k);
  Faults faults;
  for_pieces(count, static_cast<double>(n) * static_cast<double>(n) * static_cast<double>(k),
             [&](int64_t begin, int64_t end) {
               for (int64_t i = begin; i < end; ++i) {
                 const lapack_int zero = trtrs(T(), upper ? 'U' : 'L', 'N', unit_diagonal ? 'U' : 'N', rows, right,
                                               a + i * n * n, at_least_1(rows), b + i * n * k, at_least_1(rows));
                 if (zero > 0) faults.report(i, zero - 1);
               }
             });
  return faults.first();
}

template <class T>
Fault cholesky(int64_t count, int64_t n, T* a) {
  const lapack_int rows = narrow("cholesky", n);
  Faults faults;
  for_pieces(count, cube(n), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      T* l = a + i * n * n;
      for (int64_t j = 1; j < n; ++j) std::fill(l + j * n, l + j * n + j, T(0));
      const lapack_int minor = potrf(T(), 'L', rows, l, at_least_1(rows));
      if (minor > 0) faults.report(i, minor - 1);
    }
  });
  return faults.first();
}

template <class T>
void qr(int64_t count, int64_t m, int64_t n, T* a, T* r) {
  const lapack_int rows = narrow("qr", m), cols = narrow("qr", n), space = narrow("qr", 64 * std::max<int64_t>(n, 1));
  for_pieces(count, static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(n),
             [&](int64_t begin, int64_t end) {
               std::vector<T> scales(static_cast<size_t>(n)), work(static_cast<size_t>(space));
               for (int64_t b = begin; b < end; ++b) {
                 T *q = a + b * m * n, *to = r + b * n * n;
                 geqrf(T(), rows, cols, q, at_least_1(rows), scales.data(), work.data(), space);
                 for (int64_t j = 0; j < n; ++j)
                   for (int64_t i = 0; i < n; ++i) to[i + j * n] = i <= j ? q[i + j * m] : T(0);
                 orgqr(T(), rows, cols, cols, q, at_least_1(rows), scales.data(), work.data(), space);
                 for (int64_t i = 0; i < n; ++i) {  // the sign of row i of R and column i of Q
                   if (!(to[i + i * n] < 0)) continue;
                   for (int64_t j = i; j < n; ++j) to[i + j * n] = -to[i + j * n];
                   for (int64_t k = 0; k < m; ++k) q[k + i * m] = -q[k + i * m];
                 }
               }
             });
}

template <class T>
Fault eigh(int64_t count, int64_t n, T* a, T* values) {
  const lapack_int rows = narrow("eigh", n), space = narrow("eigh", 1 + 6 * n + 2 * n * n),
                   integers = narrow("eigh", 3 + 5 * n);
  Faults faults;
  for_pieces(count, 8 * cube(n), [&](int64_t begin, int64_t end) {
    std::vector<T> work(static_cast<size_t>(space));
    std::vector<lapack_int> iwork(static_cast<size_t>(integers));
    for (int64_t i = begin; i < end; ++i) {
      const lapack_int left = syevd(T(), 'V', 'L', rows, a + i * n * n, at_least_1(rows), values + i * n, work.data(),
                                    space, iwork.data(), integers);
      if (left > 0) faults.report(i, left);
    }
  });
  return faults.first();
}

template <class T>
Fault svd(int64_t count, int64_t m, int64_t n, T* a, T* u, T* s, T* vt) {
  const int64_t k = std::min(m, n);
  // Documented minimum for jobz = 'S', and room for blocks of 64.
  const lapack_int rows = narrow("svd", m), cols = narrow("svd", n), least = at_least_1(static_cast<lapack_int>(k)),
                   space = narrow("svd", 4 * k * k + 7 * k + 64 * (m + n) + 64);
  Faults faults;
  for_pieces(count, 16 * static_cast<double>(m) * static_cast<double>(n) * static_cast<double>(k),
             [&](int64_t begin, int64_t end) {
               std::vector<T> work(static_cast<size_t>(space));
               std::vector<lapack_int> iwork(static_cast<size_t>(8 * k));
               for (int64_t i = begin; i < end; ++i) {
                 const lapack_int left =
                     gesdd(T(), 'S', rows, cols, a + i * m * n, at_least_1(rows), s + i * k, u + i * m * k,
                           at_least_1(rows), vt + i * k * n, least, work.data(), space, iwork.data());
                 if (left > 0) faults.report(i, left);
               }
             });
  return faults.first();
}

template <class T>
void determinant(int64_t count, int64_t n, T* a, T* det, T* sign, T* log_abs) {
  const lapack_int rows = narrow("det", n);
  for_pieces(count, cube(n), [&](int64_t begin, int64_t end) {
    std::vector<lapack_int> pivots(static_cast<size_t>(n));
    for (int64_t b = begin; b < end; ++b) {
      T *lu = a + b * n * n, s = 1, l = 0;
      log_determinant(rows, lu, pivots.data(), s, l);
      if (sign != nullptr) sign[b] = s;
      if (log_abs != nullptr) log_abs[b] = l;
      if (det == nullptr) continue;
      det[b] = s < 0 ? T(-1) : T(1);
      for (int64_t i = 0; i < n; ++i) det[b] *= std::abs(lu[i + i * n]);
    }
  });
}

// Note [Cofactors by singular values]
// With a = U S Vᵀ the cofactors are det(U) det(V) · U diag(Π_{j≠i} s_j) Vᵀ: no division, so a singular a is like any other. U and V are
// orthogonal: their determinants are the signs.
template <class T>
Fault cofactors(int64_t count, int64_t n, T* a) {
  const auto size = static_cast<size_t>(n * n);
  Faults faults;
  for_pieces(count, 16 * cube(n), [&](int64_t begin, int64_t end) {
    std::vector<T> u(size), vt(size), copy(size), s(static_cast<size_t>(n)), before(static_cast<size_t>(n) + 1, T(1));
    std::vector<lapack_int> pivots(static_cast<size_t>(n));
    for (int64_t b = begin; b < end; ++b) {
      T* c = a + b * n * n;
      if (const Fault fault = svd(1, n, n, c, u.data(), s.data(), vt.data())) {
        faults.report(b, fault.place);
        continue;
      }
      T sign_u = 1, sign_v = 1, unused = 0;
      copy = u;
      log_determinant(static_cast<lapack_int>(n), copy.data(), pivots.data(), sign_u, unused);
      copy = vt;
      log_determinant(static_cast<lapack_int>(n), copy.data(), pivots.data(), sign_v, unused);
      for (size_t i = 0; i < s.size(); ++i) before[i + 1] = before[i] * s[i];
      T after = sign_u * sign_v;
      for (int64_t i = n; i-- > 0;) {
        const T factor = before[static_cast<size_t>(i)] * after;
        after *= s[static_cast<size_t>(i)];
        for (int64_t j = 0; j < n; ++j) u[static_cast<size_t>(j + i * n)] *= factor;
      }
      // Columns after columns are the rows of the transposed: cᵀ = (vt)ᵀ uᵀ.
      gemm_block(false, false, n, n, n, T(1), vt.data(), n, u.data(), n, T(0), c, n);
    }
  });
  return faults.first();
}

#define TAPESTRY_LAPACK(T)                                                                 \
  template Fault find_not_finite<T>(int64_t, int64_t, int64_t, Part, const T*);            \
  template Fault solve<T>(int64_t, int64_t, int64_t, T*, T*);                              \
  template Fault solve_triangular<T>(int64_t, int64_t, int64_t, bool, bool, const T*, T*); \
  template Fault cholesky<T>(int64_t, int64_t, T*);                                        \
  template void qr<T>(int64_t, int64_t, int64_t, T*, T*);                                  \
  template Fault eigh<T>(int64_t, int64_t, T*, T*);                                        \
  template Fault svd<T>(int64_t, int64_t, int64_t, T*, T*, T*, T*);                        \
  template void determinant<T>(int64_t, int64_t, T*, T*, T*, T*);                          \
  template Fault cofactors<T>(int64_t, int64_t, T*);
TAPESTRY_LAPACK(float)
TAPESTRY_LAPACK(double)
#undef TAPESTRY_LAPACK

}  // namespace tapestry::kernels
