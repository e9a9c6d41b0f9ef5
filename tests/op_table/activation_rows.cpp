// Rows of the activations of one operand.
// Not prelu (function_rows.cpp). Next: binary_rows.cpp.
#include "../../ops/ops.h"
#include "elementwise.h"
#include "op_table.h"

namespace tapestry::op_table {
namespace {

using reference::sigmoid;
constexpr double pi = 3.14159265358979323846;

double phi(double x) { return 0.5 * std::erfc(-x * std::sqrt(0.5)); }

// clang-format off
constexpr OpRow rows[] = {
    unary("logsigmoid", [](Args a) { return logsigmoid(a[0]); }, [](double x) { return std::log(sigmoid(x)); }),
    unary("softplus", [](Args a) { return softplus(a[0]); }, [](double x) { return std::log1p(std::exp(x)); }),
    unary("relu", [](Args a) { return relu(a[0]); }, [](double x) { return x > 0 ? x : 0; }),
    unary("leaky_relu", [](Args a) { return leaky_relu(a[0], 0.1); }, [](double x) { return x > 0 ? x : 0.1 * x; }),
    with(unary("soft_cap", [](Args a) { return soft_cap(a[0], 1.5); }, [](double x) { return 1.5 * std::tanh(x / 1.5); }, {.low = -4, .high = 4}),
         {[] { (void)soft_cap(zeros({2}), 0); }, "soft_cap: cap is 0; it must be positive and finite"}),
    unary("silu", [](Args a) { return silu(a[0]); }, [](double x) { return x * sigmoid(x); }),
    unary("gelu", [](Args a) { return gelu(a[0]); }, [](double x) { return x * phi(x); }),
    unary("gelu_tanh", [](Args a) { return gelu_tanh(a[0]); },
          [](double x) { return x / 2 * (1 + std::tanh(std::sqrt(2 / pi) * (x + 0.044715 * x * x * x))); }),
    unary("relu_squared", [](Args a) { return relu_squared(a[0]); }, [](double x) { return x > 0 ? x * x : 0; }),
    unary("elu", [](Args a) { return elu(a[0], 1.5); }, [](double x) { return x > 0 ? x : 1.5 * std::expm1(x); }),
    with(unary("celu", [](Args a) { return celu(a[0], 1.5); }, [](double x) { return x > 0 ? x : 1.5 * std::expm1(x / 1.5); }),
         {[] { (void)celu(zeros({2}), 0); }, "celu: alpha is 0; it must be positive"}),
    unary("selu", [](Args a) { return selu(a[0]); },
          [](double x) { return 1.0507009873554805 * (x > 0 ? x : 1.6732632423543772 * std::expm1(x)); }),
    unary("relu6", [](Args a) { return relu6(a[0]); }, [](double x) { return x < 0 ? 0 : x > 6 ? 6 : x; }, {.low = -2, .high = 8}),
    with(unary("hardtanh", [](Args a) { return hardtanh(a[0], -1, 0.5); }, [](double x) { return x < -1 ? -1 : x > 0.5 ? 0.5 : x; }),
         {[] { (void)hardtanh(zeros({2}), 1, -1); }, "hardtanh: low 1 is not at most high -1"}),
    unary("hardsigmoid", [](Args a) { return hardsigmoid(a[0]); }, [](double x) { return x < -3 ? 0 : x > 3 ? 1 : (x + 3) / 6; }, {.low = -4, .high = 4}),
    unary("hardswish", [](Args a) { return hardswish(a[0]); }, [](double x) { return x < -3 ? 0 : x > 3 ? x : x * (x + 3) / 6; }, {.low = -4, .high = 4}),
    unary("softsign", [](Args a) { return softsign(a[0]); }, [](double x) { return x / (1 + std::fabs(x)); }),
    unary("mish", [](Args a) { return mish(a[0]); }, [](double x) { return x * std::tanh(std::log1p(std::exp(x))); }, {.low = -4, .high = 4}),
    with(unary("softshrink", [](Args a) { return softshrink(a[0]); }, [](double x) { return x > 0.5 ? x - 0.5 : x < -0.5 ? x + 0.5 : 0; }),
         {[] { (void)softshrink(zeros({2}), -1); }, "softshrink: lambda is -1; it must not be negative"}),
    with(unary("hardshrink", [](Args a) { return hardshrink(a[0]); }, [](double x) { return std::fabs(x) > 0.5 ? x : 0; }),
         {[] { (void)hardshrink(zeros({2}), -1); }, "hardshrink: lambda is -1; it must not be negative"}),
    unary("tanhshrink", [](Args a) { return tanhshrink(a[0]); }, [](double x) { return x - std::tanh(x); }),
};
// clang-format on

}  // namespace

std::span<const OpRow> activation_rows() { return rows; }

}  // namespace tapestry::op_table
