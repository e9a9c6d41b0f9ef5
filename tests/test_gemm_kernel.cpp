// The GEMM kernel against naive loops in double: layouts, types, batches, zero sizes, and the same bits for every thread count.
// Not here: matmul of tensors (the op table). Next: test_attention_kernel.cpp.
#include "../ops/kernels/gemm.h"

#include "../autograd/error.h"
#include "kernel_reference.h"

using namespace tapestry;
using namespace tapestry::kernels;
using namespace tapestry::testing;

namespace {

struct Size {
  int64_t m, n, k;
};

enum class Layout { plain, transposed, padded, stepped, reversed, repeated_row };
constexpr Layout layouts[] = {Layout::plain,   Layout::transposed, Layout::padded,
                              Layout::stepped, Layout::reversed,   Layout::repeated_row};

// A matrix of any layout and the memory it lives in.
template <class T>
struct Stored {
  std::vector<T> memory;
  Matrix<T> view{};
  Stored(int64_t rows, int64_t cols, Layout layout, uint64_t seed)
      : memory(values<T>(rows * cols * 3 + rows * 5 + 8, seed)) {
    const T* p = memory.data();
    switch (layout) {
      case Layout::plain:
        view = {p, cols, 1};
        break;
      case Layout::transposed:
        view = {p, 1, rows};
        break;
      case Layout::padded:
        view = {p + 2, cols + 5, 1};
        break;
      case Layout::stepped:
        view = {p, 3 * cols, 3};
        break;
      case Layout::reversed:
        view = {p + std::max<int64_t>(rows * cols - 1, 0), -cols, -1};
        break;
      case Layout::repeated_row:
        view = {p, 0, 1};
        break;
    }
  }
};

template <class In, class Out>
std::vector<double> reference(Size s, double alpha, Matrix<In> a, Matrix<In> b, double beta,
                              const std::vector<Out>& c) {
  std::vector<double> out(static_cast<size_t>(s.m * s.n));
  for (int64_t i = 0; i < s.m; ++i)
    for (int64_t j = 0; j < s.n; ++j) {
      double sum = 0;
      for (int64_t l = 0; l < s.k; ++l)
        sum += to_double(a.data[i * a.row_stride + l * a.col_stride]) *
               to_double(b.data[l * b.row_stride + j * b.col_stride]);
      const auto at = static_cast<size_t>(i * s.n + j);
      out[at] = alpha * sum + (beta == 0 ? 0 : beta * to_double(c[at]));
    }
  return out;
}

template <class In, class Out>
double tolerance(Size s) {
  return epsilon<Out>() + (std::is_same_v<In, double> ? 0x1p-52 : 0x1p-23) * static_cast<double>(s.k + 2);
}

template <class In, class Out>
void check_all_layouts() {
  for (const Size s : {Size{1, 1, 1}, Size{3, 5, 7}, Size{1, 17, 33}, Size{17, 1, 33}, Size{33, 18, 65},
                       Size{16, 16, 0}, Size{0, 4, 3}, Size{4, 0, 3}, Size{66, 35, 97}})
    for (const Layout la : layouts)
      for (const Layout lb : layouts)
        for (const double beta : {0.0, 1.0, -2.0}) {
          const Stored<In> a(s.m, s.k, la, 1), b(s.k, s.n, lb, 2);
          auto c = values<Out>(s.m * s.n, 3);
          if constexpr (!std::is_same_v<Out, int64_t>)
            if (beta == 0) std::fill(c.begin(), c.end(), Out(NAN));
          const auto expected = reference(s, 2.0, a.view, b.view, beta, c);
          gemm(s.m, s.n, s.k, 2.0, a.view, b.view, beta, c.data(), s.n);
          CAPTURE(s.m);
          CAPTURE(s.n);
          CAPTURE(s.k);
          CAPTURE(static_cast<int>(la));
          CAPTURE(static_cast<int>(lb));
          CAPTURE(beta);
          CHECK(max_error(c, expected) <= 3 * tolerance<In, Out>(s));
        }
}

}  // namespace

