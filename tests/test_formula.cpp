// Every function a formula may call, as compiled for SIMD, against std:: in long double: edges, random values, and a stated bound in ulp.
// Not the pointwise loops (test_pointwise_kernel.cpp). Next: ../ops/kernels/formula_lanes.h.
// TAPESTRY_LONG_TESTS=1 tries 10^6 random values per function instead of 2·10^4.
#include <doctest/doctest.h>

#include <cstdlib>
#include <cstring>
#include <limits>
#include <random>
#include <string_view>
#include <vector>

#include "../ops/kernels/formula.h"
#include "formula_arch/rows.h"

namespace {

using tapestry::num;
using Real = long double;

struct Reference {
  std::string_view name;
  int arguments;
  double low, high;             // where half of the random values lie
  double bound_f32, bound_f64;  // largest error in units in the last place of the true value
  Real (*f)(Real, Real);
};

Real rounded_half_even(Real a, Real) { return std::nearbyint(a); }
Real python_mod(Real a, Real b) {
  const Real r = std::fmod(a, b);
  return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}
Real python_floor_divide(Real a, Real b) {
  if (b == 0) return a / b;
  const Real r = std::fmod(a, b);
  return std::nearbyint((a - r) / b - (r != 0 && (r < 0) != (b < 0) ? 1 : 0));
}

const Reference references[] = {
    {"abs", 1, -9, 9, 0, 0, [](Real a, Real) { return std::abs(a); }},
    {"sign", 1, -9, 9, 0, 0, [](Real a, Real) { return a > 0   ? 1
                                                       : a < 0 ? -1
                                                               : a; }},
    {"sqrt", 1, 0, 9, 0.501, 0.501, [](Real a, Real) { return std::sqrt(a); }},
    {"rsqrt", 1, 0, 9, 1.5, 1.5, [](Real a, Real) { return 1 / std::sqrt(a); }},
    {"reciprocal", 1, -9, 9, 0.501, 0.501, [](Real a, Real) { return 1 / a; }},
    {"floor", 1, -9, 9, 0, 0, [](Real a, Real) { return std::floor(a); }},
    {"ceil", 1, -9, 9, 0, 0, [](Real a, Real) { return std::ceil(a); }},
    {"trunc", 1, -9, 9, 0, 0, [](Real a, Real) { return std::trunc(a); }},
    {"round", 1, -9, 9, 0, 0, rounded_half_even},
    {"exp", 1, -104, 89, 1.2, 1.2, [](Real a, Real) { return std::exp(a); }},
    {"exp2", 1, -150, 128, 1.2, 1.2, [](Real a, Real) { return std::exp2(a); }},
    {"expm1", 1, -20, 89, 2, 2, [](Real a, Real) { return std::expm1(a); }},
    {"log", 1, 0, 9, 1, 1, [](Real a, Real) { return std::log(a); }},
    {"log2", 1, 0, 9, 2, 2, [](Real a, Real) { return std::log2(a); }},
    {"log10", 1, 0, 9, 2, 2, [](Real a, Real) { return std::log10(a); }},
    {"log1p", 1, -1, 9, 1, 1, [](Real a, Real) { return std::log1p(a); }},
    {"sigmoid", 1, -104, 20, 3, 3, [](Real a, Real) { return 1 / (1 + std::exp(-a)); }},
    {"tanh", 1, -9, 9, 1.5, 1.5, [](Real a, Real) { return std::tanh(a); }},
    {"sinh", 1, -89, 89, 3, 3, [](Real a, Real) { return std::sinh(a); }},
    {"cosh", 1, -89, 89, 3, 3, [](Real a, Real) { return std::cosh(a); }},
    {"asinh", 1, -9, 9, 3, 3, [](Real a, Real) { return std::asinh(a); }},
    {"acosh", 1, 1, 9, 3, 3, [](Real a, Real) { return std::acosh(a); }},
    {"atanh", 1, -1, 1, 3, 3, [](Real a, Real) { return std::atanh(a); }},
    {"sin", 1, -30, 30, 2, 2, [](Real a, Real) { return std::sin(a); }},
    {"cos", 1, -30, 30, 2, 2, [](Real a, Real) { return std::cos(a); }},
    {"tan", 1, -30, 30, 3.5, 3.5, [](Real a, Real) { return std::tan(a); }},
    {"asin", 1, -1, 1, 2.5, 2.5, [](Real a, Real) { return std::asin(a); }},
    {"acos", 1, -1, 1, 2.5, 2.5, [](Real a, Real) { return std::acos(a); }},
    {"atan", 1, -9, 9, 2.5, 2.5, [](Real a, Real) { return std::atan(a); }},
    {"erf", 1, -6, 6, 1.5, 1.5, [](Real a, Real) { return std::erf(a); }},
    {"erfc", 1, -6, 11, 5, 5, [](Real a, Real) { return std::erfc(a); }},
    {"maximum", 2, -9, 9, 0, 0, [](Real a, Real b) { return a > b || a != a ? a : b; }},
    {"minimum", 2, -9, 9, 0, 0, [](Real a, Real b) { return a < b || a != a ? a : b; }},
    {"copysign", 2, -9, 9, 0, 0, [](Real a, Real b) { return std::copysign(a, b); }},
    {"mul0", 2, -9, 9, 0.501, 0.501, [](Real a, Real b) { return a == 0 ? 0 : a * b; }},
    {"pow", 2, 0, 9, 1, 1, [](Real a, Real b) { return std::pow(a, b); }},
    {"hypot", 2, -9, 9, 2, 2, [](Real a, Real b) { return std::hypot(a, b); }},
    {"rem", 2, -9, 9, 0, 0, [](Real a, Real b) { return std::fmod(a, b); }},
    {"mod", 2, -9, 9, 0.501, 0.501, python_mod},
    {"floor_divide", 2, -9, 9, 0.501, 2.5, python_floor_divide},
    {"atan2", 2, -9, 9, 1.5, 1.5, [](Real a, Real b) { return std::atan2(a, b); }},
    {"less", 2, -9, 9, 0, 0, [](Real a, Real b) -> Real { return a < b; }},
    {"less_equal", 2, -9, 9, 0, 0, [](Real a, Real b) -> Real { return a <= b; }},
    {"equal", 2, -9, 9, 0, 0, [](Real a, Real b) -> Real { return a == b; }},
    {"not_equal", 2, -9, 9, 0, 0, [](Real a, Real b) -> Real { return a != b; }},
    {"negate", 1, -9, 9, 0, 0, [](Real a, Real) { return -a; }},
};

/// |got - want| in ulp of want; infinity for a wrong NaN, infinity or sign of zero.
template <class T>
double error_in_ulp(T got, Real want) {
  const double wrong = std::numeric_limits<double>::infinity();
  const T rounded = static_cast<T>(want);
  if (std::isnan(got) || std::isnan(rounded)) return std::isnan(got) && std::isnan(rounded) ? 0 : wrong;
  if (std::isinf(got) || std::isinf(rounded)) return got == rounded ? 0 : wrong;
  if (got == 0 && rounded == 0) return std::signbit(got) == std::signbit(rounded) ? 0 : wrong;
  int exponent = 0;
  std::frexp(want, &exponent);
  exponent = std::max(exponent, std::numeric_limits<T>::min_exponent);
  return static_cast<double>(std::abs(got - want) / std::ldexp(Real(1), exponent - std::numeric_limits<T>::digits));
}

template <class T>
std::vector<T> edges() {
  using L = std::numeric_limits<T>;
  std::vector<T> v;
  for (const T x : {T(0),
                    L::denorm_min(),
                    3 * L::denorm_min(),
                    L::min() / 2,
                    L::min(),
                    L::epsilon(),
                    T(0.25),
                    T(0.5),
                    T(1),
                    T(1.5),
                    T(2),
                    T(2.5),
                    T(3),
                    T(5),
                    T(20),
                    T(88.7),
                    T(88.73),
                    T(87.4),
                    T(103.97),
                    T(104.1),
                    T(709.78),
                    T(709.79),
                    T(745.1),
                    T(745.2),
                    T(1e4),
                    T(1e6),
                    T(1e20),
                    T(0x1.8p22),
                    T(8388609),
                    T(3.14159265358979),
                    L::max(),
                    L::infinity(),
                    L::quiet_NaN()})
    for (const T s : {x, -x}) v.push_back(s);
  return v;
}

template <class T>
T from_bits(uint64_t bits) {
  T x;
  std::memcpy(&x, &bits, sizeof x);
  return x;
}

/// Edges (all pairs of them), then random values: uniform in the row's range, any bit pattern, and of magnitudes 2^-30 to 2^4.
template <class T>
void arguments(const Reference& r, std::vector<T>& a, std::vector<T>& b) {
  const std::vector<T> e = edges<T>();
  for (const T x : e)
    for (const T y : e) {
      a.push_back(x);
      b.push_back(y);
      if (r.arguments == 1) break;
    }
  std::mt19937_64 bits(1);
  std::uniform_real_distribution<double> unit(0, 1);
  const auto draw = [&](int kind) {
    if (kind < 2) return static_cast<T>(r.low + (r.high - r.low) * unit(bits));
    if (kind == 2) return from_bits<T>(bits());
    return static_cast<T>((unit(bits) < 0.5 ? -1 : 1) * std::exp2(34 * unit(bits) - 30));
  };
  const int count = std::getenv("TAPESTRY_LONG_TESTS") ? 1'000'000 : 20'000;
  for (int i = 0; i < count; ++i) {
    a.push_back(draw(i % 4));
    b.push_back(draw(i / 4 % 4));
  }
  while (a.size() % 16 != 0) {
    a.push_back(T(1));
    b.push_back(T(1));
  }
}

template <class T>
void check(const Reference& r, formula_arch::Loop<T> loop, double bound) {
  std::vector<T> a, b;
  arguments(r, a, b);
  std::vector<T> out(a.size());
  loop(a.data(), b.data(), out.data(), static_cast<int64_t>(a.size()));
  double worst = 0;
  size_t at = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    const double error = error_in_ulp(out[i], r.f(a[i], b[i]));
    if (error > worst) {
      worst = error;
      at = i;
    }
  }
  INFO(r.name, sizeof(T) == 4 ? " f32" : " f64", ": ", worst, " ulp at a = ", a[at], ", b = ", b[at], ": ", out[at]);
  CHECK(worst <= bound);

