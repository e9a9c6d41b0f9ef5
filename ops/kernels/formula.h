// What a pointwise formula may call, for scalars: float and double through std:: (the reference), int64_t where a formula makes sense for it.
// Not the SIMD versions (formula_lanes.h) nor those on Tensor (ops.h): a formula names a function, and its argument's kind picks the version.
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
using std::abs, std::exp, std::expm1, std::exp2, std::log, std::log1p, std::log2, std::sqrt, std::pow, std::hypot;
using std::copysign, std::fma, std::fmod, std::remainder;
using std::floor, std::ceil, std::trunc, std::isnan;
using std::sin, std::cos, std::tan, std::asin, std::acos, std::atan, std::atan2, std::sinh, std::cosh, std::tanh,
    std::erf, std::erfc;

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

/// 0 where g is 0, else g·d: the chain rule at a point where d may be infinite but nothing flows back.
template <Number T>
T mul0(T g, T d) {
  return g == T(0) ? T(0) : g * d;
}

}  // namespace tapestry
