// The table of activations: pointwise functions of neural networks, with the term of the Huber loss.
// Not here: elementary functions (pointwise_table.h). Next: pointwise_activation.cpp, which makes ops of the rows.
#pragma once

#include <numbers>

#include "pointwise_row.h"

namespace tapestry::rows {

// clang-format off
inline constexpr double sqrt1_2 = 0.5 * std::numbers::sqrt2;
inline constexpr double inv_sqrt_2pi = sqrt1_2 * std::numbers::inv_sqrtpi;
inline constexpr double sqrt_2_over_pi = 2 * sqrt1_2 * std::numbers::inv_sqrtpi;

//                              name          saves         y = f(x)                                    dL/dx from g, x, y
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
inline constexpr double selu_scale = 1.0507009873554804934193349852946, selu_alpha = 1.6732632423543772848170429916717;
inline constexpr auto selu_ = Unary{"selu", Saves::x,
    []<class T>(const T& x) { return num<T>(selu_scale) * where(x > num<T>(0), x, num<T>(selu_alpha) * expm1(minimum(x, num<T>(0)))); },
    []<class T>(const T& g, const T& x, const T&) {
      return g * where(x > num<T>(0), num<T>(selu_scale), num<T>(selu_scale * selu_alpha) * exp(minimum(x, num<T>(0)))); },
    "s·elu(x, α)", "s·g where x > 0, else s·g·α·eˣ"};
inline constexpr auto hardsigmoid_ = Unary{"hardsigmoid", Saves::x,
    []<class T>(const T& x) { return minimum(maximum(x + num<T>(3), num<T>(0)), num<T>(6)) / num<T>(6); },
    []<class T>(const T& g, const T& x, const T&) { return where(abs(x) < num<T>(3), g / num<T>(6), num<T>(0)); },
    "min(max(x + 3, 0), 6)/6", "g/6 where |x| < 3"};
inline constexpr auto hardswish_ = Unary{"hardswish", Saves::x,
    []<class T>(const T& x) { return x * minimum(maximum(x + num<T>(3), num<T>(0)), num<T>(6)) / num<T>(6); },
    []<class T>(const T& g, const T& x, const T&) {
      return where(x <= num<T>(-3), num<T>(0), where(x >= num<T>(3), g, g * (x / num<T>(3) + num<T>(0.5)))); },
    "x·min(max(x + 3, 0), 6)/6", "0 where x ≤ −3, g where x ≥ 3, else g·(2x + 3)/6"};
inline constexpr auto softsign_ = Unary{"softsign", Saves::x, []<class T>(const T& x) { return x / (num<T>(1) + abs(x)); },
    []<class T>(const T& g, const T& x, const T&) { const T r = num<T>(1) / (num<T>(1) + abs(x)); return g * (r * r); }, "x/(1 + |x|)", "g/(1 + |x|)²"};
// tanh(ln(1 + eˣ)) = n/(n + 2) with n = eˣ(eˣ + 2); from 20 on it is 1.
inline constexpr auto mish_ = Unary{"mish", Saves::x,
    []<class T>(const T& x) { const T e = exp(minimum(x, num<T>(20))), n = e * (e + num<T>(2)); return x * (n / (n + num<T>(2))); },
    []<class T>(const T& g, const T& x, const T&) {
      const T e = exp(minimum(x, num<T>(20))), n = e * (e + num<T>(2)), r = num<T>(1) / (n + num<T>(2));
      return g * (n * r + x * (num<T>(4) * (e * r) * ((e + num<T>(1)) * r))); },
    "x·tanh(ln(1 + eˣ))", "g·(t + x(1 − t²)σ(x)), t = tanh(ln(1 + eˣ))"};
inline constexpr auto tanhshrink_ = Unary{"tanhshrink", Saves::x, [](auto x) { return x - tanh(x); },
    []<class T>(const T& g, const T& x, const T&) { const T t = tanh(x); return g * (t * t); }, "x − tanh x", "g·tanh² x"};

// Rows with an attribute.
inline auto leaky_relu(double s) { return Unary{"leaky_relu", Saves::x,
    [s]<class T>(const T& x) { return where(x > num<T>(0), x, x * num<T>(s)); },
    [s]<class T>(const T& g, const T& x, const T&) { return where(x > num<T>(0), g, g * num<T>(s)); }, "x where x > 0, else s·x", "g or s·g"}; }
inline auto soft_cap(double c) { return Unary{"soft_cap", Saves::y,
    [c]<class T>(const T& x) { return num<T>(c) * tanh(x / num<T>(c)); },
    [c]<class T>(const T& g, const T&, const T& y) { const T t = y / num<T>(c); return g * (num<T>(1) - t * t); },
    "c·tanh(x/c)", "g·(1 − (y/c)²)"}; }
inline auto elu(double a) { return Unary{"elu", Saves::x,
    [a]<class T>(const T& x) { return where(x > num<T>(0), x, num<T>(a) * expm1(minimum(x, num<T>(0)))); },
    [a]<class T>(const T& g, const T& x, const T&) { return where(x > num<T>(0), g, g * (num<T>(a) * exp(minimum(x, num<T>(0))))); },
    "x where x > 0, else α(eˣ − 1)", "g where x > 0, else g·α·eˣ"}; }
inline auto celu(double a) { return Unary{"celu", Saves::x,
    [a]<class T>(const T& x) { return where(x > num<T>(0), x, num<T>(a) * expm1(minimum(x, num<T>(0)) / num<T>(a))); },
    [a]<class T>(const T& g, const T& x, const T&) { return where(x > num<T>(0), g, g * exp(minimum(x, num<T>(0)) / num<T>(a))); },
    "x where x > 0, else α(e^(x/α) − 1)", "g where x > 0, else g·e^(x/α)"}; }
inline auto hardtanh(std::string_view name, double low, double high) { return Unary{name, Saves::x,
    [low, high]<class T>(const T& x) { return minimum(maximum(x, num<T>(low)), num<T>(high)); },
    [low, high]<class T>(const T& g, const T& x, const T&) { return where(x > num<T>(low), where(x < num<T>(high), g, num<T>(0)), num<T>(0)); },
    "min(max(x, low), high)", "g where low < x < high"}; }
inline auto softshrink(double l) { return Unary{"softshrink", Saves::x,
    [l]<class T>(const T& x) { return x - minimum(maximum(x, num<T>(-l)), num<T>(l)); },
    [l]<class T>(const T& g, const T& x, const T&) { return where(abs(x) > num<T>(l), g, num<T>(0)); },
    "x − min(max(x, −λ), λ)", "g where |x| > λ"}; }
inline auto hardshrink(double l) { return Unary{"hardshrink", Saves::x,
    [l]<class T>(const T& x) { return where(abs(x) <= num<T>(l), num<T>(0), x); },
    [l]<class T>(const T& g, const T& x, const T&) { return where(abs(x) <= num<T>(l), num<T>(0), g); },
    "x, 0 where |x| ≤ λ", "g where |x| > λ"}; }
// The term of huber_loss for d = x − target.
inline auto huber(double delta) { return Unary{"huber", Saves::x,
    [delta]<class T>(const T& d) {
      const T a = abs(d); return where(a <= num<T>(delta), num<T>(0.5) * d * d, num<T>(delta) * (a - num<T>(0.5 * delta))); },
    [delta]<class T>(const T& g, const T& d, const T&) { return g * minimum(maximum(d, num<T>(-delta)), num<T>(delta)); },
    "d²/2 where |d| ≤ δ, else δ(|d| − δ/2)", "g·min(max(d, −δ), δ)"}; }
// clang-format on

}  // namespace tapestry::rows
