// Rows of linear algebra. Matrices are made regular inside the function, so that finite differences stay where the op is defined: a + 4 for
// systems, a symmetric part with a ladder of eigenvalues for cholesky and eigh. Of vectors without a sign only functions that do not see it.
#include "../../ops/ops.h"
#include "linalg_reference.h"
#include "op_table.h"

namespace tapestry::op_table {
namespace {

using reference::Mat;

constexpr const char* only_wide = "LAPACK computes in f32 and f64";
constexpr Bounds system_bounds = {1e-12, 4e-6, 0}, factor_bounds = {1e-11, 2e-5, 0};

constexpr double base = 4, step = 6;

/// x + 4: regular for elements up to 1, whose rows then add up to less than 4.
Tensor regular(const Tensor& x) { return x + base * eye(x.size(-1), x.dtype()); }
/// x + diag(6, 12, …), also for x of more rows than columns: singular values at least 1 apart.
Tensor laddered(const Tensor& x) {
  const int64_t m = x.size(-2), n = x.size(-1);
  const Tensor rungs = to(arange(m) + 1.0, x.dtype()) * step, square = eye(std::max(m, n), x.dtype());
  return x + unsqueeze(rungs, 1) * slice(slice(square, 0, 0, m), 1, 0, n);
}
Tensor symmetric(const Tensor& x) { return laddered((x + mT(x)) * 0.5); }

Mat regular_of(Mat a) {
  for (int64_t i = 0; i < a.rows; ++i) a(i, i) += base;
  return a;
}
Mat laddered_of(Mat a) {
  for (int64_t i = 0; i < std::min(a.rows, a.cols); ++i) a(i, i) += step * static_cast<double>(i + 1);
  return a;
}
Mat symmetric_of(const Mat& a) {
  Mat s = a;
  for (int64_t i = 0; i < a.rows; ++i)
    for (int64_t j = 0; j < a.rows; ++j) s(i, j) = (a(i, j) + a(j, i)) / 2;
  return laddered_of(s);
}

/// f(matrix of a, matrix of b) for every place of the batch; one matrix serves a whole batch of the other.
template <class F>
Array over_batch(const Array& a, const Array& b, Shape shape, F&& f) {
  const auto as = reference::matrices(a), bs = reference::matrices(b);
  Array y{std::move(shape), {}};
  const size_t count = as.empty() || bs.empty() ? 0 : std::max(as.size(), bs.size());
  for (size_t i = 0; i < count; ++i) {
    const Mat c = f(as[as.size() == 1 ? 0 : i], bs[bs.size() == 1 ? 0 : i]);
    y.values.insert(y.values.end(), c.values.begin(), c.values.end());
  }
  return y;
}
/// Several results of every matrix of a, of these shapes (without the batch).
template <class F>
Arrays each_matrix(const Array& a, std::initializer_list<Shape> shapes, F&& f) {
  Arrays ys;
  for (const Shape& last : shapes) {
    Shape shape = a.shape;
    shape.erase(shape.rank() - 1);
    shape.erase(shape.rank() - 1);
    for (const int64_t n : last) shape.push_back(n);
    ys.push_back({shape, {}});
  }
  for (const Mat& m : reference::matrices(a)) {
    const std::vector<Mat> results = f(m);
    for (size_t i = 0; i < ys.size(); ++i)
      ys[i].values.insert(ys[i].values.end(), results[i].values.begin(), results[i].values.end());
  }
  return ys;
}

Mat triangle(Mat a, bool upper, bool unit_diagonal) {
  for (int64_t i = 0; i < a.rows; ++i)
    for (int64_t j = 0; j < a.cols; ++j)
      if (i == j ? unit_diagonal : upper ? j < i : j > i) a(i, j) = i == j ? 1 : 0;
  return a;
}

template <class F>
Array solved(const Array& a, const Array& b, F&& matrix) {
  Array right = b;
  if (b.shape.rank() == 1) right.shape.push_back(1);
  const Array& longer = a.shape.rank() > right.shape.rank() ? a : right;
  Shape shape = longer.shape;
  shape[shape.rank() - 1] = right.size(-1);
  Array y = over_batch(a, right, shape, [&](const Mat& m, Mat x) {
    reference::eliminate(matrix(m), x);
    return x;
  });
  if (b.shape.rank() == 1) y.shape.erase(y.shape.rank() - 1);
  return y;
}

Mat squares(Mat a) {
  for (double& v : a.values) v *= v;
  return a;
}
Mat row_of(const std::vector<double>& values) {
  Mat m(1, static_cast<int64_t>(values.size()));
  m.values = values;
  return m;
}
/// a with column j multiplied by f(values[j]).
template <class F>
Mat scaled(Mat a, const std::vector<double>& values, F&& f) {
  for (int64_t i = 0; i < a.rows; ++i)
    for (int64_t j = 0; j < a.cols; ++j) a(i, j) *= f(values[static_cast<size_t>(j)]);
  return a;
}

std::array<Tensor, 3> signless_eigh(const Tensor& a) {
  const auto [values, v] = eigh(a);
  return {values, square(v), matmul(v * unsqueeze(sqrt(values), -2), mT(v))};
}
Arrays signless_eigh_of(const Array& a) {
  const int64_t n = a.size(-1);
  return each_matrix(a, {{n}, {n, n}, {n, n}}, [](const Mat& m) -> std::vector<Mat> {
    const auto [values, v] = reference::jacobi(symmetric_of(m));
    const Mat root = reference::product(scaled(v, values, [](double x) { return std::sqrt(x); }), transposed(v));
    return {row_of(values), squares(v), root};
  });
}

std::array<Tensor, 4> signless_svd(const Tensor& a) {
  const auto [u, s, vt] = svd(a);
  return {square(u), s, square(vt), matmul(u * unsqueeze(log1p(s), -2), vt)};
}
Arrays signless_svd_of(const Array& a) {
  const int64_t m = a.size(-2), n = a.size(-1), k = std::min(m, n);
  return each_matrix(a, {{m, k}, {k}, {k, n}, {m, n}}, [&](const Mat& given) -> std::vector<Mat> {
    // Of the smaller of aᵀa and aaᵀ: its eigenvectors are one factor, a times them the other.
    const Mat full = laddered_of(given), tall = m >= n ? full : transposed(full);
    auto [values, v] = reference::jacobi(reference::product(transposed(tall), tall));
    Mat right = v;
    for (int64_t j = 0; j < k; ++j)
      for (int64_t i = 0; i < k; ++i) right(i, j) = v(i, k - 1 - j);
    std::reverse(values.begin(), values.end());
    for (double& x : values) x = std::sqrt(x);
    const Mat left = scaled(reference::product(tall, right), values, [](double s) { return 1 / s; });
    const Mat u = m >= n ? left : right, w = m >= n ? right : left;
    const Mat logs = reference::product(scaled(u, values, [](double s) { return std::log1p(s); }), transposed(w));
    return {squares(u), row_of(values), squares(transposed(w)), logs};
  });
}

constexpr Input square_matrix(int64_t n) { return real(n, n).in(-1, 1); }
constexpr Input square_matrices(int64_t count, int64_t n) { return real(count, n, n).in(-1, 1); }

constexpr OpRow rows[] = {
    {.name = "solve",
     .fn = [](Args a) { return solve(regular(a[0]), a[1]); },
     .ref = [](const Arrays& a) { return solved(a[0], a[1], regular_of); },
     .samples = {{{square_matrix(3), real(3, 2)}},
                 {{square_matrices(2, 3), real(2, 3, 2)}},
                 {{square_matrix(3), real(3)}},
                 {{square_matrix(2), real(3, 2, 2)}},
                 {{square_matrices(2, 2), real(2, 1)}},
                 {{square_matrix(1), real(1, 1)}}},
     .empty = {{real(0, 3, 3), real(0, 3, 2)}},
     .large = {{real(64, 12, 12).in(-0.2, 0.2), real(64, 12, 20)}},
     .errors =
         {{[] {
             (void)solve(zeros({2, 3}), zeros({2, 1}));
           },
           "solve: [2, 3] f32 is not square (a.size(-2) = 2, a.size(-1) = 3); it needs as many rows as columns"},
          {[] {
             (void)solve(ones({4, 2, 2}) + eye(2) * tensor({1, 1, 0, 1}).view_of({4, 1, 1}, {1, 1, 1}, 0), ones({2}));
           },
           "solve: matrix 2 of the batch ([4, 2, 2] f32) is singular: pivot 1 is 0; use svd, or add a multiple of "
           "eye(n)"},
          {[] {
             (void)solve(eye(2, DType::bf16), zeros({2, 2}, DType::bf16));
           },
           "solve: LAPACK computes in f32 and f64, got [2, 2] bf16; convert with to(x, DType::f32)"}},
     .bounds = system_bounds,
     .no_bf16 = only_wide},
    {.name = "solve_triangular",
     .fn = [](Args a, const Params& p) { return solve_triangular(regular(a[0]), a[1], p.a != 0, p.b != 0); },
     .ref =
         [](const Arrays& a, const Params& p) {
           return solved(a[0], a[1], [&](const Mat& m) { return triangle(regular_of(m), p.a != 0, p.b != 0); });
         },
     .samples = {{{square_matrix(3), real(3, 2)}, {0, 0}},
                 {{square_matrix(3), real(3, 2)}, {1, 0}},
                 {{square_matrices(2, 3), real(2, 3, 2)}, {0, 1}},
                 {{square_matrix(3), real(3)}, {1, 1}}},
     .empty = {{real(0, 3, 3), real(0, 3, 2)}},
     .errors = {{[] {
                   (void)solve_triangular(tensor({{1, 0}, {5, 0}}), ones({2, 1}), false);
                 },
                 "solve_triangular: the matrix ([2, 2] f32) is singular: element 1 of its diagonal is 0"},
                {[] {
                   (void)solve_triangular(eye(2), ones({3, 1}), false);
                 },
                 "solve_triangular: sizes differ: a is [2, 2] f32, b is [3, 1] f32 (a.size(-1) = 2, b.size(-2) = 3)"}},
     .bounds = system_bounds,
     .no_bf16 = only_wide},
    {.name = "inverse",
     .fn = [](Args a) { return inverse(regular(a[0])); },
     .ref =
         [](const Arrays& a) {
           return each_matrix(a[0], {{a[0].size(-2), a[0].size(-1)}}, [](const Mat& m) -> std::vector<Mat> {
             Mat x = reference::identity(m.rows);
             reference::eliminate(regular_of(m), x);
             return {x};
           });
         },
     .samples = {{{square_matrix(3)}}, {{square_matrices(2, 2)}}, {{square_matrix(1)}}},
     .empty = {{real(0, 3, 3)}},
     .errors = {{[] {
                   (void)inverse(zeros({2, 2}));
                 },
                 "inverse: the matrix ([2, 2] f32) is singular: pivot 0 is 0"},
                {[] {
                   (void)inverse(full({1, 2, 2}, NAN));
                 },
                 "inverse: matrix 0 of the batch ([1, 2, 2] f32) holds nan at [0, 0]; LAPACK needs finite numbers"}},
     .bounds = system_bounds,
     .no_bf16 = only_wide},
    {.name = "cholesky",
     .fn = [](Args a) { return cholesky(symmetric(a[0])); },
     .ref =
         [](const Arrays& a) {
           return each_matrix(a[0], {{a[0].size(-2), a[0].size(-1)}},
                              [](const Mat& m) -> std::vector<Mat> { return {reference::cholesky(symmetric_of(m))}; });
         },
     .samples = {{{square_matrix(3)}}, {{square_matrices(2, 2)}}, {{square_matrix(1)}}},
     .empty = {{real(0, 3, 3)}},
     .errors =
         {{[] {
             (void)cholesky(tensor({{1, 0}, {2, 1}}));
           },
           "cholesky: the matrix ([2, 2] f32) is not positive definite: its leading minor of size 2 is not positive"},
          {[] { (void)cholesky(eye(2, DType::i64)); },
           "cholesky: LAPACK computes in f32 and f64, got [2, 2] i64; convert with to(x, DType::f32)"}},
     .bounds = system_bounds,
     .no_bf16 = only_wide},
    {.name = "qr",
     .fn = [](Args a) { return qr(laddered(a[0])); },
     .ref =
         [](const Arrays& a) {
           const int64_t m = a[0].size(-2), n = a[0].size(-1), k = std::min(m, n);
           return each_matrix(a[0], {{m, k}, {k, n}}, [&](const Mat& given) -> std::vector<Mat> {
             const Mat full = laddered_of(given);
             Mat first(m, k);
             for (int64_t i = 0; i < m; ++i)
               for (int64_t j = 0; j < k; ++j) first(i, j) = full(i, j);
             const Mat q = reference::gram_schmidt(first).first;
             Mat r = reference::product(transposed(q), full);
             for (int64_t i = 0; i < k; ++i)
               for (int64_t j = 0; j < i; ++j) r(i, j) = 0;
             return {q, r};
           });
         },
     .samples = {{{real(3, 2).in(-1, 1)}},
                 {{square_matrix(3)}},
                 {{real(2, 3, 2).in(-1, 1)}},
                 {{real(2, 3).in(-1, 1)}},
                 {{square_matrix(1)}}},
     .empty = {{real(0, 3, 2)}},
     .errors = {{[] { (void)qr(zeros({3})); }, "qr: [3] f32 is no matrix; it needs two dims"},
                {[] {
                   (void)sum(qr(ones({3, 2}).requires_grad_())[0]).backward();
                 },
                 "qr: in backward: the matrix of R ([2, 2] f32) has"}},
     .bounds = factor_bounds,
     .no_bf16 = only_wide},
    {.name = "eigh",
     .fn = [](Args a) { return signless_eigh(symmetric(a[0])); },
     .ref = [](const Arrays& a) { return signless_eigh_of(a[0]); },
     .samples = {{{square_matrix(3)}}, {{square_matrices(2, 2)}}, {{square_matrix(1)}}},
     .empty = {{real(0, 3, 3)}},
     .large = {{real(40, 10, 10).in(-0.2, 0.2)}},
     .errors =
         {{[] {
             (void)eigh(full({2, 2}, INFINITY));
           },
           "eigh: the matrix ([2, 2] f32) holds inf at [0, 0]; LAPACK needs finite numbers"},
          {[] { (void)sum(eigh(eye(2, DType::f64).requires_grad_())[1]).backward(); },
           "eigh: in backward: eigenvalues 0 and 1 of the matrix ([2, 2] f64) coincide (1 and 1), so their vectors "
           "have no derivative"}},
     .bounds = factor_bounds,
     .no_bf16 = only_wide},
    {.name = "svd",
     .fn = [](Args a) { return signless_svd(laddered(a[0])); },
     .ref = [](const Arrays& a) { return signless_svd_of(a[0]); },
     .samples = {{{real(3, 2).in(-1, 1)}},
                 {{square_matrix(3)}},
                 {{real(2, 3).in(-1, 1)}},
                 {{real(2, 3, 2).in(-1, 1)}},
                 {{square_matrix(1)}}},
     .empty = {{real(0, 3, 2)}},
     .large = {{real(40, 10, 8).in(-0.2, 0.2)}},
     .errors = {{[] {
                   (void)svd(zeros({2, 2}, DType::i64));
                 },
                 "svd: LAPACK computes in f32 and f64, got [2, 2] i64; convert with to(x, DType::f32)"},
                {[] {
                   (void)sum(svd(tensor({{2, 0}, {0, 0}}).requires_grad_())[0]).backward();
                 },
                 "svd: in backward: singular value 1 of the matrix ([2, 2] f32) is 0"}},
     .bounds = factor_bounds,
     .no_bf16 = only_wide},
    {.name = "det",
     .fn = [](Args a) { return det(a[0]); },
     .ref =
         [](const Arrays& a) {
           return each_matrix(a[0], {{}},
                              [](const Mat& m) -> std::vector<Mat> { return {row_of({reference::determinant(m)})}; });
         },
     .samples = {{{real(3, 3)}}, {{real(2, 4, 4)}}, {{real(2, 2)}}, {{real(1, 1)}}, {{real(9, 9).in(-1, 1)}}},
     .empty = {{real(0, 3, 3)}},
     .errors = {{[] {
                   (void)det(zeros({2, 3}));
                 },
                 "det: [2, 3] f32 is not square"}},
     .bounds = {1e-12, 1e-5, 0},
     .no_bf16 = only_wide,
     .no_expanded = "equal rows leave a 9 by 9 matrix of rank 1, whose determinant is its rounding"},
    {.name = "slogdet",
     .fn =
         [](Args a, const Params& p) {
           const auto [sign, log_abs] = slogdet(regular(a[0]) * (p.a == 0 ? 1.0 : -1.0));
           return sign * log_abs;
         },
     .ref =
         [](const Arrays& a, const Params& p) {
           return each_matrix(a[0], {{}}, [&](Mat m) -> std::vector<Mat> {
             m = regular_of(m);
             if (p.a != 0)
               for (double& x : m.values) x = -x;
             const double d = reference::determinant(m);
             return {row_of({d < 0 ? -std::log(-d) : std::log(d)})};
           });
         },
     .samples = {{{square_matrix(3)}, {0}}, {{square_matrix(3)}, {1}}, {{square_matrices(2, 2)}, {0}}},
     .empty = {{real(0, 3, 3)}},
     .errors = {{[] { (void)slogdet(zeros({3})); }, "slogdet: [3] f32 is no matrix; it needs two dims"},
                {[] {
                   (void)slogdet(ones({2, 2}).requires_grad_())[1].backward();
                 },
                 "slogdet: in backward: the matrix ([2, 2] f32) is singular, where ln|det| has no derivative"}},
     .bounds = system_bounds,
     .no_bf16 = only_wide},
};

}  // namespace

std::span<const OpRow> linalg_rows() { return rows; }

}  // namespace tapestry::op_table
