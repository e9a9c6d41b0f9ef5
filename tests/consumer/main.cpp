// A user's program: links the package, defines ops and a module of its own, and checks their derivatives. Not part of tapestry_tests.
// Next: log_cosh.h, row_variance.h, calm_linear.h.
#include <tapestry/autograd/tools/gradcheck.h>
#include <tapestry/nn/visitor.h>
#include <tapestry/optim/sgd.h>

#include <cmath>
#include <cstdio>

#include "calm_linear.h"

using namespace tapestry;

// Equal constants before zeros, passed by value: GCC 12 on AVX-512 changes them without the options the package brings.
[[gnu::noinline]] double dampening_of(SGD::Options o) {
  asm volatile("" : : "r"(&o) : "memory");
  return o.dampening;
}

int failures = 0;
void check(bool ok, const char* what, const std::string& message = "") {
  std::printf("%s %s %s\n", ok ? "ok    " : "FAILED", what, message.c_str());
  failures += ok ? 0 : 1;
}

void check_derivatives(const char* what, const TensorFunction& f, const std::vector<Tensor>& inputs) {
  const GradcheckResult first = gradcheck(f, inputs), second = gradgradcheck(f, inputs);
  check(first.ok, what, first.message);
  check(second.ok, what, second.message);
}

int main() {
  manual_seed(1);
  const Tensor x = randn({3, 4}, DType::f64).requires_grad_();
  check_derivatives("log_cosh", log_cosh, {x});
  check_derivatives("row_variance", row_variance, {x});
  check_derivatives("row_variance of what comes from x", [](const Tensor& t) { return row_variance(t * tanh(t)); },
                    {x});
  check(std::abs(log_cosh(scalar(-1000, DType::f64)).item() - (1000 - std::log(2.0))) < 1e-9, "log_cosh far out");

  CalmLinear module(4, 2);
  to(module, DType::f64);
  check_derivatives("the module", [&](const Tensor& t) { return module(t); }, {x});
  sum(square(module(x))).backward();
  check(named_parameters(module).size() == 3, "three parameters");
  for (const auto& [name, p] : named_parameters(module)) check(p.grad().defined(), name.c_str());

  check(dampening_of({.lr = 0.5, .momentum = 0.5, .nesterov = true}) == 0, "the package's compile options arrived");
  return failures == 0 ? 0 : 1;
}
