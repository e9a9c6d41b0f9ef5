// A user's program: includes the installed umbrella header, links the package, checks one derivative. Not part of tapestry_tests.
#include <tapestry/tapestry.h>

#include <cmath>
#include <cstdio>

int main() {
  using namespace tapestry;
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
  return 0;
}
