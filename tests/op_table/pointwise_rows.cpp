// Rows of the pointwise ops of one operand, those with a number as the other included.
// Not activations (activation_rows.cpp). Next: activation_rows.cpp.
#include "../../ops/ops.h"
#include "elementwise.h"
#include "op_table.h"

namespace tapestry::op_table {
namespace {

using reference::sigmoid;
constexpr OpRow number(const char* name, Function fn, Point point, ErrorCase error, const Elementwise& e) {
  OpRow row = unary(name, fn, point, e);
  row.errors[0] = error;
  return row;
}

// clang-format off
constexpr OpRow rows[] = {
    unary("neg", [](Args a) { return neg(a[0]); }, [](double x) { return -x; }, {.i64 = true}),
    unary("abs", [](Args a) { return abs(a[0]); }, [](double x) { return std::fabs(x); }, {.i64 = true}),
    unary("sign", [](Args a) { return sign(a[0]); }, [](double x) { return x > 0 ? 1. : x < 0 ? -1. : 0.; },
          {.i64 = true, .zero_derivative = true, .formula = "−1, 0 or 1", .vjp = "0"}),
    unary("exp", [](Args a) { return exp(a[0]); }, [](double x) { return std::exp(x); }),
    unary("exp2", [](Args a) { return exp2(a[0]); }, [](double x) { return std::exp2(x); }),
    unary("expm1", [](Args a) { return expm1(a[0]); }, [](double x) { return std::expm1(x); }),
    unary("log", [](Args a) { return log(a[0]); }, [](double x) { return std::log(x); }, {.low = 0.3, .high = 3}),
    unary("log2", [](Args a) { return log2(a[0]); }, [](double x) { return std::log2(x); }, {.low = 0.3, .high = 3}),
    unary("log10", [](Args a) { return log10(a[0]); }, [](double x) { return std::log10(x); }, {.low = 0.3, .high = 3}),
    unary("log1p", [](Args a) { return log1p(a[0]); }, [](double x) { return std::log1p(x); }, {.low = -0.6, .high = 2}),
    unary("sqrt", [](Args a) { return sqrt(a[0]); }, [](double x) { return std::sqrt(x); }, {.low = 0.3, .high = 3}),
    unary("rsqrt", [](Args a) { return rsqrt(a[0]); }, [](double x) { return 1 / std::sqrt(x); }, {.low = 0.3, .high = 3}),
    unary("square", [](Args a) { return square(a[0]); }, [](double x) { return x * x; }, {.i64 = true}),
    unary("reciprocal", [](Args a) { return reciprocal(a[0]); }, [](double x) { return 1 / x; }, {.low = 0.4, .high = 2}),
    unary("sin", [](Args a) { return sin(a[0]); }, [](double x) { return std::sin(x); }),
    unary("cos", [](Args a) { return cos(a[0]); }, [](double x) { return std::cos(x); }),
    unary("tan", [](Args a) { return tan(a[0]); }, [](double x) { return std::tan(x); }, {.low = -1.2, .high = 1.2}),
    unary("asin", [](Args a) { return asin(a[0]); }, [](double x) { return std::asin(x); }, {.low = -0.8, .high = 0.8}),
    unary("acos", [](Args a) { return acos(a[0]); }, [](double x) { return std::acos(x); }, {.low = -0.8, .high = 0.8}),
    unary("atan", [](Args a) { return atan(a[0]); }, [](double x) { return std::atan(x); }),
    unary("sinh", [](Args a) { return sinh(a[0]); }, [](double x) { return std::sinh(x); }),
    unary("cosh", [](Args a) { return cosh(a[0]); }, [](double x) { return std::cosh(x); }),
    unary("asinh", [](Args a) { return asinh(a[0]); }, [](double x) { return std::asinh(x); }),
    unary("acosh", [](Args a) { return acosh(a[0]); }, [](double x) { return std::acosh(x); }, {.low = 1.2, .high = 3}),
    unary("atanh", [](Args a) { return atanh(a[0]); }, [](double x) { return std::atanh(x); }, {.low = -0.8, .high = 0.8}),
    unary("tanh", [](Args a) { return tanh(a[0]); }, [](double x) { return std::tanh(x); }),
    unary("erf", [](Args a) { return erf(a[0]); }, [](double x) { return std::erf(x); }),
    unary("erfc", [](Args a) { return erfc(a[0]); }, [](double x) { return std::erfc(x); }),
    unary("sigmoid", [](Args a) { return sigmoid(a[0]); }, [](double x) { return reference::sigmoid(x); }),
    unary("logit", [](Args a) { return logit(a[0]); }, [](double x) { return std::log(x / (1 - x)); }, {.low = 0.2, .high = 0.8}),
    unary("frac", [](Args a) { return frac(a[0]); }, [](double x) { return x - std::trunc(x); }),
    unary("nan_to_num", [](Args a) { return nan_to_num(a[0]); }, [](double x) { return x; }),
    unary("clamp", [](Args a) { return clamp(a[0], -1, 1); }, [](double x) { return x < -1 ? -1 : x > 1 ? 1 : x; }, {.i64 = true}),
    unary("floor", [](Args a) { return floor(a[0]); }, [](double x) { return std::floor(x); },
          {.i64 = true, .zero_derivative = true, .formula = "largest whole number ≤ x", .vjp = "0"}),
    unary("ceil", [](Args a) { return ceil(a[0]); }, [](double x) { return std::ceil(x); },
          {.i64 = true, .zero_derivative = true, .formula = "smallest whole number ≥ x", .vjp = "0"}),
    unary("round", [](Args a) { return round(a[0]); }, [](double x) { return std::nearbyint(x); },
          {.i64 = true, .zero_derivative = true, .formula = "nearest whole number, half to even", .vjp = "0"}),
    unary("trunc", [](Args a) { return trunc(a[0]); }, [](double x) { return std::trunc(x); },
          {.i64 = true, .zero_derivative = true, .formula = "x without its fraction", .vjp = "0"}),
    with(unary("pow_scalar", [](Args a) { return pow(a[0], 2.5); }, [](double x) { return std::pow(x, 2.5); }, {.low = 0.3, .high = 2}),
         {[] { (void)pow(zeros({2}, DType::i64), 2.5); }, "pow: not defined for [2] i64; convert with to(x, DType::f32)"}),
    unary("pow_scalar (p = 3)", [](Args a) { return pow(a[0], 3); }, [](double x) { return x * x * x; }),
    unary("pow_scalar (p = −1.5)", [](Args a) { return pow(a[0], -1.5); }, [](double x) { return std::pow(x, -1.5); },
          {.low = 0.4, .high = 2}),
    unary("pow_scalar (p = 2)", [](Args a) { return pow(a[0], 2); }, [](double x) { return x * x; }, {.formula = "x²", .vjp = "2·g·x"}),
    unary("pow_scalar (p = 1)", [](Args a) { return pow(a[0], 1); }, [](double x) { return x; }),
    unary("pow_scalar (p = 0)", [](Args a) { return pow(a[0], 0); }, [](double) { return 1.; }, {.zero_derivative = true, .formula = "1", .vjp = "0"}),
    unary("add_scalar", [](Args a) { return 2 + a[0]; }, [](double x) { return x + 2; }, {.i64 = true}),
    unary("sub_scalar", [](Args a) { return a[0] - 2; }, [](double x) { return x - 2; }, {.i64 = true}),
    unary("rsub_scalar", [](Args a) { return 2 - a[0]; }, [](double x) { return 2 - x; }, {.i64 = true}),
    unary("mul_scalar", [](Args a) { return 3 * a[0]; }, [](double x) { return x * 3; }, {.i64 = true}),
    unary("div_scalar", [](Args a) { return a[0] / 3; }, [](double x) { return x / 3; }),
    unary("rdiv_scalar", [](Args a) { return 2 / a[0]; }, [](double x) { return 2 / x; }, {.low = 0.4, .high = 2}),
    unary("maximum_scalar", [](Args a) { return maximum(a[0], 1); }, [](double x) { return x > 1 ? x : 1; }, {.i64 = true}),
    unary("minimum_scalar", [](Args a) { return minimum(a[0], 1); }, [](double x) { return x < 1 ? x : 1; }, {.i64 = true}),
    number("fmod_scalar", [](Args a) { return fmod(a[0], 3); }, [](double x) { return std::fmod(x, 3); },
           {[] { (void)fmod(zeros({2}, DType::i64), 0); }, "fmod: division of whole numbers by 0: a is [2] i64"},
           {.low = -5, .high = 5, .i64 = true}),
    number("remainder_scalar", [](Args a) { return remainder(a[0], -3); }, [](double x) { return x + 3 * std::floor(x / -3); },
           {[] { (void)remainder(zeros({2}, DType::i64), 0); }, "remainder: division of whole numbers by 0: a is [2] i64"},
           {.low = -5, .high = 5, .i64 = true}),
    number("floor_divide_scalar", [](Args a) { return floor_divide(a[0], -3); }, [](double x) { return std::floor(x / -3); },
           {[] { (void)floor_divide(zeros({2}, DType::i64), 2.5); }, "floor_divide: the number 2.5 is not a whole one, the tensor is [2] i64"},
           {.low = -5, .high = 5, .i64 = true, .zero_derivative = true, .formula = "floor(x/s)", .vjp = "0"}),
    unary("equal_scalar", [](Args a) { return equal(a[0], 0); }, [](double x) { return x == 0; },
          {.i64 = true, .differentiable = false, .formula = "x = s"}),
    unary("not_equal_scalar", [](Args a) { return a[0] != 0; }, [](double x) { return x != 0; },
          {.i64 = true, .differentiable = false, .formula = "x ≠ s"}),
    unary("less_scalar", [](Args a) { return a[0] < 0.5; }, [](double x) { return x < 0.5; },
          {.i64 = true, .differentiable = false, .formula = "x < s"}),
    unary("less_equal_scalar", [](Args a) { return a[0] <= 0; }, [](double x) { return x <= 0; },
          {.i64 = true, .differentiable = false, .formula = "x ≤ s"}),
    unary("greater_scalar", [](Args a) { return a[0] > 0.5; }, [](double x) { return x > 0.5; },
          {.i64 = true, .differentiable = false, .formula = "x > s"}),
    unary("greater_equal_scalar", [](Args a) { return a[0] >= 0; }, [](double x) { return x >= 0; },
          {.i64 = true, .differentiable = false, .formula = "x ≥ s"}),
    unary("isnan", [](Args a) { return isnan(log(a[0])); }, [](double x) { return x < 0; }, {.differentiable = false, .formula = "x ≠ x"}),
    unary("isfinite", [](Args a) { return isfinite(sqrt(a[0])); }, [](double x) { return x >= 0; },
          {.differentiable = false, .formula = "neither ±inf nor NaN"}),
    unary("isinf", [](Args a) { return isinf(log(relu(a[0]))); }, [](double x) { return x <= 0; },
          {.differentiable = false, .formula = "x is ±inf"}),
    unary("logical_not", [](Args a) { return logical_not(a[0]); }, [](double x) { return x == 0; },
          {.i64 = true, .differentiable = false, .formula = "x = 0"}),
};
// clang-format on

}  // namespace

std::span<const OpRow> pointwise_rows() { return rows; }

}  // namespace tapestry::op_table
