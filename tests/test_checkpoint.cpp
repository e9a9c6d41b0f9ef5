// test_checkpoint.cpp: recomputing in backward gives the bits of the plain run and takes less memory.
// Not files of weights (test_trainer.cpp, test_safetensors.cpp).
#include "../autograd/tools/checkpoint.h"

#include <doctest/doctest.h>

#include "../autograd/engine.h"
#include "../autograd/grad_mode.h"
#include "../autograd/hooks.h"
#include "../autograd/node.h"
#include "../autograd/random.h"
#include "../nn/dropout.h"
#include "../nn/linear.h"
#include "../nn/visitor.h"
#include "../ops/ops.h"

using namespace tapestry;
using V = std::vector<double>;

namespace {

V values(const Tensor& x) { return x.defined() ? x.to_vector<double>() : V{}; }

struct Block : Layer<Block> {
  Linear first{8, 32}, second{32, 8};
  Dropout noise{0.3};
  [[nodiscard]] Tensor forward(const Tensor& x) const { return x + second(noise(gelu(first(x)))); }
  void visit(Visitor& v) override {
    v.child("first", first);
    v.child("second", second);
    v.child("noise", noise);
  }
};

struct Stack : Layer<Stack> {
  Block lower, upper;
  bool checkpointed = false;
  [[nodiscard]] Tensor forward(const Tensor& x) const {
    const auto run = [&](const Block& b, const Tensor& t) {
      return checkpointed ? checkpoint([&b](const Tensor& u) { return b(u); }, t) : b(t);
    };
    return run(upper, run(lower, x));
  }
  void visit(Visitor& v) override {
    v.child("lower", lower);
    v.child("upper", upper);
  }
};

/// Loss and gradients of one step: of every parameter, and of x if it wants one.
std::vector<V> step(const Stack& model, const Tensor& x) {
  zero_grad(model);
  x.clear_grad();
  set_random_step(3);
  const Tensor loss = mean(square(model(x)));
  loss.backward();
  std::vector<V> result{values(loss), values(x.grad())};
  for (const auto& named : named_parameters(model)) result.push_back(values(named.second.grad()));
  result.push_back({uniform_f64(draw_ticket().word(0), 0)});  // the streams go on from the same place
  return result;
}

}  // namespace

