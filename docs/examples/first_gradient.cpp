// The first example of the README: tanh made of exp, and its gradient beside a finite difference.
#include <tapestry/ops/ops.h>

#include <cstdio>

using namespace tapestry;

Tensor my_tanh(const Tensor& x) {
  const Tensor e = exp(-2.0 * x);
  return (1.0 - e) / (1.0 + e);
}

int main() {
  const Tensor x = scalar(1.0, DType::f64);
  x.requires_grad_();
  my_tanh(x).backward();

  const double h = 1e-6;
  const Tensor up = my_tanh(x + h), down = my_tanh(x - h);
  std::printf("gradient           %.9f\n", x.grad().item());
  std::printf("finite difference  %.9f\n", (up.item() - down.item()) / (2 * h));
}
