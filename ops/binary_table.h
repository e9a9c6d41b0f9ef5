// The table of pointwise ops of two operands, with the terms of pairwise losses.
// Not here: ops of one operand (pointwise_table.h) and of three (lerp in pointwise_binary.cpp). Next: pointwise_binary.cpp.
#pragma once

#include <limits>
#include <numbers>

#include "pointwise_row.h"

namespace tapestry::rows {

// clang-format off
//                                name      saves        y = f(a, b)                                dL/da, dL/db from g, a, b, y
inline constexpr auto add = Binary{"add", Saves::none, [](auto a, auto b) { return a + b; },
    []<class T>(const T& g, const T&, const T&, const T&) { return g; },
    []<class T>(const T& g, const T&, const T&, const T&) { return g; }, "a + b", "g, g"};
inline constexpr auto sub = Binary{"sub", Saves::none, [](auto a, auto b) { return a - b; },
    []<class T>(const T& g, const T&, const T&, const T&) { return g; },
    []<class T>(const T& g, const T&, const T&, const T&) { return -g; }, "a − b", "g, −g"};
inline constexpr auto mul = Binary{"mul", Saves::ab, [](auto a, auto b) { return a * b; },
    []<class T>(const T& g, const T&, const T& b, const T&) { return g * b; },
    []<class T>(const T& g, const T& a, const T&, const T&) { return g * a; }, "a·b", "g·b, g·a"};
inline constexpr auto div = Binary{"div", Saves::ab, [](auto a, auto b) { return a / b; },
    []<class T>(const T& g, const T&, const T& b, const T&) { return mul0(g, num<T>(1) / b); },
    []<class T>(const T& g, const T& a, const T& b, const T&) { return mul0(g, -(a / (b * b))); }, "a/b", "g/b, −g·a/b²; 0 where g = 0"};
inline constexpr auto maximum_ = Binary{"maximum", Saves::ab, [](auto a, auto b) { return maximum(a, b); },
    []<class T>(const T& g, const T& a, const T& b, const T&) { return where(a < b, num<T>(0), where(a == b, g * num<T>(0.5), g)); },
    []<class T>(const T& g, const T& a, const T& b, const T&) { return where(a > b, num<T>(0), where(a == b, g * num<T>(0.5), g)); },
    "max(a, b)", "g to the larger, halves to ties"};
inline constexpr auto minimum_ = Binary{"minimum", Saves::ab, [](auto a, auto b) { return minimum(a, b); },
    []<class T>(const T& g, const T& a, const T& b, const T&) { return where(a > b, num<T>(0), where(a == b, g * num<T>(0.5), g)); },
    []<class T>(const T& g, const T& a, const T& b, const T&) { return where(a < b, num<T>(0), where(a == b, g * num<T>(0.5), g)); },
    "min(a, b)", "g to the smaller, halves to ties"};
inline constexpr auto pow_ = Binary{"pow", Saves::aby, [](auto a, auto b) { return pow(a, b); },
    []<class T>(const T& g, const T& a, const T& b, const T&) {
      return mul0(g, mul0(b, pow(a, where(b == num<T>(0), num<T>(1), b - num<T>(1))))); },
    []<class T>(const T& g, const T& a, const T&, const T& y) {
      return mul0(g, mul0(log(where(a == num<T>(0), num<T>(1), a)), y)); },
    "aᵇ", "g·b·aᵇ⁻¹, g·y·ln a (0 at a = 0)"};
inline constexpr auto mul0_ = Binary{"mul0", Saves::ab, [](auto a, auto b) { return mul0(a, b); },
    []<class T>(const T& g, const T&, const T& b, const T&) { return mul0(g, b); },
    []<class T>(const T& g, const T& a, const T&, const T&) { return mul0(g, a); }, "a·b, 0 where a = 0", "mul0(g, b), mul0(g, a)"};
inline constexpr auto atan2_ = Binary{"atan2", Saves::ab, [](auto a, auto b) { return atan2(a, b); },
    []<class T>(const T& g, const T& a, const T& b, const T&) {
      const T h = hypot(a, b), r = where(h == num<T>(0), num<T>(1), h); return mul0(g, where(h == num<T>(0), num<T>(0), b / r / r)); },
    []<class T>(const T& g, const T& a, const T& b, const T&) {
      const T h = hypot(a, b), r = where(h == num<T>(0), num<T>(1), h); return mul0(g, where(h == num<T>(0), num<T>(0), -a / r / r)); },
    "the angle of (b, a)", "g·b/(a² + b²), −g·a/(a² + b²); 0 at the origin"};
inline constexpr auto hypot_ = Binary{"hypot", Saves::aby, [](auto a, auto b) { return hypot(a, b); },
    []<class T>(const T& g, const T& a, const T&, const T& y) { return g * where(y == num<T>(0), num<T>(0), a / where(y == num<T>(0), num<T>(1), y)); },
    []<class T>(const T& g, const T&, const T& b, const T& y) { return g * where(y == num<T>(0), num<T>(0), b / where(y == num<T>(0), num<T>(1), y)); },
    "√(a² + b²)", "g·a/y, g·b/y; 0 at the origin"};
inline constexpr auto fmod_ = Binary{"fmod", Saves::aby, [](auto a, auto b) { return rem(a, b); },
    []<class T>(const T& g, const T&, const T&, const T&) { return g; },
    []<class T>(const T& g, const T& a, const T& b, const T& y) { return mul0(g, -round((a - y) / b)); },
    "a − b·trunc(a/b)", "g, −g·trunc(a/b)"};
inline constexpr auto remainder_ = Binary{"remainder", Saves::aby, [](auto a, auto b) { return mod(a, b); },
    []<class T>(const T& g, const T&, const T&, const T&) { return g; },
    []<class T>(const T& g, const T& a, const T& b, const T& y) { return mul0(g, -round((a - y) / b)); },
    "a − b·floor(a/b)", "g, −g·floor(a/b)"};
inline constexpr auto xlogy_ = Binary{"xlogy", Saves::ab,
    [](auto a, auto b) { return where(b == b, mul0(a, log(b)), b); },
    []<class T>(const T& g, const T&, const T& b, const T&) { return mul0(g, log(b)); },
    []<class T>(const T& g, const T& a, const T& b, const T&) { return mul0(g, mul0(a, num<T>(1) / b)); },
    "a·ln b, 0 where a = 0", "g·ln b, g·a/b; 0 where g = 0, the second where a = 0, too"};
// Both −inf: the derivative is 0, as that of logsumexp. The operands are replaced there so that no NaN arises to be multiplied by 0.
inline constexpr auto logaddexp_slope = []<class T>(const T& g, const T& a, const T& b, const T& y) {
  const auto nothing = y == num<T>(-std::numeric_limits<double>::infinity());
  return where(nothing, num<T>(0), g * sigmoid(where(nothing, num<T>(0), a) - where(nothing, num<T>(0), b))); };
inline constexpr auto logaddexp_ = Binary{"logaddexp", Saves::aby,
    []<class T>(const T& a, const T& b) {
      return where(a == b, a + num<T>(std::numbers::ln2), maximum(a, b) + log1p(exp(-abs(a - b)))); },
    []<class T>(const T& g, const T& a, const T& b, const T& y) { return logaddexp_slope(g, a, b, y); },
    []<class T>(const T& g, const T& a, const T& b, const T& y) { return logaddexp_slope(g, b, a, y); },
    "ln(eᵃ + eᵇ)", "g·σ(a − b), g·σ(b − a); 0 where both are −inf"};
inline constexpr auto copysign_ = Binary{"copysign", Saves::aby, [](auto a, auto b) { return copysign(a, b); },
    []<class T>(const T& g, const T& a, const T&, const T& y) { return g * (sign(a) * sign(y)); },
    []<class T>(const T& g, const T&, const T&, const T&) { return sign(g) * num<T>(0); }, "|a| with the sign of b", "g·sign(a)·sign(y), 0"};
inline constexpr auto prelu_ = Binary{"prelu", Saves::ab,
    []<class T>(const T& a, const T& b) { return where(a > num<T>(0), a, a * b); },
    []<class T>(const T& g, const T& a, const T& b, const T&) { return where(a > num<T>(0), g, g * b); },
    []<class T>(const T& g, const T& a, const T&, const T&) { return where(a > num<T>(0), num<T>(0), g * a); },
    "a where a > 0, else b·a", "g where a > 0, else g·b; g·a where a ≤ 0"};
// From whichever end is nearer, so that weights 0 and 1 give a and b exactly.
inline auto lerp_scalar(double w) { return Binary{"lerp_scalar", Saves::none,
    [w]<class T>(const T& a, const T& b) { return w < 0.5 ? a + num<T>(w) * (b - a) : b - num<T>(1 - w) * (b - a); },
    [w]<class T>(const T& g, const T&, const T&, const T&) { return g * num<T>(1 - w); },
    [w]<class T>(const T& g, const T&, const T&, const T&) { return g * num<T>(w); }, "a + w·(b − a)", "g·(1 − w), g·w"}; }

// Terms of losses, of a prediction a and a target b.
inline constexpr double exp_minus_100 = 3.7200759760208359630e-44;
inline constexpr auto bce = Binary{"binary_cross_entropy", Saves::ab,
    []<class T>(const T& a, const T& b) {
      const T p = maximum(log(a), num<T>(-100)), q = maximum(log1p(-a), num<T>(-100)); return -(b * p + (num<T>(1) - b) * q); },
    []<class T>(const T& g, const T& a, const T& b, const T&) {
      const T p = where(a > num<T>(exp_minus_100), b / a, num<T>(0)), q = where(a < num<T>(1), (num<T>(1) - b) / (num<T>(1) - a), num<T>(0)); return mul0(g, q - p); },
    []<class T>(const T& g, const T& a, const T&, const T&) {
      const T p = maximum(log(a), num<T>(-100)), q = maximum(log1p(-a), num<T>(-100)); return g * (q - p); },
    "−t·max(ln p, −100) − (1 − t)·max(ln(1 − p), −100)", "g·((1 − t)/(1 − p) − t/p), a term being 0 where its logarithm is held; g·(ln(1 − p) − ln p)"};
inline constexpr auto kl_term = Binary{"kl_div", Saves::ab,
    [](auto a, auto b) { return mul0(b, log(b) - a); },
    []<class T>(const T& g, const T&, const T& b, const T&) { return -(g * b); },
    []<class T>(const T& g, const T& a, const T& b, const T&) { return mul0(g, log(b) + num<T>(1) - a); },
    "t·(ln t − q), 0 where t = 0", "−g·t, g·(ln t + 1 − q)"};
// clang-format on

}  // namespace tapestry::rows
