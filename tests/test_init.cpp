// Moments and bounds of the initialisers against the truncated normal's formulas, and that values depend on seed and
// call alone. Not here: the generator (test_random.cpp). Next: ../nn/init.h.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>

#include "../autograd/error.h"
#include "../autograd/factory.h"
#include "../autograd/parallel.h"
#include "../nn/embedding.h"
#include "../nn/init.h"
#include "../nn/linear.h"

using namespace tapestry;

namespace {

struct Moments {
  double mean, std, low, high;
};
Moments moments(const Tensor& t) {
  const std::vector<double> v = t.to_vector<double>();
  const auto n = static_cast<double>(v.size());
  const double mean = std::accumulate(v.begin(), v.end(), 0.0) / n;
  double square = 0;
  for (const double x : v) square += (x - mean) * (x - mean);
  return {mean, std::sqrt(square / n), *std::min_element(v.begin(), v.end()), *std::max_element(v.begin(), v.end())};
}

/// Deviation of a normal of deviation s cut at ±c: s²(1 − 2aφ(a)/(2Φ(a) − 1)) with a = c/s.
double cut_deviation(double s, double c) {
  const double a = c / s, density = std::exp(-a * a / 2) / std::sqrt(2 * std::numbers::pi);
  return s * std::sqrt(1 - 2 * a * density / std::erf(a / std::numbers::sqrt2));
}

/// Five standard errors around mean and deviation.
void check_moments(const Tensor& t, double mean, double std) {
  const Moments m = moments(t);
  const auto n = static_cast<double>(t.numel());
  CHECK(std::abs(m.mean - mean) < 5 * std / std::sqrt(n));
  CHECK(std::abs(m.std - std) < 5 * std / std::sqrt(2 * n));
}

}  // namespace

TEST_SUITE("init") {
  TEST_CASE("Linear starts as a normal cut at three deviations") {
    struct Row {
      int64_t in, out;
      double expected_std;  // the golden table's
    };
    for (const Row& row :
         {Row{64, 64, 0.12332229906976358}, Row{512, 1344, 0.03238602236582107}, Row{1000, 10, 0.04390216225673758}}) {
      CAPTURE(row.in);
      manual_seed(7);
      const Linear layer(row.in, row.out);
      const double sigma = std::sqrt(2.0 / static_cast<double>(row.in + row.out));
      CHECK(cut_deviation(sigma, 3 * sigma) == doctest::Approx(row.expected_std).epsilon(1e-12));
      check_moments(layer.weight, 0, row.expected_std);
      const Moments m = moments(layer.weight);
      CHECK(m.low >= static_cast<float>(-3 * sigma));
      CHECK(m.high <= static_cast<float>(3 * sigma));
      if (row.in == 512) CHECK(m.high > 2.9 * sigma);
      CHECK(moments(layer.bias).high == 0);
    }
  }

  TEST_CASE("Embedding is cut at two, whatever its deviation") {
    struct Row {
      int64_t d;
      double expected_std;
    };
    for (const Row& row : {Row{1, cut_deviation(1, 2)}, Row{4, 0.4997322509035398}, Row{64, 0.125}}) {
      CAPTURE(row.d);
      manual_seed(3);
      const Embedding table(40000 / row.d, row.d);
      check_moments(table.weight, 0, row.expected_std);
      CHECK(moments(table.weight).low >= -2);
    }
    manual_seed(3);
    CHECK(moments(Embedding(5000, 64).weight).high > 4 * 0.125);  // no cut in deviations
  }

  TEST_CASE("the other initialisers have their deviations") {
    const Tensor w = zeros({300, 200}), kernel = zeros({30, 20, 5, 5});
    const double root3 = std::sqrt(3.0);
    manual_seed(1);
    init::normal_(w, 3, 0.5), check_moments(w, 3, 0.5);
    init::uniform_(w, -1, 3), check_moments(w, 1, 4 / std::sqrt(12.0));
    CHECK((moments(w).low >= -1 && moments(w).high < 3));
    init::xavier_normal_(w), check_moments(w, 0, std::sqrt(2.0 / 500));
    init::xavier_uniform_(w), check_moments(w, 0, std::sqrt(2.0 / 500));
    init::kaiming_normal_(w), check_moments(w, 0, std::sqrt(2.0 / 200));
    init::kaiming_uniform_(kernel, 1), check_moments(kernel, 0, std::sqrt(1.0 / 500));
    CHECK(moments(kernel).high <= root3 / std::sqrt(500.0));
    init::scale_(kernel, init::residual_scale(8)), check_moments(kernel, 0, std::sqrt(1.0 / 500) / 4);
    const Tensor half = zeros({100, 100}, DType::bf16);
    init::normal_(half), check_moments(half, 0, 1);
    init::scale_(half, 2), check_moments(half, 0, 2);
  }

  TEST_CASE("values depend on seed and call, not on threads, and a leaf may be written") {
    const auto drawn = [](uint64_t seed, int threads) {
      const int before = num_threads();
      set_num_threads(threads);
      manual_seed(seed);
      Linear first(100, 90), second(100, 90);
      init::normal_(first.bias);
      set_num_threads(before);
      std::vector<float> all = first.weight.to_vector();
      for (const Tensor& t : {Tensor(second.weight), Tensor(first.bias)})
        for (const float x : t.to_vector()) all.push_back(x);
      return all;
    };
    const auto a = drawn(5, 1);
    CHECK(a == drawn(5, 3));
    CHECK(a != drawn(6, 1));
    CHECK(!std::equal(a.begin(), a.begin() + 9000, a.begin() + 9000));
    const Tensor rows = zeros({4, 6});
    init::normal_(rows.view_of({4, 3}, {6, 2}, 1));  // every other column
    CHECK(rows.to_vector()[0] == 0);
    CHECK(rows.to_vector()[1] != 0);
  }

  TEST_CASE("impossible requests are errors") {
    const Tensor w = zeros({3, 2});
    CHECK_THROWS_AS(init::truncated_normal_(w, 0.1, 1, 2), ValueError);
    CHECK_THROWS_AS(init::truncated_normal_(w, 1, 2, -2), ValueError);
    CHECK_THROWS_AS(init::truncated_normal_(w, 0, -1, 1), ValueError);
    CHECK_THROWS_AS(init::uniform_(w, 1, 0), ValueError);
    CHECK_THROWS_AS(init::xavier_normal_(zeros({3})), ShapeError);
    CHECK_THROWS_AS(init::normal_(zeros({3}, DType::i64)), DTypeError);
    CHECK_THROWS_AS(static_cast<void>(init::residual_scale(0)), ValueError);
    CHECK_THROWS_AS(Linear(0, 3), ValueError);
    CHECK_THROWS_AS(Embedding(3, 0), ValueError);
  }
}
