// The second example of the README: a small net learns a sine.
#include <tapestry/nn/activation.h>
#include <tapestry/nn/containers.h>
#include <tapestry/nn/linear.h>
#include <tapestry/nn/visitor.h>
#include <tapestry/ops/ops.h>
#include <tapestry/optim/adamw.h>
#include <tapestry/optim/optimizer.h>

#include <cstdio>

using namespace tapestry;

int main() {
  manual_seed(1);
  const Tensor x = reshape(linspace(-3, 3, 64), {64, 1}), y = sin(x);
  const Sequential net(Linear(1, 32), Tanh(), Linear(32, 1));
  Optimizer<AdamW> optimizer(named_parameters(net), {.lr = 1e-2});
  for (int step = 0; step < 500; ++step) {
    const Tensor loss = mse_loss(net(x), y);
    loss.backward();
    optimizer.step();
    optimizer.zero_grad();
    if (step % 100 == 99) std::printf("step %d  loss %.5f\n", step + 1, loss.item());
  }
}
