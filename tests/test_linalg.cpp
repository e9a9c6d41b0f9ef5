// Linear algebra beyond the rows of the op table: identities at sizes where LAPACK works in blocks, singular and repeated cases, batches, errors.
#include <algorithm>

#include "../autograd/parallel.h"
#include "../ops/kernels/lapack.h"
#include "op_checks.h"
#include "op_table/linalg_reference.h"

using namespace tapestry;
using namespace tapestry::testing;
using tapestry::op_table::reference::Mat;
namespace reference = tapestry::op_table::reference;

namespace {

double epsilon(DType dtype) { return dtype == DType::f64 ? 0x1p-52 : 0x1p-23; }

/// Symmetric with the given eigenvalues, and a basis that depends on the seed.
Tensor with_eigenvalues(const Tensor& values, uint64_t seed) {
  const int64_t n = values.size(-1);
  const Tensor q = qr(uniform({n, n}, seed, values.dtype()))[0];
  return matmul(q * unsqueeze(values, -2), mT(q));
}

Mat matrix_of(const Tensor& x) {
  Mat m(x.size(0), x.size(1));
  m.values = x.to_vector<double>();
  return m;
}

/// ∂det/∂a by definition: signed determinants of what is left without a row and a column.
std::vector<double> cofactors(const Mat& a) {
  std::vector<double> result;
  for (int64_t i = 0; i < a.rows; ++i)
    for (int64_t j = 0; j < a.cols; ++j) {
      Mat minor(a.rows - 1, a.cols - 1);
      for (int64_t r = 0; r < minor.rows; ++r)
        for (int64_t c = 0; c < minor.cols; ++c) minor(r, c) = a(r + (r >= i ? 1 : 0), c + (c >= j ? 1 : 0));
      result.push_back(((i + j) % 2 == 0 ? 1 : -1) * reference::determinant(minor));
    }
  return result;
}

}  // namespace

