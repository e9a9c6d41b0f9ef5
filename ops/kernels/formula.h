// What a pointwise formula may call, for scalars: float and double through std:: (the reference), int64_t where a formula makes sense for it.
// Not the SIMD versions (formula_lanes.h) nor those on Tensor (../ops.h): a formula names a function, and its argument's kind picks the version.
// Next: lanes.h, then pointwise.h.
#pragma once

#include <cmath>
#include <concepts>
#include <cstdint>
#include <cstdlib>

namespace tapestry {

/// How to make the constant v for value kind T: the number itself for scalars and lanes. Kinds that combine with plain numbers by their own
/// operators (Tensor) specialise this to return the double unchanged.
template <class T>
struct NumOf {
  static T make(double v) { return static_cast<T>(v); }
};

/// The constant v in a formula over T: `g * (num<T>(1) - y * y)`.
template <class T>
auto num(double v) {
  return NumOf<T>::make(v);
}

// Names formulas share with <cmath> are std's own functions, not copies, so `using namespace tapestry` makes nothing ambiguous.
using std::abs, std::exp, std::expm1, std::exp2, std::log, std::log1p, std::log2, std::log10, std::sqrt, std::pow;
using std::copysign, std::fma, std::hypot;
using std::floor, std::ceil, std::trunc, std::isnan;
using std::sin, std::cos, std::tan, std::asin, std::acos, std::atan, std::atan2;
using std::sinh, std::cosh, std::tanh, std::asinh, std::acosh, std::atanh, std::erf, std::erfc;

/// The numbers a formula is compiled over without SIMD.
template <class T>
concept Number = std::same_as<T, float> || std::same_as<T, double> || std::same_as<T, int64_t>;
template <class T>
concept RealNumber = std::same_as<T, float> || std::same_as<T, double>;

/// c ? a : b.
template <Number T>
T where(bool c, T a, T b) {
  return c ? a : b;
}

/// -1, 0 or 1; ±0 and NaN are returned unchanged.
template <Number T>
T sign(T x) {
  return x > T(0) ? T(1) : x < T(0) ? T(-1) : x;
}

/// 1/√x, each step rounded.
template <RealNumber T>
T rsqrt(T x) {
  return T(1) / std::sqrt(x);
}

template <RealNumber T>
T reciprocal(T x) {
  return T(1) / x;
}

/// To the nearest integer, halves to the even one (as PyTorch and NumPy; std::round rounds halves away from zero).
template <RealNumber T>
T round(T x) {
  return std::nearbyint(x);
}

/// 1/(1 + e^-x); never overflows, keeps its relative accuracy towards 0.
template <RealNumber T>
T sigmoid(T x) {
  const T e = std::exp(-std::abs(x));
  return (x >= T(0) ? T(1) : e) / (T(1) + e);
}

/// The larger of the two; NaN if either is NaN.
template <Number T>
T maximum(T a, T b) {
  return a > b || a != a ? a : b;
}

/// The smaller of the two; NaN if either is NaN.
template <Number T>
T minimum(T a, T b) {
  return a < b || a != a ? a : b;
}

// Division with a rest. Whole numbers need b ≠ 0; by −1 apart, as the machine traps where the quotient overflows.
/// a − b·trunc(a/b), exactly: the sign of a. std::fmod by another name, which whole numbers can have, too.
template <RealNumber T>
T rem(T a, T b) {
  return std::fmod(a, b);
}
inline int64_t rem(int64_t a, int64_t b) { return b == -1 ? 0 : a % b; }

/// a − b·floor(a/b): the sign of b, as Python's %.
template <Number T>
T mod(T a, T b) {
  const T r = rem(a, b);
  return r != T(0) && (r < T(0)) != (b < T(0)) ? r + b : r;
}

/// floor(a/b) of the exact quotient, as Python's //; a/b where b is 0. A quotient beyond 2^52 is rounded, as its steps are.
template <RealNumber T>
T floor_divide(T x, T y) {
  const double a = x, b = y;
  if (b == 0) return x / y;
  const double r = rem(a, b), q = (a - r) / b;
  return static_cast<T>(std::nearbyint(r != 0 && (r < 0) != (b < 0) ? q - 1 : q));
}
inline int64_t floor_divide(int64_t a, int64_t b) {
  if (b == -1) return static_cast<int64_t>(0 - static_cast<uint64_t>(a));
  const int64_t q = a / b;
  return a % b != 0 && (a < 0) != (b < 0) ? q - 1 : q;
}

/// 0 where g is 0, else g·d: the chain rule at a point where d may be infinite but nothing flows back.
template <Number T>
T mul0(T g, T d) {
  return g == T(0) ? T(0) : g * d;
}

}  // namespace tapestry
