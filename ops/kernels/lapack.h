// Linear algebra on batches of matrices, through LAPACK: triangular and general systems, factorisations, eigenvalues.
// Not here: shapes, copies and messages (ops/linalg.cpp). The only kernel that sees lapacke.h is lapack.cpp.
// Next: lapack.cpp.
#pragma once

#include <cstdint>

namespace tapestry::kernels {

/// `count` matrices, one after the other, each stored column after column: element (i, j) of an (m, n) matrix is
/// data[i + j * m]. Every matrix is computed by one thread, so that the bits do not depend on the threads.
/// T is float or double. Sizes past what LAPACK's 32-bit integers count are a ValueError.

/// The first matrix of a batch that could not be computed, and LAPACK's word on it: the place (from 0) of a zero pivot or
/// of the minor that is not positive, the number of values that did not converge.
struct Fault {
  int64_t matrix = -1, place = 0;
  explicit operator bool() const { return matrix >= 0; }
};

enum class Part : uint8_t { all, lower, upper };

/// The first element of a part of (n, n) or (m, n) matrices that is infinite or NaN: `place` is i + j * m.
template <class T>
Fault find_not_finite(int64_t count, int64_t m, int64_t n, Part part, const T* a);

/// b (n, k) becomes a⁻¹b; a (n, n) is overwritten by its factors P L U.
template <class T>
Fault solve(int64_t count, int64_t n, int64_t k, T* a, T* b);

/// The same for a triangular a, reading one triangle.
template <class T>
Fault solve_triangular(int64_t count, int64_t n, int64_t k, bool upper, bool unit_diagonal, const T* a, T* b);

/// The lower triangle of a becomes L with L Lᵀ = a, the upper one zero.
template <class T>
Fault cholesky(int64_t count, int64_t n, T* a);

/// a (m, n), m ≥ n, becomes Q (m, n) with orthonormal columns; r (n, n) is upper triangular with a diagonal ≥ 0.
template <class T>
void qr(int64_t count, int64_t m, int64_t n, T* a, T* r);

/// a, of which the lower triangle is read, becomes its eigenvectors in columns; values (n) ascend.
template <class T>
Fault eigh(int64_t count, int64_t n, T* a, T* values);

/// a (m, n) = u (m, k) diag(s) vt (k, n), k = min(m, n), s descending; a is destroyed.
template <class T>
Fault svd(int64_t count, int64_t m, int64_t n, T* a, T* u, T* s, T* vt);

/// det a = sign · e^log_abs; a is destroyed. A singular matrix gives 0 and −inf. det, sign and log_abs hold one number a
/// matrix and may be null.
template <class T>
void determinant(int64_t count, int64_t n, T* a, T* det, T* sign, T* log_abs);

/// a becomes its matrix of cofactors, ∂det a/∂a, also where a is singular.
template <class T>
Fault cofactors(int64_t count, int64_t n, T* a);

}  // namespace tapestry::kernels
