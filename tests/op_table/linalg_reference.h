// Textbook linear algebra in double: elimination, Cholesky's loops, Gram and Schmidt, Jacobi's rotations. Nothing of LAPACK or of ops/.
// Not fast. Next: linalg_rows.cpp.
#pragma once

#include <algorithm>
#include <cmath>
#include <tuple>
#include <utility>

#include "reference.h"

namespace tapestry::op_table::reference {

/// One matrix of doubles.
struct Mat {
  int64_t rows = 0, cols = 0;
  std::vector<double> values;
  Mat(int64_t m, int64_t n) : rows(m), cols(n), values(static_cast<size_t>(m * n)) {}
  double& operator()(int64_t i, int64_t j) { return values[static_cast<size_t>(i * cols + j)]; }
  double operator()(int64_t i, int64_t j) const { return values[static_cast<size_t>(i * cols + j)]; }
};

inline Mat transposed(const Mat& a) {
  Mat t(a.cols, a.rows);
  for (int64_t i = 0; i < a.rows; ++i)
    for (int64_t j = 0; j < a.cols; ++j) t(j, i) = a(i, j);
  return t;
}

inline Mat product(const Mat& a, const Mat& b) {
  Mat c(a.rows, b.cols);
  for (int64_t i = 0; i < a.rows; ++i)
    for (int64_t j = 0; j < b.cols; ++j)
      for (int64_t k = 0; k < a.cols; ++k) c(i, j) += a(i, k) * b(k, j);
  return c;
}

inline Mat identity(int64_t n) {
  Mat one(n, n);
  for (int64_t i = 0; i < n; ++i) one(i, i) = 1;
  return one;
}

/// A⁻¹b by Gauss and Jordan's elimination with the largest pivots; returns the determinant.
inline double eliminate(Mat a, Mat& b) {
  double det = 1;
  for (int64_t k = 0; k < a.rows; ++k) {
    int64_t p = k;
    for (int64_t i = k; i < a.rows; ++i)
      if (std::abs(a(i, k)) > std::abs(a(p, k))) p = i;
    if (a(p, k) == 0) return 0;
    for (int64_t j = 0; j < a.cols; ++j) std::swap(a(k, j), a(p, j));
    for (int64_t j = 0; j < b.cols; ++j) std::swap(b(k, j), b(p, j));
    det *= p == k ? a(k, k) : -a(k, k);
    for (int64_t i = 0; i < a.rows; ++i) {
      if (i == k) continue;
      const double f = a(i, k) / a(k, k);
      for (int64_t j = k; j < a.cols; ++j) a(i, j) -= f * a(k, j);
      for (int64_t j = 0; j < b.cols; ++j) b(i, j) -= f * b(k, j);
    }
  }
  for (int64_t i = 0; i < b.rows; ++i)
    for (int64_t j = 0; j < b.cols; ++j) b(i, j) /= a(i, i);
  return det;
}

inline double determinant(const Mat& a) {
  Mat none(a.rows, 0);
  return eliminate(a, none);
}

inline Mat cholesky(const Mat& a) {
  Mat l(a.rows, a.rows);
  for (int64_t i = 0; i < a.rows; ++i)
    for (int64_t j = 0; j <= i; ++j) {
      double s = a(i, j);
      for (int64_t k = 0; k < j; ++k) s -= l(i, k) * l(j, k);
      l(i, j) = i == j ? std::sqrt(s) : s / l(j, j);
    }
  return l;
}

/// Q of the columns of a by Gram and Schmidt, each column cleaned twice; R = QᵀA.
inline std::pair<Mat, Mat> gram_schmidt(const Mat& a) {
  Mat q = a, r(a.cols, a.cols);
  for (int64_t j = 0; j < a.cols; ++j) {
    for (int pass = 0; pass < 2; ++pass)
      for (int64_t k = 0; k < j; ++k) {
        double s = 0;
        for (int64_t i = 0; i < a.rows; ++i) s += q(i, k) * q(i, j);
        for (int64_t i = 0; i < a.rows; ++i) q(i, j) -= s * q(i, k);
        r(k, j) += s;
      }
    double s = 0;
    for (int64_t i = 0; i < a.rows; ++i) s += q(i, j) * q(i, j);
    r(j, j) = std::sqrt(s);
    for (int64_t i = 0; i < a.rows; ++i) q(i, j) /= r(j, j);
  }
  return {q, r};
}

/// Eigenvalues, ascending, and eigenvectors in columns by Jacobi's rotations.
inline std::pair<std::vector<double>, Mat> jacobi(Mat a) {
  const int64_t n = a.rows;
  Mat v = identity(n);
  for (int sweep = 0; sweep < 20; ++sweep)
    for (int64_t p = 0; p < n; ++p)
      for (int64_t q = p + 1; q < n; ++q) {
        if (a(p, q) == 0) continue;
        const double angle = 0.5 * std::atan2(2 * a(p, q), a(q, q) - a(p, p)), c = std::cos(angle), s = std::sin(angle);
        const auto turn = [&](double& x, double& y) { std::tie(x, y) = std::pair{c * x - s * y, s * x + c * y}; };
        for (int64_t i = 0; i < n; ++i) turn(a(i, p), a(i, q));
        for (int64_t j = 0; j < n; ++j) turn(a(p, j), a(q, j));
        for (int64_t i = 0; i < n; ++i) turn(v(i, p), v(i, q));
      }
  std::vector<int64_t> order;
  for (int64_t i = 0; i < n; ++i) order.push_back(i);
  std::sort(order.begin(), order.end(), [&](int64_t i, int64_t j) { return a(i, i) < a(j, j); });
  std::vector<double> values;
  Mat sorted(n, n);
  for (int64_t j = 0; j < n; ++j) {
    const int64_t from = order[static_cast<size_t>(j)];
    values.push_back(a(from, from));
    for (int64_t i = 0; i < n; ++i) sorted(i, j) = v(i, from);
  }
  return {values, sorted};
}

/// The matrices of an array, one after the other.
inline std::vector<Mat> matrices(const Array& a) {
  const int64_t m = a.size(-2), n = a.size(-1),
                count = m * n == 0 ? 0 : static_cast<int64_t>(a.values.size()) / (m * n);
  std::vector<Mat> list;
  for (int64_t b = 0; b < count; ++b) {
    Mat x(m, n);
    std::copy_n(a.values.begin() + b * m * n, m * n, x.values.begin());
    list.push_back(std::move(x));
  }
  return list;
}

}  // namespace tapestry::op_table::reference
