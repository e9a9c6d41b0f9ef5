// The table of pointwise ops of one operand: name, what is saved, the formula, its derivative.
// Formulas call only what kernels/formula.h declares for all kinds of value, and write constants as num<T>(0.5). Not here: activation_table.h,
// binary_table.h. Next: pointwise.cpp, which makes ops of the rows.
#pragma once

#include <cmath>
#include <limits>
#include <numbers>

#include "pointwise_row.h"

namespace tapestry::rows {

// clang-format off
inline constexpr double infinity = std::numeric_limits<double>::infinity();
inline constexpr double two_over_sqrt_pi = 2 * std::numbers::inv_sqrtpi;

//                              name          saves         y = f(x)                                    dL/dx from g, x, y
inline constexpr auto neg = Unary{"neg", Saves::none, [](auto x) { return -x; },
    []<class T>(const T& g, const T&, const T&) { return -g; }, "−x", "−g"};
inline constexpr auto abs_ = Unary{"abs", Saves::x, [](auto x) { return abs(x); },
    []<class T>(const T& g, const T& x, const T&) { return g * sign(x); }, "|x|", "g·sign(x)"};
inline constexpr auto exp_ = Unary{"exp", Saves::y, [](auto x) { return exp(x); },
    []<class T>(const T& g, const T&, const T& y) { return g * y; }, "eˣ", "g·y"};
inline constexpr auto exp2_ = Unary{"exp2", Saves::y, [](auto x) { return exp2(x); },
    []<class T>(const T& g, const T&, const T& y) { return g * (y * num<T>(std::numbers::ln2)); }, "2ˣ", "g·y·ln 2"};
inline constexpr auto expm1_ = Unary{"expm1", Saves::y, [](auto x) { return expm1(x); },
    []<class T>(const T& g, const T&, const T& y) { return g * (y + num<T>(1)); }, "eˣ − 1", "g·(y + 1)"};
inline constexpr auto log_ = Unary{"log", Saves::x, [](auto x) { return log(x); },
    []<class T>(const T& g, const T& x, const T&) { return mul0(g, num<T>(1) / x); }, "ln x", "g/x"};
inline constexpr auto log2_ = Unary{"log2", Saves::x, [](auto x) { return log2(x); },
    []<class T>(const T& g, const T& x, const T&) { return mul0(g, num<T>(std::numbers::log2e) / x); }, "log₂ x", "g/(x·ln 2)"};
inline constexpr auto log10_ = Unary{"log10", Saves::x, [](auto x) { return log10(x); },
    []<class T>(const T& g, const T& x, const T&) { return mul0(g, num<T>(std::numbers::log10e) / x); }, "log₁₀ x", "g/(x·ln 10)"};
inline constexpr auto log1p_ = Unary{"log1p", Saves::x, [](auto x) { return log1p(x); },
    []<class T>(const T& g, const T& x, const T&) { return mul0(g, num<T>(1) / (x + num<T>(1))); }, "ln(1 + x)", "g/(1 + x)"};
inline constexpr auto sqrt_ = Unary{"sqrt", Saves::y, [](auto x) { return sqrt(x); },
    []<class T>(const T& g, const T&, const T& y) { return mul0(g, num<T>(0.5) / y); }, "√x", "g/(2y), 0 where g = 0"};
inline constexpr auto rsqrt_ = Unary{"rsqrt", Saves::y, [](auto x) { return rsqrt(x); },
    []<class T>(const T& g, const T&, const T& y) { return mul0(g, num<T>(-0.5) * y * y * y); }, "1/√x", "−g·y³/2, 0 where g = 0"};
inline constexpr auto square = Unary{"square", Saves::x, [](auto x) { return x * x; },
    []<class T>(const T& g, const T& x, const T&) { return num<T>(2) * g * x; }, "x²", "2·g·x"};
inline constexpr auto reciprocal_ = Unary{"reciprocal", Saves::y, [](auto x) { return reciprocal(x); },
    []<class T>(const T& g, const T&, const T& y) { return mul0(g, -(y * y)); }, "1/x", "−g·y², 0 where g = 0"};
inline constexpr auto sin_ = Unary{"sin", Saves::x, [](auto x) { return sin(x); },
    []<class T>(const T& g, const T& x, const T&) { return g * cos(x); }, "sin x", "g·cos x"};
inline constexpr auto cos_ = Unary{"cos", Saves::x, [](auto x) { return cos(x); },
    []<class T>(const T& g, const T& x, const T&) { return -(g * sin(x)); }, "cos x", "−g·sin x"};
inline constexpr auto tan_ = Unary{"tan", Saves::y, [](auto x) { return tan(x); },
    []<class T>(const T& g, const T&, const T& y) { return g * (num<T>(1) + y * y); }, "tan x", "g·(1 + y²)"};
inline constexpr auto asin_ = Unary{"asin", Saves::x, [](auto x) { return asin(x); },
    []<class T>(const T& g, const T& x, const T&) { return mul0(g, rsqrt((num<T>(1) - x) * (num<T>(1) + x))); }, "asin x", "g/√(1 − x²), 0 where g = 0"};
inline constexpr auto acos_ = Unary{"acos", Saves::x, [](auto x) { return acos(x); },
    []<class T>(const T& g, const T& x, const T&) { return mul0(g, -rsqrt((num<T>(1) - x) * (num<T>(1) + x))); }, "acos x", "−g/√(1 − x²), 0 where g = 0"};
inline constexpr auto atan_ = Unary{"atan", Saves::x, [](auto x) { return atan(x); },
    []<class T>(const T& g, const T& x, const T&) { return g / (num<T>(1) + x * x); }, "atan x", "g/(1 + x²)"};
inline constexpr auto sinh_ = Unary{"sinh", Saves::x, [](auto x) { return sinh(x); },
    []<class T>(const T& g, const T& x, const T&) { return mul0(g, cosh(x)); }, "sinh x", "g·cosh x"};
inline constexpr auto cosh_ = Unary{"cosh", Saves::x, [](auto x) { return cosh(x); },
    []<class T>(const T& g, const T& x, const T&) { return mul0(g, sinh(x)); }, "cosh x", "g·sinh x"};
inline constexpr auto asinh_ = Unary{"asinh", Saves::x, [](auto x) { return asinh(x); },
    []<class T>(const T& g, const T& x, const T&) { return g * rsqrt(num<T>(1) + x * x); }, "asinh x", "g/√(1 + x²)"};
inline constexpr auto acosh_ = Unary{"acosh", Saves::x, [](auto x) { return acosh(x); },
    []<class T>(const T& g, const T& x, const T&) { return mul0(g, rsqrt(x - num<T>(1)) * rsqrt(x + num<T>(1))); }, "acosh x", "g/√(x² − 1), 0 where g = 0"};
inline constexpr auto atanh_ = Unary{"atanh", Saves::x, [](auto x) { return atanh(x); },
    []<class T>(const T& g, const T& x, const T&) { return mul0(g, num<T>(1) / ((num<T>(1) - x) * (num<T>(1) + x))); }, "atanh x", "g/(1 − x²), 0 where g = 0"};
inline constexpr auto tanh_ = Unary{"tanh", Saves::y, [](auto x) { return tanh(x); },
    []<class T>(const T& g, const T&, const T& y) { return g * (num<T>(1) - y * y); }, "tanh x", "g·(1 − y²)"};
inline constexpr auto erf_ = Unary{"erf", Saves::x, [](auto x) { return erf(x); },
    []<class T>(const T& g, const T& x, const T&) { return g * (num<T>(two_over_sqrt_pi) * exp(-(x * x))); }, "erf x", "g·2/√π·e^(−x²)"};
inline constexpr auto erfc_ = Unary{"erfc", Saves::x, [](auto x) { return erfc(x); },
    []<class T>(const T& g, const T& x, const T&) { return g * (num<T>(-two_over_sqrt_pi) * exp(-(x * x))); }, "1 − erf x", "−g·2/√π·e^(−x²)"};
inline constexpr auto sigmoid_ = Unary{"sigmoid", Saves::y, [](auto x) { return sigmoid(x); },
    []<class T>(const T& g, const T&, const T& y) { return g * y * (num<T>(1) - y); }, "1/(1 + e⁻ˣ)", "g·y·(1 − y)"};
inline constexpr auto frac_ = Unary{"frac", Saves::none, [](auto x) { return x - trunc(x); },
    []<class T>(const T& g, const T&, const T&) { return g; }, "x − trunc x", "g"};
inline constexpr auto logit_ = Unary{"logit", Saves::x, []<class T>(const T& x) { return log(x / (num<T>(1) - x)); },
    []<class T>(const T& g, const T& x, const T&) { return mul0(g, num<T>(1) / (x * (num<T>(1) - x))); }, "ln(x/(1 − x))", "g/(x(1 − x)), 0 where g = 0"};

// Rows with an attribute.
inline auto clamp(double low, double high) { return Unary{"clamp", Saves::x,
    [low, high]<class T>(const T& x) { return minimum(maximum(x, num<T>(low)), num<T>(high)); },
    [low, high]<class T>(const T& g, const T& x, const T&) {
      return where(x >= num<T>(low), where(x <= num<T>(high), g, num<T>(0)), num<T>(0)); },
    "min(max(x, low), high)", "g where low ≤ x ≤ high"}; }
inline auto nan_to_num(double nan, double high, double low) { return Unary{"nan_to_num", Saves::x,
    [nan, high, low]<class T>(const T& x) {
      const T finite = where(x == num<T>(-infinity), num<T>(low), where(x == num<T>(infinity), num<T>(high), x));
      return where(x == x, finite, num<T>(nan)); },
    []<class T>(const T& g, const T& x, const T&) { return where(abs(x) < num<T>(infinity), g, num<T>(0)); },
    "x, or a number where x is not finite", "g where x is finite"}; }
inline auto pow_scalar(double p) { return Unary{"pow_scalar", Saves::x, [p]<class T>(const T& x) { return pow(x, num<T>(p)); },
    [p]<class T>(const T& g, const T& x, const T&) { return mul0(g, num<T>(p) * pow(x, num<T>(p - 1))); }, "xᵖ", "g·p·xᵖ⁻¹, 0 where g = 0"}; }
inline auto add_scalar(double s) { return Unary{"add_scalar", Saves::none, [s]<class T>(const T& x) { return x + num<T>(s); },
    []<class T>(const T& g, const T&, const T&) { return g; }, "x + s", "g"}; }
inline auto sub_scalar(double s) { return Unary{"sub_scalar", Saves::none, [s]<class T>(const T& x) { return x - num<T>(s); },
    []<class T>(const T& g, const T&, const T&) { return g; }, "x − s", "g"}; }
inline auto rsub_scalar(double s) { return Unary{"rsub_scalar", Saves::none, [s]<class T>(const T& x) { return num<T>(s) - x; },
    []<class T>(const T& g, const T&, const T&) { return -g; }, "s − x", "−g"}; }
inline auto mul_scalar(double s) { return Unary{"mul_scalar", Saves::none, [s]<class T>(const T& x) { return x * num<T>(s); },
    [s]<class T>(const T& g, const T&, const T&) { return g * num<T>(s); }, "s·x", "s·g"}; }
inline auto div_scalar(double s) { return Unary{"div_scalar", Saves::none, [s]<class T>(const T& x) { return x / num<T>(s); },
    [s]<class T>(const T& g, const T&, const T&) { return g / num<T>(s); }, "x/s", "g/s"}; }
inline auto rdiv_scalar(double s) { return Unary{"rdiv_scalar", Saves::x, [s]<class T>(const T& x) { return num<T>(s) / x; },
    [s]<class T>(const T& g, const T& x, const T&) { return mul0(g, num<T>(-s) / (x * x)); }, "s/x", "−g·s/x², 0 where g = 0"}; }
inline auto maximum_scalar(double s) { return Unary{"maximum_scalar", Saves::x, [s]<class T>(const T& x) { return maximum(x, num<T>(s)); },
    [s]<class T>(const T& g, const T& x, const T&) {
      return where(x < num<T>(s), num<T>(0), where(x == num<T>(s), g * num<T>(0.5), g)); }, "max(x, s)", "g where x > s, g/2 where x = s"}; }
inline auto minimum_scalar(double s) { return Unary{"minimum_scalar", Saves::x, [s]<class T>(const T& x) { return minimum(x, num<T>(s)); },
    [s]<class T>(const T& g, const T& x, const T&) {
      return where(x > num<T>(s), num<T>(0), where(x == num<T>(s), g * num<T>(0.5), g)); }, "min(x, s)", "g where x < s, g/2 where x = s"}; }

inline auto fmod_scalar(double s) { return Unary{"fmod_scalar", Saves::none, [s]<class T>(const T& x) { return rem(x, num<T>(s)); },
    []<class T>(const T& g, const T&, const T&) { return g; }, "x − s·trunc(x/s)", "g"}; }
inline auto remainder_scalar(double s) { return Unary{"remainder_scalar", Saves::none, [s]<class T>(const T& x) { return mod(x, num<T>(s)); },
    []<class T>(const T& g, const T&, const T&) { return g; }, "x − s·floor(x/s)", "g"}; }
// clang-format on

}  // namespace tapestry::rows
