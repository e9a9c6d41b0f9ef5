// Reductions against plain loops in double over logical indices: layouts, dims, types, edges, accuracy and thread counts.
// Not the differentiable ops (the op table). Next: ../ops/kernels/reduce.cpp.
#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <string>

#include "../autograd/error.h"
#include "../autograd/parallel.h"
#include "../ops/kernels/reduce.h"
#include "strided_arrays.h"

namespace {

using namespace tapestry;
using namespace strided_arrays;
using kernels::Reduce;

constexpr double inf = std::numeric_limits<double>::infinity(), not_a_number = std::numeric_limits<double>::quiet_NaN();

struct Case {
  Shape shape;
  Dims dims;
};
const Case cases[] = {{{}, {}},
                      {{1}, {0}},
                      {{17}, {0}},
                      {{1000}, {}},
                      {{3, 5}, {1}},
                      {{3, 5}, {0}},
                      {{7, 64}, {1}},
                      {{70, 33}, {0}},
                      {{40, 700}, {0}},
                      {{300, 200}, {}},
                      {{300, 200}, {0}},
                      {{300, 200}, {1}},
                      {{2, 3, 4}, {1}},
                      {{5, 40, 6}, {0, 2}},
                      {{5, 40, 6}, {1, 2}},
                      {{6, 1, 65}, {2}},
                      {{2, 3, 4, 5}, {0, 3}},
                      {{1000, 3}, {0}},
                      {{1000, 3}, {1}},
                      {{0, 3}, {0}},
                      {{0, 3}, {1}},
                      {{3, 0, 4}, {1}},
                      {{2000, 20}, {0}},
                      {{4, 70000}, {1}}};

/// Logical elements of each result, in order, as doubles.
std::vector<std::vector<double>> groups(Array& a, const Case& c) {
  int64_t results = 1;
  std::vector<bool> reduced(8, c.dims.empty());
  for (const int64_t d : c.dims) reduced[static_cast<size_t>(d)] = true;
  for (int d = 0; d < c.shape.rank(); ++d)
    if (!reduced[static_cast<size_t>(d)]) results *= c.shape[d];
  std::vector<std::vector<double>> g(static_cast<size_t>(results));
  for (int64_t i = 0; i < numel(c.shape); ++i) {
    int64_t rest = i, to = 0, scale = 1;
    for (int d = c.shape.rank() - 1; d >= 0; --d) {
      if (!reduced[static_cast<size_t>(d)]) {
        to += rest % c.shape[d] * scale;
        scale *= c.shape[d];
      }
      rest /= c.shape[d];
    }
    g[static_cast<size_t>(to)].push_back(get(a, c.shape, i));
  }
  return g;
}

double reference(Reduce what, const std::vector<double>& v) {
  double sum = 0, squares = 0, most = -inf, least = inf, product = 1, exps = 0, count = 0, deviation = 0;
  bool any = false, all = true;
  for (const double x : v) {
    sum += x;
    squares += x * x;
    most = x > most || x != x ? x : most;
    least = x < least || x != x ? x : least;
    product *= x;
    exps += std::exp(x);
    count += x != 0;
    any = any || x != 0;
    all = all && x != 0;
  }
  for (const double x : v)
    deviation += (x - sum / static_cast<double>(v.size())) * (x - sum / static_cast<double>(v.size()));
  switch (what) {
    case Reduce::count:
      return count;
    case Reduce::deviation:
      return deviation;
    case Reduce::sum:
      return sum;
    case Reduce::mean:
      return sum / static_cast<double>(v.size());
    case Reduce::norm:
      return std::sqrt(squares);
    case Reduce::max:
      return most;
    case Reduce::min:
      return least;
    case Reduce::prod:
      return product;
    case Reduce::any:
      return any;
    case Reduce::all:
      return all;
    case Reduce::logsumexp:
      return std::log(exps);
  }
  return 0;
}

std::vector<double> run(Reduce what, Array& a, const Case& c, DType out_dtype) {
  const kernels::Reducible x = kernels::split(a.data(), a.dtype, c.shape, a.strides, c.dims);
  Array y = make(x.kept, out_dtype, Layout::dense, 1);
  kernels::reduce(what, x, y.data(), out_dtype);
  std::vector<double> v;
  for (int64_t i = 0; i < numel(x.kept); ++i) v.push_back(get(y, x.kept, i));
  return v;
}

std::string describe(const Case& c, Layout layout, DType dtype) {
  return to_string(c.shape, dtype) + " over " + to_string(c.dims) + ", layout " + std::to_string(int(layout));
}

std::vector<double> full(Reduce what, std::vector<double> values) {
  Array a{std::vector<char>(values.size() * 8), DType::f64, {1}, 0};
  std::memcpy(a.data(), values.data(), values.size() * 8);
  return run(what, a, {{static_cast<int64_t>(values.size())}, {}}, DType::f64);
}

}  // namespace