TEST_SUITE("checkpoint") {
  TEST_CASE("a model with dropout: the same bits, whether its input requires a gradient or not") {
    manual_seed(1);
    Stack model;
    const Tensor x = randn({5, 8});
    for (const bool wanted : {false, true}) {
      x.requires_grad_(wanted);
      model.checkpointed = false;
      const auto plain = step(model, x);
      model.checkpointed = true;
      CHECK(step(model, x) == plain);
      CHECK(plain[1].empty() == !wanted);
    }
    model.checkpointed = false;
    const V other = values(model(x));
    CHECK(other != values(model(x)));  // dropout is on
  }

  TEST_CASE("only the inputs of the blocks are kept") {
    manual_seed(1);
    Stack model;
    const Tensor x = randn({64, 8});
    const int64_t before = memory_stats().live_bytes;
    const auto live_after_forward = [&](bool checkpointed) {
      model.checkpointed = checkpointed;
      const Tensor y = model(x);
      return memory_stats().live_bytes - before;
    };
    const int64_t plain = live_after_forward(false), kept = live_after_forward(true);
    CHECK(kept <= 2 * 64 * 8 * 4);  // the lower block's output, saved, and the upper one's
    CHECK(plain > 4 * kept);
  }

  TEST_CASE("captured leaves, captured results and inputs get their gradients, once each") {
    const int64_t nodes = Node::live();
    {
      const Tensor w = full({2}, 3, DType::f64).requires_grad_(), x = full({2}, 2, DType::f64).requires_grad_();
      const auto loss = [&](bool checkpointed) {
        const Tensor h = w * 2.0;  // f uses both h and w: w must not be counted through h twice
        const auto f = [h, w](const Tensor& t) { return t * t * h * w; };
        return sum((checkpointed ? checkpoint(f, x) : f(x)) + h);
      };
      CHECK(values(grad({loss(true)}, {x, w})[0]) == values(grad({loss(false)}, {x, w})[0]));
      CHECK(values(grad({loss(true)}, {w})[0]) == V{50, 50});  // d(2·w²·x² + 2w)/dw = 4·3·4 + 2
      int fired = 0;
      const auto hook = w.register_hook([&](const Tensor& g) {
        ++fired;
        CHECK(values(g) == V{50, 50});
        return Tensor{};
      });
      loss(true).backward();
      CHECK(fired == 1);
      CHECK(values(w.grad()) == V{50, 50});
      CHECK(values(x.grad()) == V{72, 72});
    }
    CHECK(Node::live() == nodes);
  }

  TEST_CASE("several inputs and outputs, some without a gradient; nested; under NoGrad it is a plain call") {
    const Tensor a = full({3}, 2, DType::f64).requires_grad_(), b = full({3}, 5, DType::f64);
    const Tensor w = full({3}, 0.5, DType::f64).requires_grad_();
    const auto f = [&](const Tensor& x, const Tensor& y) {
      const Tensor inner = checkpoint([&](const Tensor& t) { return exp(t * w); }, x);
      return std::vector<Tensor>{inner * y, y * 2.0, x, argmax(x, 0)};
    };
    const auto plain = f(a, b), kept = checkpoint(f, a, b);
    for (size_t o = 0; o < 4; ++o) CHECK(values(plain[o]) == values(kept[o]));
    CHECK_FALSE(kept[3].requires_grad());
    const auto gradients = [&](const std::vector<Tensor>& ys) {
      return grad({sum(ys[0] * ys[0]) + sum(ys[2])}, {a, w});
    };
    const auto expected = gradients(plain), found = gradients(kept);
    CHECK(values(found[0]) == values(expected[0]));
    CHECK(values(found[1]) == values(expected[1]));
    const NoGrad off;
    CHECK_FALSE(checkpoint(f, a, b)[0].requires_grad());
  }

  TEST_CASE("second derivatives, through inputs and captured tensors") {
    const Tensor x = tensor<double>({0.3, -0.7}).requires_grad_(), w = tensor<double>({1.5, 0.2}).requires_grad_();
    const auto second = [&](bool checkpointed) {
      const Tensor h = x * x;
      const auto f = [h, w](const Tensor& t) { return tanh(t * w) * h; };
      const Tensor y = sum(checkpointed ? checkpoint(f, h) : f(h));
      const auto g = grad({y}, {x, w}, {.create_graph = true});
      return grad({sum(g[0] * g[0]) + sum(g[1] * g[0])}, {x, w});
    };
    const auto plain = second(false), kept = second(true);
    for (size_t i = 0; i < 2; ++i)
      for (size_t j = 0; j < 2; ++j) CHECK(values(kept[i])[j] == doctest::Approx(values(plain[i])[j]).epsilon(1e-12));
  }

  TEST_CASE("writes between forward and backward, impure functions and freed graphs are named") {
    const Tensor x = full({2}, 2, DType::f64).requires_grad_(), w = full({2}, 3, DType::f64).requires_grad_();
    const auto f = [&](const Tensor& t) { return t * w; };
    const auto overwritten = [&](const Tensor& t) {
      const Tensor y = sum(checkpoint(f, x));
      {
        const NoGrad off;
        t.fill_(1);
      }
      CHECK_THROWS_WITH_AS(
          y.backward(),
          "checkpoint: a tensor saved for backward (shape [2]) was overwritten by fill_: it is at version 2, "
          "saved at version 1; write before the op or on a clone",
          AutogradError);
    };
    overwritten(x);
    overwritten(w);
    int calls = 0;
    const Tensor grows = sum(checkpoint(
        [&](const Tensor& t) {
          return sum(t * full({++calls, 1}, 1, DType::f64), {1});
        },
        x));
    CHECK_THROWS_WITH_AS(grows.backward(),
                         "checkpoint: run again, the function gave other outputs than the first time; it must be pure",
                         AutogradError);
    Tensor used = w;
    const Tensor moved = sum(checkpoint([&](const Tensor& t) { return t * used; }, x));
    used = full({2}, 3, DType::f64).requires_grad_();
    CHECK_THROWS_WITH_AS(
        moved.backward(),
        "checkpoint: run again, the function used other tensors that require a gradient than the first "
        "time; pass them as inputs, or leave them in place until backward",
        AutogradError);
    const Tensor twice = sum(checkpoint(f, x));
    twice.backward({}, {.retain_graph = true});
    twice.backward();
    CHECK_THROWS_AS(twice.backward(), AutogradError);
  }
}
