// The table of pointwise ops: name, what is saved, the formula, its derivative.
// Formulas call only what kernels/formula.h declares for all kinds of value, and write constants as num<T>(0.5).
// Next: pointwise.cpp, which makes ops of the rows.
#pragma once

#include <cmath>
#include <numbers>

#include "pointwise_row.h"

namespace tapestry::rows {

// clang-format off
inline constexpr double sqrt1_2 = 0.5 * std::numbers::sqrt2;
inline constexpr double two_over_sqrt_pi = 2 * std::numbers::inv_sqrtpi;
inline constexpr double inv_sqrt_2pi = sqrt1_2 * std::numbers::inv_sqrtpi;
inline constexpr double sqrt_2_over_pi = 2 * sqrt1_2 * std::numbers::inv_sqrtpi;

//                              name          saves         y = f(x)                                    dL/dx from g, x, y
inline constexpr auto neg = Unary{"neg", Saves::none, [](auto x) { return -x; },
    []<class T>(const T& g, const T&, const T&) { return -g; }, "−x", "−g"};
inline constexpr auto abs_ = Unary{"abs", Saves::x, [](auto x) { return abs(x); },
    []<class T>(const T& g, const T& x, const T&) { return g * sign(x); }, "|x|", "g·sign(x)"};
inline constexpr auto exp_ = Unary{"exp", Saves::y, [](auto x) { return exp(x); },
    []<class T>(const T& g, const T&, const T& y) { return g * y; }, "eˣ", "g·y"};
inline constexpr auto expm1_ = Unary{"expm1", Saves::y, [](auto x) { return expm1(x); },
    []<class T>(const T& g, const T&, const T& y) { return g * (y + num<T>(1)); }, "eˣ − 1", "g·(y + 1)"};
inline constexpr auto log_ = Unary{"log", Saves::x, [](auto x) { return log(x); },
    []<class T>(const T& g, const T& x, const T&) { return mul0(g, num<T>(1) / x); }, "ln x", "g/x"};
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
inline constexpr auto tanh_ = Unary{"tanh", Saves::y, [](auto x) { return tanh(x); },
    []<class T>(const T& g, const T&, const T& y) { return g * (num<T>(1) - y * y); }, "tanh x", "g·(1 − y²)"};
inline constexpr auto erf_ = Unary{"erf", Saves::x, [](auto x) { return erf(x); },
    []<class T>(const T& g, const T& x, const T&) { return g * (num<T>(two_over_sqrt_pi) * exp(-(x * x))); }, "erf x", "g·2/√π·e^(−x²)"};
inline constexpr auto sigmoid_ = Unary{"sigmoid", Saves::y, [](auto x) { return sigmoid(x); },
    []<class T>(const T& g, const T&, const T& y) { return g * y * (num<T>(1) - y); }, "1/(1 + e⁻ˣ)", "g·y·(1 − y)"};
inline constexpr auto logsigmoid = Unary{"logsigmoid", Saves::x,
    []<class T>(const T& x) { return minimum(x, num<T>(0)) - log1p(exp(-abs(x))); },
    []<class T>(const T& g, const T& x, const T&) { return g * sigmoid(-x); }, "ln sigmoid(x)", "g·sigmoid(−x)"};
inline constexpr auto softplus = Unary{"softplus", Saves::x,
    []<class T>(const T& x) { return maximum(x, num<T>(0)) + log1p(exp(-abs(x))); },
    []<class T>(const T& g, const T& x, const T&) { return g * sigmoid(x); }, "ln(1 + eˣ)", "g·sigmoid(x)"};
inline constexpr auto relu = Unary{"relu", Saves::y, []<class T>(const T& x) { return maximum(x, num<T>(0)); },
    []<class T>(const T& g, const T&, const T& y) { return where(y > num<T>(0), g, num<T>(0)); }, "max(x, 0)", "g where x > 0"};
inline constexpr auto silu = Unary{"silu", Saves::x, [](auto x) { return x * sigmoid(x); },
    []<class T>(const T& g, const T& x, const T&) { const T s = sigmoid(x); return g * (s * (num<T>(1) + x * (num<T>(1) - s))); },
    "x·σ(x)", "g·σ(x)(1 + x(1 − σ(x)))"};
inline constexpr auto gelu = Unary{"gelu", Saves::x,
    []<class T>(const T& x) { return num<T>(0.5) * x * (num<T>(1) + erf(x * num<T>(sqrt1_2))); },
    []<class T>(const T& g, const T& x, const T&) {
      return g * (num<T>(0.5) * (num<T>(1) + erf(x * num<T>(sqrt1_2))) + x * (num<T>(inv_sqrt_2pi) * exp(num<T>(-0.5) * (x * x)))); },
    "x·Φ(x)", "g·(Φ(x) + x·φ(x))"};
inline constexpr auto gelu_tanh = Unary{"gelu_tanh", Saves::x,
    []<class T>(const T& x) { return num<T>(0.5) * x * (num<T>(1) + tanh(num<T>(sqrt_2_over_pi) * (x + num<T>(0.044715) * (x * x * x)))); },
    []<class T>(const T& g, const T& x, const T&) {
      const T t = tanh(num<T>(sqrt_2_over_pi) * (x + num<T>(0.044715) * (x * x * x)));
      return g * (num<T>(0.5) * (num<T>(1) + t) +
                  num<T>(0.5) * x * ((num<T>(1) - t * t) * (num<T>(sqrt_2_over_pi) * (num<T>(1) + num<T>(3 * 0.044715) * (x * x))))); },
    "x/2·(1 + t), t = tanh(√(2/π)(x + 0.044715x³))", "g·((1 + t)/2 + x/2·(1 − t²)·√(2/π)(1 + 3·0.044715x²))"};
inline constexpr auto relu_squared = Unary{"relu_squared", Saves::x,
    []<class T>(const T& x) { const T r = maximum(x, num<T>(0)); return r * r; },
    []<class T>(const T& g, const T& x, const T&) { return num<T>(2) * g * maximum(x, num<T>(0)); }, "max(x, 0)²", "2·g·max(x, 0)"};

// Rows with an attribute.
inline auto leaky_relu(double s) { return Unary{"leaky_relu", Saves::x,
    [s]<class T>(const T& x) { return where(x > num<T>(0), x, x * num<T>(s)); },
    [s]<class T>(const T& g, const T& x, const T&) { return where(x > num<T>(0), g, g * num<T>(s)); }, "x where x > 0, else s·x", "g or s·g"}; }
inline auto clamp(double low, double high) { return Unary{"clamp", Saves::x,
    [low, high]<class T>(const T& x) { return minimum(maximum(x, num<T>(low)), num<T>(high)); },
    [low, high]<class T>(const T& g, const T& x, const T&) {
      return where(x >= num<T>(low), where(x <= num<T>(high), g, num<T>(0)), num<T>(0)); },
    "min(max(x, low), high)", "g where low ≤ x ≤ high"}; }
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
// clang-format on

}  // namespace tapestry::rows