TEST_SUITE("reduce_kernel") {
  TEST_CASE("every kind, layout and type against plain loops") {
    for (const Reduce what : {Reduce::sum, Reduce::mean, Reduce::norm, Reduce::max, Reduce::min, Reduce::prod,
                              Reduce::any, Reduce::all, Reduce::count, Reduce::deviation, Reduce::logsumexp})
      for (const DType dtype : {DType::f64, DType::f32, DType::bf16, DType::i64, DType::boolean})
        for (const Case& c : cases)
          for (const Layout layout : layouts) {
            if (what >= Reduce::deviation && !is_floating(dtype)) continue;
            if (numel(c.shape) == 0 && dtype != DType::f64) continue;
            if (what == Reduce::prod && !is_floating(dtype) && numel(c.shape) > 20) continue;  // out of range
            if (numel(c.shape) > 20000 &&
                (dtype == DType::boolean || dtype == DType::bf16 || layout >= Layout::stepped))
              continue;
            Array a = make(c.shape, dtype, layout, 7);
            const auto g = groups(a, c);
            const auto got = run(what, a, c, DType::f64);
            REQUIRE(got.size() == g.size());
            INFO("kind ", int(what), ", ", describe(c, layout, dtype));
            int64_t wrong = 0;
            for (size_t i = 0; i < g.size(); ++i) {
              const double want = reference(what, g[i]);
              double size = std::abs(want);
              if (what == Reduce::sum || what == Reduce::mean) size += reference(Reduce::norm, g[i]);
              // logsumexp takes its exponentials in the input's precision
              const double bound = (what == Reduce::logsumexp && dtype != DType::f64 ? 3e-7 : 1e-12) * (1 + size);
              wrong += !(std::abs(got[i] - want) <= bound || got[i] == want || (got[i] != got[i] && want != want));
            }
            REQUIRE(wrong == 0);
          }
  }

  TEST_CASE("the first index of the largest and smallest") {
    for (const DType dtype :
         {DType::f64, DType::f32, DType::bf16, DType::i64, DType::boolean})  // the last two have many ties
      for (const Case& c : cases)
        for (const Layout layout : layouts)
          for (const Reduce what : {Reduce::max, Reduce::min}) {
            if (numel(c.shape) == 0 || (numel(c.shape) > 20000 && layout >= Layout::stepped)) continue;
            Array a = make(c.shape, dtype, layout, 8);
            const auto g = groups(a, c);
            const kernels::Reducible x = kernels::split(a.data(), dtype, c.shape, a.strides, c.dims);
            std::vector<int64_t> index(g.size(), -1);
            Array values = make(x.kept, dtype, Layout::dense, 9);
            kernels::reduce_index(what, x, values.data(), index.data());
            int64_t wrong = 0;
            for (size_t i = 0; i < g.size(); ++i) {
              const auto at = what == Reduce::max ? std::max_element(g[i].begin(), g[i].end())
                                                  : std::min_element(g[i].begin(), g[i].end());
              wrong += index[i] != at - g[i].begin();
              wrong += get(values, x.kept, static_cast<int64_t>(i)) != *at;
            }
            INFO(describe(c, layout, dtype));
            REQUIRE(wrong == 0);
          }
  }

  TEST_CASE("bits do not depend on the number of threads") {
    const int before = num_threads();
    for (const Case& c : {Case{{300000}, {}}, Case{{3000, 70}, {0}}, Case{{3000, 70}, {1}}, Case{{70, 3000}, {}},
                          Case{{20, 300, 40}, {0, 1}}})
      for (const Reduce what : {Reduce::sum, Reduce::norm, Reduce::logsumexp, Reduce::prod})
        for (const DType dtype : {DType::f32, DType::f64}) {
          Array a = make(c.shape, dtype, Layout::dense, 10);
          set_num_threads(1);
          const auto want = run(what, a, c, DType::f64);
          for (const int threads : {2, 4}) {
            set_num_threads(threads);
            INFO(describe(c, Layout::dense, dtype), ", threads ", threads);
            REQUIRE(run(what, a, c, DType::f64) == want);
          }
        }
    set_num_threads(before);
  }

  TEST_CASE("sums of many elements stay accurate") {
    // a naive f32 sum of 2^25 ones stops at 2^24; read through stride 0, so no memory is needed
    float one = 1, tenth = 0.1F, y = 0;
    const int64_t n = int64_t{1} << 25;
    kernels::reduce(Reduce::sum, {&one, DType::f32, {}, {n}, {}, {0}}, &y, DType::f32);
    CHECK(y == static_cast<float>(n));
    kernels::reduce(Reduce::mean, {&tenth, DType::f32, {}, {n}, {}, {0}}, &y, DType::f32);
    CHECK(y == 0.1F);
    double tenth64 = 0.1, z = 0;
    kernels::reduce(Reduce::mean, {&tenth64, DType::f64, {}, {1 << 22}, {}, {0}}, &z, DType::f64);
    CHECK(std::abs(z - 0.1) < 1e-15);
  }

  TEST_CASE("norms neither overflow nor vanish before the root") {
    CHECK(full(Reduce::norm, {3e200, 4e200})[0] == doctest::Approx(5e200).epsilon(1e-14));
    CHECK(full(Reduce::norm, {3e-200, 4e-200})[0] == doctest::Approx(5e-200).epsilon(1e-14));
    CHECK(full(Reduce::norm, {3e-320, 4e-320})[0] == doctest::Approx(5e-320).epsilon(1e-3));
    CHECK(full(Reduce::norm, std::vector<double>(5000, 1e200))[0] ==
          doctest::Approx(std::sqrt(5000.) * 1e200).epsilon(1e-13));
    CHECK(full(Reduce::norm, {0, 0})[0] == 0);
    CHECK(full(Reduce::norm, {1, -inf})[0] == inf);
    CHECK(std::isnan(full(Reduce::norm, {1, not_a_number, 1e300})[0]));
    std::vector<double> mixed(3000, 1e-180);
    mixed[2500] = 3e180;
    mixed[10] = 4e180;
    CHECK(full(Reduce::norm, mixed)[0] == doctest::Approx(5e180).epsilon(1e-14));
    const float big[] = {3e30F, 4e30F};
    float y = 0;
    kernels::reduce(Reduce::norm, {big, DType::f32, {}, {2}, {}, {1}}, &y, DType::f32);
    CHECK(y == 5e30F);
    std::vector<double> column(32 * 16, 1e200), out(16);  // down the columns
    kernels::reduce(Reduce::norm, {column.data(), DType::f64, {16}, {32}, {1}, {16}}, out.data(), DType::f64);
    CHECK(out[15] == doctest::Approx(std::sqrt(32.) * 1e200).epsilon(1e-13));
  }

  TEST_CASE("NaN and infinities") {
    std::vector<double> v(2000, 1.0);
    v[1500] = not_a_number;
    v[1800] = 7;
    for (const Reduce what : {Reduce::sum, Reduce::max, Reduce::min, Reduce::norm, Reduce::logsumexp})
      CHECK(std::isnan(full(what, v)[0]));
    int64_t index = 0;
    kernels::reduce_index(Reduce::max, {v.data(), DType::f64, {}, {2000}, {}, {1}}, nullptr, &index);
    CHECK(index == 1500);
    CHECK(full(Reduce::any, {not_a_number})[0] == 1);
    CHECK(full(Reduce::logsumexp, {-inf, -inf})[0] == -inf);
    CHECK(full(Reduce::logsumexp, {-inf, 1})[0] == 1);
    CHECK(full(Reduce::logsumexp, {inf, 1})[0] == inf);
    CHECK(full(Reduce::logsumexp, {1000, 1000})[0] == doctest::Approx(1000 + std::log(2.)));
    kernels::reduce_index(Reduce::max, {std::vector<double>(5, -inf).data(), DType::f64, {}, {5}, {}, {1}}, nullptr,
                          &index);
    CHECK(index == 0);
  }

  TEST_CASE("deviations from a large mean keep their digits") {
    std::vector<double> v(100000);
    for (size_t i = 0; i < v.size(); ++i) v[i] = 1e8 + (i % 2 == 0 ? 1 : -1);
    CHECK(full(Reduce::deviation, v)[0] == doctest::Approx(1e5).epsilon(1e-12));
    CHECK(full(Reduce::deviation, std::vector<double>(5000, 0.1))[0] == 0);
  }

  TEST_CASE("nothing to choose from, and logsumexp of integers, are errors") {
    int64_t index = 0, x[2] = {1, 2};
    CHECK_THROWS_WITH_AS(kernels::reduce_index(Reduce::max, {x, DType::i64, {}, {0}, {}, {1}}, nullptr, &index),
                         "argmax: no element to choose from: x reduces over [0] i64", IndexError);
    CHECK_THROWS_AS(kernels::reduce(Reduce::logsumexp, {x, DType::i64, {}, {2}, {}, {1}}, &index, DType::i64),
                    DTypeError);
  }
}
