// The strided driver of pointwise formulas: every layout and element type against plain loops over logical indices, and the same bits for any
// layout, tail and thread count. Not the functions themselves (test_formula.cpp). Next: ../ops/kernels/pointwise.cpp.
#include <doctest/doctest.h>

#include <string>

#include "../autograd/error.h"
#include "../autograd/parallel.h"
#include "../ops/kernels/pointwise_lanes.h"
#include "strided_arrays.h"

namespace {

using namespace tapestry;
using namespace strided_arrays;
using kernels::LanesLoop;
using kernels::ScalarLoop;

const Shape shapes[] = {{},         {1},       {15},       {16},       {17},        {33},
                        {1000},     {40000},   {0, 3},     {3, 5},     {7, 64},     {130, 70},
                        {300, 200}, {2, 3, 4}, {5, 1, 65}, {4, 33, 2}, {3, 50, 70}, {2, 3, 4, 5, 6},
                        {600, 3},   {3, 600}};

std::string describe(const Shape& shape, Layout a, Layout b, DType dtype) {
  return to_string(shape, dtype) + " layouts " + std::to_string(int(a)) + " and " + std::to_string(int(b));
}

kernels::Input in(Array& a) { return {a.data(), a.dtype, a.strides}; }
kernels::Output out(Array& a) { return {a.data(), a.dtype, a.strides}; }

const auto blend = [](auto a, auto b) { return a * b + a; };

}  // namespace

