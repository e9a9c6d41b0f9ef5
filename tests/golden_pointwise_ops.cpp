// Golden ops of one element each, and losses made of them.
// Next: golden_shape_ops.cpp.
#include <cmath>
#include <limits>

#include "golden_ops.h"

namespace tapestry::golden {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

template <Tensor (*f)(const Tensor&)>
Tensor unary(const Args& a) {
  return f(a["x"]);
}
template <Tensor (*f)(const Tensor&, const Tensor&)>
Tensor binary(const Args& a) {
  return f(a["a"], a["b"]);
}

Reduction reduction(const Args& a) {
  const std::string how = a.text("reduction", "mean");
  return how == "none" ? Reduction::none : how == "sum" ? Reduction::sum : Reduction::mean;
}

Tensor power(const Args& a) { return pow(a["x"], a.number("exponent", 2)); }
double c(const Args& a) { return a.number("c", 0); }

constexpr Op rows[] = {
    {"exp", unary<exp>},
    {"log", unary<log>},
    {"log1p", unary<log1p>},
    {"expm1", unary<expm1>},
    {"sqrt", unary<sqrt>},
    {"rsqrt", unary<rsqrt>},
    {"reciprocal", unary<reciprocal>},
    {"square", unary<square>},
    {"abs", unary<abs>},
    {"sign", unary<sign>},
    {"sin", unary<sin>},
    {"cos", unary<cos>},
    {"tan", unary<tan>},
    {"asin", unary<asin>},
    {"atan", unary<atan>},
    {"sinh", unary<sinh>},
    {"cosh", unary<cosh>},
    {"erf", unary<erf>},
    {"floor", unary<floor>},
    {"ceil", unary<ceil>},
    {"round", unary<round>},
    {"trunc", unary<trunc>},
    {"frac", unary<frac>},
    {"x_log_x", [](const Args& a) { return xlogy(a["x"], a["x"]); }},
    {"silu", unary<silu>},
    {"gelu", unary<gelu>},
    {"gelu_tanh", unary<gelu_tanh>},
    {"relu", unary<relu>},
    {"relu_squared", unary<relu_squared>},
    {"sigmoid", unary<sigmoid>},
    {"tanh", unary<tanh>},
    {"softplus", unary<softplus>},
    {"logsigmoid", unary<logsigmoid>},
    {"leaky_relu", [](const Args& a) { return leaky_relu(a["x"]); }},
    {"cube", [](const Args& a) { return pow(a["x"], 3); }},
    {"elu", [](const Args& a) { return elu(a["x"]); }},
    {"quick_gelu", [](const Args& a) { return a["x"] * sigmoid(1.702 * a["x"]); }},
    {"silu_gelu",
     [](const Args& a) {
       return Outputs{{"silu", silu(a["x"])}, {"gelu", gelu(a["x"])}, {"gelu_tanh", gelu_tanh(a["x"])}};
     }},

    {"add", binary<add>},
    {"mul", binary<mul>},
    {"div", binary<div>},
    {"minimum", binary<minimum>},
    {"maximum", binary<maximum>},
    {"pow", binary<pow>},
    {"pow_const", power},
    {"scalar: x+c", [](const Args& a) { return a["x"] + c(a); }},
    {"scalar: c-x", [](const Args& a) { return c(a) - a["x"]; }},
    {"scalar: c*x", [](const Args& a) { return c(a) * a["x"]; }},
    {"scalar: x/c", [](const Args& a) { return a["x"] / c(a); }},
    {"scalar: c/x", [](const Args& a) { return c(a) / a["x"]; }},
    {"scalar: x**c", [](const Args& a) { return pow(a["x"], c(a)); }},
    {"scalar: |c|**x", [](const Args& a) { return pow(full({}, std::abs(c(a)), a.dtype), a["x"]); }},
    {"scalar: -x", [](const Args& a) { return -a["x"]; }},
    {"int_times_float", [](const Args& a) { return a["x"] * to(a["k"], a.dtype); }},
    {"bool_times_float", [](const Args& a) { return a["x"] * to(a["k"], a.dtype); }},
    {"broadcast_mul_add", [](const Args& a) { return a["a"] * a["b"] + a["c"]; }},
    {"clamp", [](const Args& a) { return clamp(a["x"], a.number("min", -infinity), a.number("max", infinity)); }},
    {"rms_eps", [](const Args& a) { return sqrt(mean(square(a["x"]), {-1}) + a.number("eps", 0)); }},

    {"where", [](const Args& a) { return where(a["c"], a["a"], a["b"]); }},
    {"where_nan_branch", [](const Args& a) { return where(a["x"] > 0.0, sqrt(a["x"]), 0.0); }},
    {"masked_fill", [](const Args& a) { return masked_fill(a["x"], a["m"], a.number("value", 0)); }},
    {"compare",
     [](const Args& a) {
       return Outputs{{"eq", a["a"] == a["b"]}, {"ne", a["a"] != a["b"]}, {"lt", a["a"] < a["b"]},
                      {"le", a["a"] <= a["b"]}, {"gt", a["a"] > a["b"]},  {"ge", a["a"] >= a["b"]}};
     }},
    {"ops/nan:where", [](const Args& a) { return where(isnan(a["x"]), 0.0, a["x"]); }},
    {"ops/nan:clamp_relu",
     [](const Args& a) {
       return Outputs{{"clamp", clamp(a["x"], -1, 1)},
                      {"relu", relu(a["x"])},
                      {"sigmoid", sigmoid(a["x"])},
                      {"tanh", tanh(a["x"])}};
     }},
    {"predicates",
     [](const Args& a) {
       const Tensor& x = a["x"];
       return Outputs{{"isnan", isnan(x)}, {"isfinite", isfinite(x)}, {"isinf", isinf(x)}};
     }},
    {"arithmetic",
     [](const Args& a) {
       return Outputs{{"sub", a["a"] - a["b"]}, {"mul", a["a"] * a["b"]}, {"div", a["a"] / a["b"]}};
     }},

    {"reuse: x*x + x", [](const Args& a) { return a["x"] * a["x"] + a["x"]; }},
    {"diamond: h = x w; tanh(h)*sigmoid(h) + h",
     [](const Args& a) {
       const Tensor h = matmul(a["x"], a["w"]);
       return tanh(h) * sigmoid(h) + h;
     }},
    {"detach: x * stop_gradient(x)", [](const Args& a) { return a["x"] * a["x"].detach(); }},
    {"unused: 2x; w unused", [](const Args& a) { return 2.0 * a["x"]; }},
    {"two_outputs",
     [](const Args& a) {
       return Outputs{{"a", exp(a["x"])}, {"b", sum(a["x"])}};
     }},
    {"inplace_chain: y = 3x; y *= 2; y += x",
     [](const Args& a) {
       Tensor y = 3.0 * a["x"];
       y *= 2.0;
       y += a["x"];
       return y;
     }},

    {"mse", [](const Args& a) { return mse_loss(a["p"], a["t"], reduction(a)); }},
    {"l1", [](const Args& a) { return l1_loss(a["p"], a["t"], reduction(a)); }},
    {"bce_with_logits", [](const Args& a) { return binary_cross_entropy_with_logits(a["p"], a["t"], reduction(a)); }},
    {"huber", [](const Args& a) { return huber_loss(a["p"], a["t"], a.number("delta", 1)); }},
    {"smooth_l1", [](const Args& a) { return smooth_l1_loss(a["p"], a["t"], a.number("beta", 1)); }},
    {"bce", [](const Args& a) { return binary_cross_entropy(a["p"], a["t"]); }},
    {"nll", [](const Args& a) { return nll_loss(a["lp"], a["t"]); }},
    {"kl_div", [](const Args& a) { return kl_div(a["lp"], a["t"]); }},
    {"cosine_similarity", [](const Args& a) { return cosine_similarity(a["a"], a["b"], -1, a.number("eps", 0)); }},
};

}  // namespace

std::span<const Op> pointwise_ops() { return rows; }

}  // namespace tapestry::golden