  // the same value in every lane gives what it gave among others
  int64_t moved = 0;
  for (size_t i = 0; i < a.size(); i += 37) {
    const std::vector<T> x(16, a[i]), y(16, b[i]);
    T z[16];
    loop(x.data(), y.data(), z, 16);
    for (const T lane : z) moved += std::memcmp(&lane, &out[i], sizeof lane) != 0;
  }
  CHECK(moved == 0);
}

void check_all(std::span<const formula_arch::Row> rows) {
  CHECK(rows.size() == std::size(references));
  for (const Reference& r : references) {
    const formula_arch::Row* row = nullptr;
    for (const formula_arch::Row& candidate : rows)
      if (candidate.name == r.name) row = &candidate;
    INFO(r.name);
    REQUIRE(row != nullptr);
    check<float>(r, row->f32, r.bound_f32);
    check<double>(r, row->f64, r.bound_f64);
  }
}

}  // namespace

TEST_SUITE("formula") {
  TEST_CASE("SIMD functions stay within their bounds of std::, with SSE2") { check_all(formula_arch::sse2_rows()); }

  TEST_CASE("so they do with AVX2") {
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) check_all(formula_arch::avx2_rows());
  }

  TEST_CASE("so they do with AVX-512") {
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq"))
      check_all(formula_arch::avx512_rows());
  }
  TEST_CASE("scalar functions of our own") {
    const double inf = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();
    using namespace tapestry;
    CHECK(tapestry::round(0.5) == 0);
    CHECK(tapestry::round(1.5F) == 2);
    CHECK(tapestry::round(-2.5) == -2);
    CHECK(sigmoid(-inf) == 0);
    CHECK(sigmoid(inf) == 1);
    CHECK(sigmoid(-700.0) == doctest::Approx(std::exp(-700.0)).epsilon(1e-14));
    CHECK(std::isnan(maximum(nan, 1.0)));
    CHECK(std::isnan(maximum(1.0, nan)));
    CHECK(std::isnan(minimum(nan, 1.0)));
    CHECK(maximum(int64_t(3), int64_t(-4)) == 3);
    CHECK(mul0(0.0, inf) == 0);
    const int64_t least = INT64_MIN;
    CHECK(rem(int64_t(-7), int64_t(3)) == -1);
    CHECK(mod(int64_t(-7), int64_t(3)) == 2);
    CHECK(mod(int64_t(7), int64_t(-3)) == -2);
    CHECK(floor_divide(int64_t(-7), int64_t(3)) == -3);
    CHECK(floor_divide(int64_t(-6), int64_t(3)) == -2);
    CHECK(rem(least, int64_t(-1)) == 0);
    CHECK(floor_divide(least, int64_t(-1)) == least);
    CHECK(floor_divide(-1.0, inf) == -1);
    CHECK(mul0(2.0, 3.0) == 6);
    CHECK(sign(int64_t(-7)) == -1);
    CHECK(std::isnan(sign(nan)));
    CHECK(rsqrt(4.0) == 0.5);
    CHECK(where(true, 1.0, 2.0) == 1.0);
    CHECK(num<float>(0.1) == 0.1F);
  }
}