TEST_SUITE("pointwise_kernel") {
  TEST_CASE("two inputs of any layout and type") {
    for (const DType dtype : {DType::f32, DType::f64, DType::bf16, DType::i64})
      for (const Shape& shape : shapes)
        for (const Layout la : layouts)
          for (const Layout lb : layouts) {
            Array a = make(shape, dtype, la, 1), b = make(shape, dtype, lb, 2);
            Array y = make(shape, dtype, lb == Layout::expanded ? Layout::dense : lb, 3);
            kernels::map<LanesLoop, kernels::Domain::numbers>(shape, dtype, blend, {out(y)}, {in(a), in(b)});
            int64_t wrong = 0;
            for (int64_t i = 0; i < numel(shape); ++i) {
              const double u = get(a, shape, i), v = get(b, shape, i);
              const double want =
                  dtype == DType::f64 || dtype == DType::i64 ? u * v + u : float(float(u) * float(v)) + float(u);
              wrong += get(y, shape, i) != (dtype == DType::bf16 ? double(float(bf16(float(want)))) : want);
            }
            INFO(describe(shape, la, lb, dtype));
            REQUIRE(wrong == 0);
          }
  }

  TEST_CASE("bits depend neither on layout, place nor threads") {
    const auto f = [](auto x) { return tanh(exp(sin(x))); };
    const int before = num_threads();
    for (const DType dtype : {DType::f32, DType::f64})
      for (const Shape& shape : shapes) {
        Array x = make(shape, dtype, Layout::dense, 4), want = make(shape, dtype, Layout::dense, 5);
        for (int64_t i = 0; i < numel(shape); ++i) {  // one element at a time
          const int64_t at = i * size_of(dtype);
          kernels::map<LanesLoop>({}, dtype, f, {{want.data() + at, dtype, {}}}, {{x.data() + at, dtype, {}}});
        }
        for (const int threads : {1, 2, 4}) {
          set_num_threads(threads);
          for (const Layout layout : {Layout::dense, Layout::transposed, Layout::stepped}) {
            Array z = make(shape, dtype, layout, 6), y = make(shape, dtype, layout, 7);
            kernels::map<LanesLoop>(shape, dtype, [](auto v) { return v; }, {out(z)}, {in(x)});
            kernels::map<LanesLoop>(shape, dtype, f, {out(y)}, {in(z)});
            int64_t wrong = 0;
            for (int64_t i = 0; i < numel(shape); ++i) wrong += get(y, shape, i) != get(want, shape, i);
            INFO(describe(shape, layout, layout, dtype), ", threads ", threads);
            REQUIRE(wrong == 0);
          }
        }
      }
    set_num_threads(before);
  }

  TEST_CASE("comparisons write bool, masks read it") {
    for (const DType dtype : {DType::f32, DType::f64, DType::bf16, DType::i64})
      for (const Shape& shape : shapes)
        for (const Layout layout : layouts) {
          Array a = make(shape, dtype, layout, 8), b = make(shape, dtype, Layout::dense, 9);
          Array m = make(shape, DType::boolean, Layout::transposed, 10), y = make(shape, dtype, Layout::dense, 11);
          kernels::map<LanesLoop, kernels::Domain::numbers>(shape, dtype, [](auto u, auto v) { return u < v; },
                                                            {out(m)}, {in(a), in(b)});
          const auto choose = []<class T>(T c, T u, T v) { return where(c != num<T>(0), u, v); };
          kernels::map<LanesLoop, kernels::Domain::numbers>(shape, dtype, choose, {out(y)}, {in(m), in(a), in(b)});
          int64_t wrong = 0;
          for (int64_t i = 0; i < numel(shape); ++i) {
            wrong += (get(m, shape, i) != 0) != (get(a, shape, i) < get(b, shape, i));
            wrong += get(y, shape, i) != std::min(get(a, shape, i), get(b, shape, i));
          }
          INFO(describe(shape, layout, Layout::dense, dtype));
          REQUIRE(wrong == 0);
        }
  }

  TEST_CASE("four inputs, three outputs, captured numbers; scalar and SIMD loops agree") {
    const double alpha = 0.25;
    const auto f = [alpha]<class T>(T a, T b, T c, T d) {
      return std::tuple(a + b * num<T>(alpha), maximum(b, c), d / (a * a + num<T>(1)));
    };
    for (const Shape& shape : shapes) {
      Array x[4], y[3], z[3];
      for (int k = 0; k < 4; ++k) x[k] = make(shape, DType::f32, layouts[k], 12 + k);
      for (int k = 0; k < 3; ++k) {
        y[k] = make(shape, DType::f32, layouts[k], 20 + k);
        z[k] = make(shape, DType::f32, Layout::dense, 30 + k);
      }
      kernels::map<LanesLoop>(shape, DType::f32, f, {out(y[0]), out(y[1]), out(y[2])},
                              {in(x[0]), in(x[1]), in(x[2]), in(x[3])});
      kernels::map<ScalarLoop>(shape, DType::f32, f, {out(z[0]), out(z[1]), out(z[2])},
                               {in(x[0]), in(x[1]), in(x[2]), in(x[3])});
      int64_t wrong = 0;
      for (int64_t i = 0; i < numel(shape); ++i)
        for (int k = 0; k < 3; ++k) wrong += get(y[k], shape, i) != get(z[k], shape, i);
      INFO(to_string(shape));
      REQUIRE(wrong == 0);
    }
  }

  TEST_CASE("an output may be its input") {
    for (const Layout layout : {Layout::dense, Layout::transposed, Layout::stepped}) {
      const Shape shape{130, 70};
      Array x = make(shape, DType::bf16, layout, 40), y = x;
      kernels::map<LanesLoop>(shape, DType::bf16, [](auto v) { return v + v; }, {out(y)}, {in(y)});
      int64_t wrong = 0;
      for (int64_t i = 0; i < numel(shape); ++i) wrong += get(y, shape, i) != 2 * get(x, shape, i);
      CHECK(wrong == 0);
    }
  }

  TEST_CASE("a formula over reals refuses i64") {
    Array x = make({3}, DType::i64, Layout::dense, 41);
    CHECK_THROWS_AS(kernels::map<LanesLoop>({3}, DType::i64, [](auto v) { return v; }, {out(x)}, {in(x)}), DTypeError);
  }
}