TEST_SUITE("gemm_kernel") {
  TEST_CASE("every layout, type and beta agrees with loops in double") {
    check_all_layouts<float, float>();
    check_all_layouts<double, double>();
    check_all_layouts<bf16, bf16>();
    check_all_layouts<bf16, float>();
    check_all_layouts<int64_t, int64_t>();
  }

  TEST_CASE("a product that is cut agrees with loops in double and writes nothing beside c") {
    const Size s{193, 517, 150};
    const Stored<float> a(s.m, s.k, Layout::plain, 1), b(s.k, s.n, Layout::transposed, 2);
    const int64_t ldc = s.n + 3;
    std::vector<float> c(static_cast<size_t>(s.m * ldc), 7.0F), dense;
    gemm(s.m, s.n, s.k, 1.0, a.view, b.view, 0.0, c.data(), ldc);
    for (int64_t i = 0; i < s.m; ++i) {
      dense.insert(dense.end(), c.begin() + i * ldc, c.begin() + i * ldc + s.n);
      CHECK(std::all_of(c.begin() + i * ldc + s.n, c.begin() + (i + 1) * ldc, [](float x) { return x == 7.0F; }));
    }
    CHECK(max_error(dense, reference(s, 1.0, a.view, b.view, 0.0, dense)) <= 1e-5);
  }

  TEST_CASE("the bits do not depend on the number of threads") {
    // Steps of a training run, odd ones, ones just around the smallest piece, vectors.
    for (const Size s :
         {Size{768, 128, 128}, Size{768, 344, 128}, Size{128, 128, 768}, Size{129, 127, 131}, Size{1000, 65, 97},
          Size{65, 1000, 128}, Size{63, 2049, 64}, Size{512, 64, 64}, Size{1, 2000, 300}, Size{3000, 1, 200}})
      for (const Layout la : {Layout::plain, Layout::transposed})
        for (const Layout lb : {Layout::plain, Layout::transposed}) {
          CAPTURE(s.m);
          CAPTURE(s.n);
          CAPTURE(s.k);
          const Stored<float> a(s.m, s.k, la, 1), b(s.k, s.n, lb, 2);
          CHECK(same_for_all_threads([&] {
            std::vector<float> c(static_cast<size_t>(s.m * s.n), 0.5F);
            gemm(s.m, s.n, s.k, 1.0, a.view, b.view, 1.0, c.data(), s.n);
            return c;
          }));
        }
    const Stored<bf16> a(300, 200, Layout::plain, 1), b(200, 300, Layout::transposed, 2);
    CHECK(same_for_all_threads([&] {
      std::vector<bf16> c(300 * 300);
      gemm(300, 300, 200, 1.0, a.view, b.view, 0.0, c.data(), 300);
      return c;
    }));
  }

  TEST_CASE("batches repeat, permute and fold") {
    const Size s{5, 7, 9};
    const auto a = values<double>(6 * s.m * s.k, 1), b = values<double>(3 * s.k * s.n, 2);
    // Batch (2, 3): a dense, b repeated over the first dim, c stored with the batch dims exchanged.
    const GemmBatch batch{{2, 3}, {3 * s.m * s.k, s.m * s.k}, {0, s.k * s.n}, {s.m * s.n, 2 * s.m * s.n}};
    std::vector<double> c(static_cast<size_t>(6 * s.m * s.n));
    const Matrix<double> x{a.data(), s.k, 1}, y{b.data(), s.n, 1};
    gemm_batched(batch, s.m, s.n, s.k, 1.0, x, y, 0.0, c.data(), s.n);
    for (int64_t i = 0; i < 2; ++i)
      for (int64_t j = 0; j < 3; ++j) {
        const auto expected = reference(s, 1.0, Matrix<double>{a.data() + (i * 3 + j) * s.m * s.k, s.k, 1},
                                        Matrix<double>{b.data() + j * s.k * s.n, s.n, 1}, 0.0, c);
        const auto at = c.begin() + (j * 2 + i) * s.m * s.n;
        CHECK(max_error(std::vector<double>(at, at + s.m * s.n), expected) <= 1e-14);
      }
    // One b for all six: the rows fold into one product.
    const GemmBatch shared{{2, 3}, {3 * s.m * s.k, s.m * s.k}, {0, 0}, {3 * s.m * s.n, s.m * s.n}};
    gemm_batched(shared, s.m, s.n, s.k, 1.0, x, y, 0.0, c.data(), s.n);
    CHECK(max_error(c, reference({6 * s.m, s.n, s.k}, 1.0, x, y, 0.0, c)) <= 1e-14);
    gemm_batched(GemmBatch{{0}, {1}, {1}, {1}}, s.m, s.n, s.k, 1.0, x, y, 0.0, static_cast<double*>(nullptr), s.n);
  }

  TEST_CASE("many small products have the same bits for all thread counts") {
    const auto a = values<float>(50 * 64 * 32, 1), b = values<float>(50 * 64 * 32, 2);
    const GemmBatch batch{{50}, {64 * 32}, {64 * 32}, {64 * 64}};
    CHECK(same_for_all_threads([&] {
      std::vector<float> c(50 * 64 * 64);
      gemm_batched(batch, 64, 64, 32, 0.125, Matrix<float>{a.data(), 32, 1}, Matrix<float>{b.data(), 1, 32}, 0.0,
                   c.data(), 64);
      return c;
    }));
  }

  TEST_CASE("a dim past what BLAS can count is an error") {
    float x = 0;
    CHECK_THROWS_AS(gemm(int64_t{1} << 31, 1, 1, 1.0, Matrix<float>{&x, 0, 0}, Matrix<float>{&x, 0, 0}, 0.0, &x, 1),
                    ValueError);
  }
}
