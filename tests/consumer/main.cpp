// A user's program: includes the installed umbrella header, links the package, checks one derivative and one options struct. Not part of tapestry_tests.
#include <tapestry/tapestry.h>

#include <cmath>
#include <cstdio>

using namespace tapestry;

// Equal constants before zeros, passed by value: GCC 12 on AVX-512 changes them without the options the package brings.
[[gnu::noinline]] double dampening_of(SGD::Options o) {
  asm volatile("" : : "r"(&o) : "memory");
  return o.dampening;
}

int main() {
  const Tensor x = tensor<double>({-1.5, 0.0, 0.5});
  x.requires_grad_();
  sum(tanh(x)).backward();
  const std::vector<double> g = x.grad().to_vector<double>();
  for (int i = 0; i < 3; ++i) {
    const double at = x.to_vector<double>()[static_cast<size_t>(i)], eps = 1e-6;
    const double numeric = (std::tanh(at + eps) - std::tanh(at - eps)) / (2 * eps);
    std::printf("d tanh(%g)/dx = %.9f, finite difference %.9f\n", at, g[static_cast<size_t>(i)], numeric);
    if (!(std::abs(g[static_cast<size_t>(i)] - numeric) < 1e-8)) return 1;
  }
  if (dampening_of({.lr = 0.5, .momentum = 0.5, .nesterov = true}) != 0) {
    std::printf("the package's compile options did not arrive: an options struct changed on its way\n");
    return 2;
  }
  return 0;
}
