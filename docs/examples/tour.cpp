// The experiments of docs/tour.md, in its order: what is recorded, what is saved, how a walk runs, what higher orders are made of.
#include <tapestry/autograd/engine.h>
#include <tapestry/autograd/error.h>
#include <tapestry/autograd/grad_mode.h>
#include <tapestry/autograd/hooks.h>
#include <tapestry/autograd/tools/print_tape.h>
#include <tapestry/ops/ops.h>

#include <cstdio>

using namespace tapestry;

void show(const char* title, const std::string& text) { std::printf("-- %s\n%s\n", title, text.c_str()); }

void what_is_recorded() {
  const Tensor w = tensor<double>({1, 2, 3}).requires_grad_(), x = tensor<double>({4, 5, 6});
  const Tensor loss = sum(exp(w * x));
  show("the tape of a loss", print_tape(loss));
}

void what_is_shared() {
  const Tensor x = tensor<double>({{1, 2, 3}, {4, 5, 6}}), column = select(x, 1, 2);
  column.fill_(0);
  show("a view writes to its base",
       x.describe() + fmt::format(", version {}, x[1][2] is {}", x.version(), x.to_vector<double>()[5]));
}

void what_is_saved() {
  const Tensor x = tensor<double>({0.5}).requires_grad_();
  const Tensor y = exp(x), loss = sum(y);
  {
    const NoGrad raw;
    y.fill_(7);
  }
  try {
    loss.backward();
  } catch (const AutogradError& e) {
    show("a write after the save is found", e.what());
  }
}

void how_hooks_see_a_walk() {
  const Tensor x = tensor<double>({3}).requires_grad_();
  const Tensor a = 2 * x, loss = sum(a * a);
  const HookHandle on_a = a.register_hook([](const Tensor& g) {
    std::printf("gradient at a: %g\n", g.item());
    return Tensor{};
  });
  const HookHandle on_x = x.register_hook([](const Tensor& g) {
    std::printf("gradient at x: %g\n", g.item());
    return Tensor{};
  });
  std::printf("-- hooks in the order of a walk\n");
  loss.backward();
}

void what_the_second_order_is_made_of() {
  const Tensor x = tensor<double>({0.5}).requires_grad_();
  const Tensor dx = grad({tanh(x)}, {x}, {.create_graph = true})[0];
  show("the tape of a derivative", print_tape(dx));
  const Tensor ddx = grad({dx}, {x})[0];
  show("and its derivative", fmt::format("{:.6f}", ddx.item()));
}

int main() {
  what_is_recorded();
  what_is_shared();
  what_is_saved();
  how_hooks_see_a_walk();
  what_the_second_order_is_made_of();
}
