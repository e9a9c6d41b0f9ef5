// test_hooks.cpp: gradient hooks and retained gradients. Not the walk itself (test_engine.cpp). Next: plain_ops.h.
#include "../autograd/hooks.h"

#include <doctest/doctest.h>

#include <algorithm>

#include "../autograd/engine.h"
#include "plain_ops.h"

using namespace tapestry;
using plain::leaf;
using V = std::vector<double>;

namespace {

std::vector<double> values(const Tensor& x) { return x.defined() ? x.to_vector<double>() : std::vector<double>{}; }

}  // namespace

TEST_SUITE("hooks") {
  TEST_CASE("a leaf's hooks fire once a walk, on its total, in order, and replace it") {
    const Tensor x = leaf({1, 2});
    std::vector<std::string> log;
    auto first = x.register_hook([&](const Tensor& g) {
      log.push_back("first " + std::to_string(static_cast<int>(values(g)[1])));
      return plain::scale(g, 10);
    });
    const auto second = x.register_hook([&](const Tensor& g) {
      log.push_back("second " + std::to_string(static_cast<int>(values(g)[1])));
      return Tensor{};
    });
    const Tensor y = plain::sum(plain::mul(plain::mul(x, x), x));  // three contributions
    y.backward({}, {.retain_graph = true});
    CHECK(log == std::vector<std::string>{"first 12", "second 120"});
    CHECK(values(x.grad()) == V{30, 120});
    CHECK(values(grad({y}, {x}, {.retain_graph = true})[0]) == V{30, 120});
    first.remove();
    log.clear();
    y.backward();
    CHECK(log == std::vector<std::string>{"second 12"});
    CHECK(values(x.grad()) == V{33, 132});
  }

  TEST_CASE("an intermediate's hooks see the sum before its node runs; retain_grad sees what they leave") {
    const Tensor x = leaf({1, 2});
    const Tensor y = plain::scale(x, 3), z = plain::sum(plain::add(plain::mul(y, y), y));
    int fired = 0;
    y.retain_grad();
    const auto hook = y.register_hook([&](const Tensor& g) {
      ++fired;
      CHECK(values(g) == V{7, 13});
      return ones({2}, DType::f64);
    });
    z.backward();
    CHECK(fired == 1);
    CHECK(values(y.grad()) == V{1, 1});
    CHECK(values(x.grad()) == V{3, 3});
  }

  TEST_CASE("a handle removes its hook when it goes, unless released; it outlives its tensor") {
    const Tensor x = leaf({1, 2});
    int fired = 0;
    const auto count = [&](const Tensor&) {
      ++fired;
      return Tensor{};
    };
    { const auto gone = x.register_hook(count); }
    plain::sum(x).backward();
    CHECK(fired == 0);
    {
      auto kept = x.register_hook(count);
      kept.release();
    }
    plain::sum(x).backward();
    CHECK(fired == 1);
    HookHandle moved, outlives;
    {
      const Tensor y = leaf({1});
      outlives = y.register_hook(count);
      moved = x.register_hook(count);
    }
    HookHandle again = std::move(moved);
    plain::sum(x).backward();
    CHECK(fired == 3);
    again = HookHandle{};
    plain::sum(x).backward();
    CHECK(fired == 4);
    outlives.remove();
  }

  TEST_CASE("a hook that removes itself, and one that walks another graph") {
    const Tensor x = leaf({1, 2}), w = leaf({3, 4});
    HookHandle once;
    int fired = 0;
    once = x.register_hook([&](const Tensor&) {
      ++fired;
      once.remove();
      return Tensor{};
    });
    Tensor inner;
    const auto walks = x.register_hook([&](const Tensor& g) {
      const EnableGrad recording;
      plain::sum(plain::mul(w, w)).backward();
      inner = grad({plain::sum(plain::mul(w, plain::sin(w)))}, {w})[0];
      return plain::scale(g, 2);
    });
    plain::sum(plain::mul(x, x)).backward();
    plain::sum(plain::mul(x, x)).backward();
    CHECK(fired == 1);
    CHECK(values(x.grad()) == V{8, 16});
    CHECK(values(w.grad()) == V{12, 16});
    CHECK(values(inner)[0] == doctest::Approx(std::sin(3.0) + 3 * std::cos(3.0)));
  }

  TEST_CASE("backward inside backward: a hook walks the graph it is called from, and adds to the same leaf") {
    const Tensor x = leaf({1, 2});
    const Tensor y = plain::mul(x, x), z = plain::sum(plain::scale(y, 3));
    int depth = 0, deepest = 0;
    V inner;
    const auto hook = y.register_hook([&](const Tensor& g) {
      deepest = std::max(deepest, ++depth);
      if (depth == 1) {
        const EnableGrad recording;
        inner = values(grad({plain::sum(y)}, {x}, {.retain_graph = true})[0]);  // through y: this hook again
        plain::sum(plain::scale(x, 5)).backward();
      }
      --depth;
      return plain::scale(g, 2);
    });
    z.backward();
    CHECK(deepest == 2);
    CHECK(inner == V{4, 8});               // 2·2x
    CHECK(values(x.grad()) == V{17, 29});  // 2·3·2x + 5
    CHECK_THROWS_AS(z.backward(), AutogradError);
  }

  TEST_CASE("hooks take part in a recorded walk") {
    const Tensor x = full({}, 3, DType::f64).requires_grad_();
    const auto hook = x.register_hook([](const Tensor& g) { return plain::mul(g, g); });
    const Tensor g = grad({plain::mul(x, x)}, {x}, {.create_graph = true})[0];
    CHECK(g.item() == 36);  // (2x)²
    const auto second = grad({g}, {x});
    CHECK(second[0].item() == 24 * 24);  // d(4x²)/dx = 24, squared by the hook
  }

  TEST_CASE("wrong hooks and wrong places are errors") {
    CHECK_THROWS_WITH_AS((void)ones({2}).requires_grad_().register_hook({}),
                         "register_hook: the hook is empty; pass a function", ValueError);
    const Tensor x = leaf({1, 2});
    const auto hook = x.register_hook([](const Tensor&) { return ones({3}, DType::f64); });
    CHECK_THROWS_WITH_AS(plain::sum(x).backward(), "hook on leaf: it returned [3] f64 for a gradient [2] f64",
                         AutogradError);
    CHECK_THROWS_WITH_AS((void)ones({2}).register_hook([](const Tensor& g) { return g; }),
                         "register_hook: the tensor [2] f32 does not require a gradient", AutogradError);
    CHECK_THROWS_WITH_AS(ones({2}).retain_grad(), "retain_grad: the tensor [2] f32 does not require a gradient",
                         AutogradError);
    CHECK_FALSE(plain::scale(x, 2).grad().defined());
  }
}