TEST_SUITE("linalg") {
  TEST_CASE("factors multiply to the matrix and are what they are called, up to sizes LAPACK does in blocks") {
    for (const DType dtype : {DType::f64, DType::f32})
      for (const auto& size : {std::pair{1, 1}, {2, 2}, {40, 40}, {150, 150}, {90, 40}, {40, 90}, {200, 3}, {3, 70}}) {
        const int64_t m = size.first, n = size.second;
        CAPTURE(m);
        CAPTURE(n);
        const double bound = 20 * static_cast<double>(std::max(m, n)) * epsilon(dtype);
        const Tensor a = uniform({2, m, n}, 1, dtype);
        const int64_t k = std::min(m, n);
        const Tensor one = expand(eye(k, dtype), {2, k, k});

        const auto [q, r] = qr(a);
        CHECK(difference(matmul(q, r), a) < bound);
        CHECK(difference(matmul(mT(q), q), one) < bound);
        CHECK(difference(triu(r), r) == 0);
        CHECK(min(diagonal(r)).item() >= 0);

        const auto [u, s, vt] = svd(a);
        CHECK(difference(matmul(u * unsqueeze(s, -2), vt), a) < bound);
        CHECK(difference(matmul(mT(u), u), one) < bound);
        CHECK(difference(matmul(vt, mT(vt)), one) < bound);
        CHECK(min(s).item() >= 0);
        if (k > 1) CHECK(max(slice(s, -1, 1, k) - slice(s, -1, 0, k - 1)).item() <= 0);
        if (m != n) continue;

        const Tensor spd = matmul(a, mT(a)) + eye(n, dtype);
        const Tensor l = cholesky(spd);
        CHECK(difference(matmul(l, mT(l)), spd) < n * bound);
        CHECK(difference(tril(l), l) == 0);
        const auto [values, v] = eigh(spd);
        CHECK(difference(matmul(v * unsqueeze(values, -2), mT(v)), spd) < n * bound);
        CHECK(difference(matmul(mT(v), v), one) < bound);

        const Tensor regular = a + 8.0 * std::sqrt(n) * eye(n, dtype), b = uniform({2, n, 5}, 2, dtype);
        CHECK(difference(matmul(regular, inverse(regular)), one) < bound);
        CHECK(difference(matmul(regular, solve(regular, b)), b) < bound);
        CHECK(difference(matmul(triu(regular), solve_triangular(regular, b, true)), b) < bound);
        const Tensor small = regular * (1.0 / n);  // a unit triangle of larger elements is far from regular
        CHECK(difference(matmul(tril(small, -1) + eye(n, dtype), solve_triangular(small, b, false, true)), b) < bound);
        const auto [sign, log_abs] = slogdet(regular);
        CHECK(difference(log_abs, sum(log(svd(regular)[1]), {-1})) < n * bound);
        CHECK(difference(sign, ones({2}, dtype)) == 0);
      }
  }

  TEST_CASE("eigenvalues, solutions and determinants of a matrix of 30 against rotations and elimination") {
    const Tensor a = uniform({30, 30}, 3), s = (a + mT(a)) * 0.5;
    const auto [values, vectors] = reference::jacobi(matrix_of(s));
    CHECK(difference(eigh(s)[0], from(values)) < 1e-12);
    Mat b = matrix_of(uniform({30, 2}, 4));
    const double d = reference::eliminate(matrix_of(a), b);
    CHECK(difference(solve(a, uniform({30, 2}, 4)), from(b.values, {30, 2})) < 1e-10);
    CHECK(det(a).item() == doctest::Approx(d).epsilon(1e-10));
    CHECK(slogdet(a)[0].item() * std::exp(slogdet(a)[1].item()) == doctest::Approx(d).epsilon(1e-10));
  }

  TEST_CASE("the gradient of det is the cofactors, at singular matrices, too") {
    for (const int64_t n : {1, 2, 3, 5, 9})
      for (const int64_t rank : {n, n - 1, n - 2, int64_t{0}}) {
        if (rank < 0) continue;
        CAPTURE(n);
        CAPTURE(rank);
        const Tensor a = matmul(uniform({n, rank}, 5), uniform({rank, n}, 6)).detach().requires_grad_();
        const Tensor g = grad({det(a)}, {a})[0];
        CHECK(difference(g, from(cofactors(matrix_of(a)), {n, n})) < 1e-13);
        if (n > 1 && n < 9 && rank > 0) {
          const auto first = gradcheck([](const Tensor& x) { return det(x); }, {a}, {.allow_zero = true});
          CHECK_MESSAGE(first.ok, first.message);
        }
        if (n == 9) continue;
        const auto second = gradgradcheck([](const Tensor& x) { return det(x); }, {a});
        CHECK_MESSAGE(second.ok, second.message);
      }
    // The Hessian of ad − bc does not depend on where it is taken.
    const Tensor zero = zeros({2, 2}, DType::f64).requires_grad_();
    const Tensor g = grad({det(zero)}, {zero}, {.create_graph = true})[0];
    CHECK(difference(grad({select(select(g, 0, 0), 0, 0)}, {zero})[0], tensor<double>({{0, 0}, {0, 1}})) == 0);
    const Tensor large = zeros({9, 9}, DType::f64).requires_grad_();
    CHECK(
        message<AutogradError>([&] {
          const Tensor first = grad({det(large)}, {large}, {.create_graph = true})[0];
          (void)grad({sum(first)}, {large});
        }) ==
        "det: its second derivative at a singular matrix ([9, 9] f64) is known up to size 8; add a multiple of eye(n)");
  }

  TEST_CASE("slogdet of a singular matrix is {0, −inf}; its gradient is refused unless it is left out") {
    const Tensor a = tensor<double>({{{2, 0}, {0, 3}}, {{1, 1}, {1, 1}}}).requires_grad_();
    const auto [sign, log_abs] = slogdet(a);
    CHECK(sign.to_vector<double>() == std::vector<double>{1, 0});
    CHECK(log_abs.to_vector<double>()[1] == -INFINITY);
    CHECK(message<AutogradError>([&] { sum(slogdet(a)[1]).backward(); }) ==
          "slogdet: in backward: matrix 1 of the batch ([2, 2, 2] f64) is singular, where ln|det| has no derivative; "
          "leave "
          "it out of the loss");
    const Tensor g = grad({select(slogdet(a)[1], 0, 0)}, {a})[0];
    CHECK(difference(g, tensor<double>({{{0.5, 0}, {0, 1.0 / 3}}, {{0, 0}, {0, 0}}})) < 1e-15);
  }

  TEST_CASE("eigh where values coincide: gradients of the values pass, of the vectors are refused, naming both") {
    const Tensor one = eye(3, DType::f64).requires_grad_();
    CHECK(difference(grad({sum(eigh(one)[0])}, {one})[0], eye(3, DType::f64)) < 1e-15);
    for (const DType dtype : {DType::f64, DType::f32}) {
      const Tensor pair = with_eigenvalues(to(tensor({1, 2, 2, 5}), dtype), 7);
      const Tensor batch =
          stack({with_eigenvalues(to(tensor({1, 2, 3, 4}), dtype), 8), pair}).detach().requires_grad_();
      const Tensor values = eigh(batch)[0];
      CHECK(std::isfinite(sum(grad({sum(square(values))}, {batch})[0]).item()));
      const std::string said = message<AutogradError>([&] { (void)grad({sum(square(eigh(batch)[1]))}, {batch}); });
      CHECK(said.starts_with("eigh: in backward: eigenvalues 1 and 2 of matrix 1 of the batch ([2, 4, 4] "));
      CHECK(said.ends_with("so their vectors have no derivative; use functions of the values alone, or separate them"));
      // The other matrix of the batch is not to blame.
      const Tensor g = grad({sum(square(select(eigh(batch)[1], 0, 0)) * uniform({4, 4}, 9, dtype))}, {batch})[0];
      CHECK(max(abs(select(g, 0, 1))).item() == 0);
      CHECK(max(abs(select(g, 0, 0))).item() > 0);
    }
  }

  TEST_CASE("svd where values coincide or are 0: gradients of the values pass, of the vectors are refused") {
    const Tensor one = eye(3, DType::f64).requires_grad_();
    CHECK(difference(grad({sum(svd(one)[1])}, {one})[0], eye(3, DType::f64)) < 1e-15);
    CHECK(message<AutogradError>([&] {
            (void)grad({sum(square(svd(one)[2]))}, {one});
          }).starts_with("svd: in backward: singular values 0 and 1 of the matrix ([3, 3] f64) coincide (1 and 1)"));
    const Tensor flat = matmul(uniform({4, 1}, 1), uniform({1, 2}, 2)).detach().requires_grad_();
    CHECK(std::isfinite(sum(grad({sum(svd(flat)[1])}, {flat})[0]).item()));
    CHECK(message<AutogradError>([&] {
            (void)grad({sum(square(svd(flat)[0]))}, {flat});
          }).starts_with("svd: in backward: singular value 1 of the matrix ([4, 2] f64) is 0"));
  }

  TEST_CASE("cholesky, eigh and solve_triangular read one triangle, and give it or a symmetric gradient") {
    const Tensor nans = triu(full({3, 3}, NAN, DType::f64), 1), s = with_eigenvalues(tensor<double>({1, 2, 4}), 3);
    const Tensor lower = where(isnan(nans), nans, s).detach().requires_grad_();
    CHECK(difference(cholesky(lower).detach(), cholesky(s)) == 0);
    CHECK(difference(eigh(lower)[0].detach(), eigh(s)[0]) == 0);
    CHECK(difference(solve_triangular(lower, ones({3}, DType::f64), false).detach(),
                     solve_triangular(s, ones({3}, DType::f64), false)) == 0);
    for (const Tensor& y :
         {sum(cholesky(lower) * uniform({3, 3}, 4)), sum(square(eigh(lower)[1]) * uniform({3, 3}, 5))}) {
      const Tensor g = grad({y}, {lower})[0];
      CHECK(difference(g, mT(g)) < 1e-14);
      CHECK(max(abs(g)).item() > 0);
    }
    const Tensor g = grad({sum(solve_triangular(lower, ones({3}, DType::f64), false))}, {lower})[0];
    CHECK(difference(tril(g), g) == 0);
  }

  TEST_CASE("batches broadcast on both sides, with gradients summed back") {
    const Tensor a = (uniform({3, 3}, 1) + 4.0 * eye(3, DType::f64)).detach().requires_grad_(),
                 b = leaf({2, 5, 3, 2}, 2);
    const Tensor many = expand(a, {2, 5, 3, 3}), w = uniform({2, 5, 3, 2}, 3);
    CHECK(difference(solve(a, b).detach(), solve(many, b).detach()) < 1e-15);
    const auto one = grad({sum(solve(a, b) * w)}, {a, b}), each = grad({sum(solve(many, b) * w)}, {a, b});
    CHECK(difference(one[0], each[0]) < 1e-13);
    CHECK(difference(one[1], each[1]) < 1e-15);
    const Tensor as = (uniform({4, 3, 3}, 4) + 4.0 * eye(3, DType::f64)).detach().requires_grad_(), v = leaf({3}, 5);
    CHECK(solve(as, v).shape() == Shape{4, 3});
    check_derivatives([](const Tensor& x, const Tensor& y) { return solve(x, y); }, {as, v});
    CHECK(message<ShapeError>([&] { (void)solve(as, b); }).starts_with("solve: cannot broadcast [4] with [2, 5]"));
    CHECK(message<ShapeError>([&] { (void)solve(a, scalar(1, DType::f64)); }) ==
          "solve: a is [3, 3] f64, b is [] f64; b must be a vector (n) or a matrix (…, n, k)");
  }

  TEST_CASE("dependent columns: qr factors them, and refuses their gradient") {
    const Tensor column = uniform({4, 1}, 1),
                 a = cat({column, 2.0 * column, uniform({4, 1}, 2)}, 1).detach().requires_grad_();
    const auto [q, r] = qr(a);
    CHECK(difference(matmul(q, r).detach(), a.detach()) < 1e-14);
    CHECK(difference(matmul(mT(q), q).detach(), eye(3, DType::f64)) < 1e-14);
    CHECK(message<AutogradError>([&] { (void)grad({sum(qr(a)[0])}, {a}); }).find("the columns are dependent") !=
          std::string::npos);
  }

  TEST_CASE("of several faults the first in the batch is named, whatever the threads") {
    const int before = num_threads();
    const Tensor a = expand(eye(40), {3, 20, 40, 40}).detach();
    const Tensor bad = clone(a);
    bad.view_of({1}, {1}, 25 * 1600).fill_(0);
    bad.view_of({1}, {1}, (51 * 1600) + 82).fill_(0);
    const Tensor nan = clone(a);
    nan.view_of({1}, {1}, (33 * 1600) + 41).fill_(NAN);
    for (const int threads : {1, 2, 4}) {
      set_num_threads(threads);
      CHECK(message<ValueError>([&] { (void)inverse(bad); }) ==
            "inverse: matrix [1, 5] of the batch ([3, 20, 40, 40] f32) is singular: pivot 0 is 0; use svd, or add a "
            "multiple of eye(n)");
      CHECK(message<ValueError>([&] { (void)cholesky(-a); }) ==
            "cholesky: matrix [0, 0] of the batch ([3, 20, 40, 40] f32) is not positive definite: its leading minor of "
            "size 1 is not positive; add a multiple of eye(n)");
      CHECK(message<ValueError>([&] { (void)svd(nan); }) ==
            "svd: matrix [1, 13] of the batch ([3, 20, 40, 40] f32) holds nan at [1, 1]; LAPACK needs finite numbers");
    }
    set_num_threads(before);
  }

  TEST_CASE("sizes LAPACK cannot count are refused before it is called") {
    constexpr int64_t huge = int64_t{1} << 31;
    float* none = nullptr;
    const auto refused = [&](auto&& call) {
      return message<ValueError>(call).find("are too many for LAPACK; at most 2147483647") != std::string::npos;
    };
    CHECK(refused([&] { kernels::solve<float>(0, huge, 1, none, none); }));
    CHECK(refused([&] { kernels::solve_triangular<float>(0, 1, huge, true, false, none, none); }));
    CHECK(refused([&] { kernels::cholesky<float>(0, huge, none); }));
    CHECK(refused([&] { kernels::qr<float>(0, huge, 1, none, none); }));
    CHECK(refused([&] { kernels::eigh<float>(0, 40000, none, none); }));  // its work space is 2n²
    CHECK(refused([&] { kernels::svd<float>(0, 30000, 30000, none, none, none, none); }));
    CHECK(refused([&] { kernels::determinant<float>(0, huge, none, none, none, none); }));
  }
}
