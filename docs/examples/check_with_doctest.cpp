// How a project of one's own checks derivatives in its doctest cases (docs/gradcheck.md).
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <doctest/doctest.h>
#include <tapestry/autograd/tools/gradcheck.h>
#include <tapestry/ops/ops.h>

using namespace tapestry;

// clang-format off
#define CHECK_DERIVATIVES(f, ...)                                    \
  do {                                                               \
    const GradcheckResult first = gradcheck(f, {__VA_ARGS__});       \
    CHECK_MESSAGE(first.ok, first.message);                          \
    const GradcheckResult second = gradgradcheck(f, {__VA_ARGS__});  \
    CHECK_MESSAGE(second.ok, second.message);                        \
  } while (false)
// clang-format on

TEST_CASE("a gated product") {
  manual_seed(1);
  const Tensor a = randn({3, 4}, DType::f64).requires_grad_(), b = randn({4}, DType::f64).requires_grad_();
  const auto gated = [](const Tensor& x, const Tensor& w) { return sigmoid(x * w) * x; };
  CHECK_DERIVATIVES(gated, a, b);
}

TEST_CASE("a wrong derivative is found") {
  const Tensor x = tensor<double>({0.5, 2}).requires_grad_();
  const auto half = [](const Tensor& t) { return t * t.detach(); };  // the product rule, half done
  const GradcheckResult result = gradcheck(half, {x});
  CHECK_FALSE(result.ok);
  MESSAGE(result.message);
}
