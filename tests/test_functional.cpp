// test_functional.cpp: vjp, jvp, jacobian, hessian and hvp against closed forms and each other.
// Not the derivatives of the ops themselves (test_op_table.cpp).
#include "../autograd/tools/functional.h"

#include <doctest/doctest.h>

#include "../autograd/engine.h"
#include "../autograd/node.h"
#include "../ops/ops.h"

using namespace tapestry;
using V = std::vector<double>;

namespace {

V values(const Tensor& x) { return x.defined() ? x.to_vector<double>() : V{}; }

void check_close(const Tensor& a, const Tensor& b) {
  REQUIRE(a.shape() == b.shape());
  const V x = values(a), y = values(b);
  for (size_t i = 0; i < x.size(); ++i) CHECK(x[i] == doctest::Approx(y[i]).epsilon(1e-12));
}

Tensor numbers(const Shape& shape, double first) {
  V v(static_cast<size_t>(numel(shape)));
  for (size_t i = 0; i < v.size(); ++i) v[i] = first + 0.37 * static_cast<double>(i);
  return from(v, shape);
}

/// One number from three factors of different shapes.
Tensor energy(const Tensor& x, const Tensor& w) { return sum(tanh(matmul(x, w)) * exp(x * 0.3)); }

}  // namespace

TEST_SUITE("functional") {
  TEST_CASE("vjp and jvp of sin: v·cos x; nothing is left recorded and the inputs get no .grad") {
    const int64_t nodes = Node::live();
    {
      const Tensor x = numbers({2, 2}, 0.1), v = numbers({2, 2}, -1);
      const auto f = [](const Tensor& t) { return sin(t); };
      const auto back = vjp(f, {x}, {v}), forward = jvp(f, {x}, {v});
      check_close(back.gradient[0], v * cos(x));
      check_close(forward.gradient[0], v * cos(x));
      check_close(back.outputs[0], sin(x));
      CHECK_FALSE(back.outputs[0].requires_grad());
      CHECK_FALSE(back.gradient[0].requires_grad());
      CHECK_FALSE(x.requires_grad());
    }
    CHECK(Node::live() == nodes);
  }

  TEST_CASE("the Jacobian of a matrix product is the other factor") {
    const Tensor a = numbers({2, 2}, 0.5), b = numbers({2, 3}, -0.4);
    const auto blocks = jacobian([](const Tensor& x, const Tensor& y) { return matmul(x, y); }, {a, b});
    REQUIRE(blocks.size() == 1);
    CHECK(blocks[0][0].shape() == Shape{2, 3, 2, 2});
    CHECK(blocks[0][1].shape() == Shape{2, 3, 2, 3});
    const V da = values(blocks[0][0]), db = values(blocks[0][1]), av = values(a), bv = values(b);
    for (size_t i = 0; i < 2; ++i)
      for (size_t j = 0; j < 3; ++j)
        for (size_t k = 0; k < 2; ++k)
          for (size_t l = 0; l < 3; ++l) {
            const size_t row = i * 3 + j;
            if (l < 2) CHECK(da[row * 4 + k * 2 + l] == (i == k ? bv[l * 3 + j] : 0));
            CHECK(db[row * 6 + k * 3 + l] == (l == j ? av[i * 2 + k] : 0));
          }
  }

  TEST_CASE("several outputs, integers among the inputs, and what nothing depends on") {
    const Tensor x = numbers({3}, 1), unused = numbers({2}, 5), index = from(std::vector<int64_t>{2, 0});
    const auto f = [](std::span<const Tensor> xs) {
      return std::vector<Tensor>{index_select(xs[0], 0, xs[2]), sum(xs[0]), full({2}, 7, DType::f64)};
    };
    const auto blocks = jacobian(f, {x, unused, index});
    CHECK(values(blocks[0][0]) == V{0, 0, 1, 1, 0, 0});
    CHECK(values(blocks[1][0]) == V{1, 1, 1});
    CHECK(blocks[1][0].shape() == Shape{3});
    CHECK(values(blocks[0][1]) == V(4, 0.0));
    CHECK(values(blocks[2][0]) == V(6, 0.0));
    CHECK_FALSE(blocks[0][2].defined());
    const auto pulled = vjp(f, {x, unused, index}, {Tensor{}, full({}, 2, DType::f64), Tensor{}});
    CHECK(values(pulled.gradient[0]) == V{2, 2, 2});
    CHECK(values(pulled.gradient[1]) == V{0, 0});
    const auto pushed = jvp(f, {x, unused, index}, {numbers({3}, 1), Tensor{}, Tensor{}});
    CHECK(values(pushed.gradient[0]) == V{1.74, 1});
    CHECK(values(pushed.gradient[2]) == V{0, 0});
    CHECK(jacobian([](const Tensor& t) { return t * 2.0; }, zeros({0}, DType::f64)).shape() == Shape{0, 0});
  }

  TEST_CASE("the Hessian of xᵀAx is A + Aᵀ, and of Σx³ diagonal") {
    const Tensor a = numbers({3, 3}, -1), x = numbers({3}, 0.5);
    check_close(hessian([&](const Tensor& t) { return sum(t * matmul(a, t)); }, x), a + mT(a));
    const V h = values(hessian([](const Tensor& t) { return sum(t * t * t); }, x));
    for (size_t i = 0; i < 9; ++i) CHECK(h[i] == doctest::Approx(i % 4 == 0 ? 6 * values(x)[i / 4] : 0));
    CHECK(values(hessian([](const Tensor& t) { return sum(t) * 2.0; }, x)) == V(9, 0.0));
  }

  TEST_CASE("jvp = jacobian·v and hvp = hessian·v over two inputs") {
    const std::vector<Tensor> at = {numbers({2, 3}, -0.8), numbers({3, 3}, 0.2)};
    const std::vector<Tensor> v = {numbers({2, 3}, 0.3), numbers({3, 3}, -1.1)};
    const auto f = [](const Tensor& x, const Tensor& w) { return tanh(matmul(x, w)) * x; };
    const auto times = [](const Tensor& block, const Tensor& direction, const Shape& shape) {
      return reshape(matmul(reshape(block, {numel(shape), direction.numel()}), reshape(direction, {direction.numel()})),
                     shape);
    };
    const auto blocks = jacobian(f, at);
    check_close(jvp(f, at, v).gradient[0], times(blocks[0][0], v[0], {2, 3}) + times(blocks[0][1], v[1], {2, 3}));
    const auto h = hessian(energy, at);
    const auto product = hvp(energy, at, v);
    for (size_t i = 0; i < 2; ++i) {
      const Shape& shape = at[i].shape();
      check_close(product.gradient[i], times(h[i][0], v[0], shape) + times(h[i][1], v[1], shape));
    }
    check_close(product.outputs[0], energy(at[0], at[1]));
    CHECK(values(hvp(energy, at, {v[0], Tensor{}}).gradient[1]) != values(product.gradient[1]));
  }

  TEST_CASE("they nest: a third derivative, a Jacobian of a Jacobian, a gradient through an hvp to what f uses") {
    const Tensor x = numbers({2}, 0.7), one = full({}, 1, DType::f64);
    const FunctionalOptions recorded{.create_graph = true};
    const auto second = [&](const Tensor& t) {
      return hessian([](const Tensor& s) { return sum(s * s * s * s); }, t, recorded);
    };
    const Tensor third = jacobian(second, x);
    CHECK(third.shape() == Shape{2, 2, 2});
    CHECK(values(third)[0] == doctest::Approx(24 * 0.7));
    CHECK(values(third)[7] == doctest::Approx(24 * 1.07));
    CHECK(values(third)[1] == 0);

    const auto slope = [&](const Tensor& t) {
      return jvp([](const Tensor& s) { return sin(s); }, {t}, {ones_like(t)}, recorded).gradient[0];
    };
    check_close(vjp(slope, {x}, {ones_like(x)}).gradient[0], sin(x) * -1.0);

    const Tensor k = full({}, 3, DType::f64).requires_grad_(), leaf = numbers({2}, 0.7).requires_grad_();
    const auto scaled = [&](const Tensor& t) { return sum(t * t * t) * k; };  // Hessian 6·k·diag(t)
    sum(hvp(scaled, {leaf}, {ones_like(leaf)}, recorded).gradient[0]).backward();
    CHECK(k.grad().item() == doctest::Approx(6 * (0.7 + 1.07)));
    CHECK(values(leaf.grad())[1] == doctest::Approx(18));
  }

  TEST_CASE("what does not fit is named") {
    const Tensor x = numbers({2}, 1);
    const auto f = [](const Tensor& t) { return t * 2.0; };
    CHECK_THROWS_WITH_AS((void)vjp(f, {x}, {}), "vjp: 0 vectors for 1 outputs; pass one for each, undefined for 0",
                         AutogradError);
    CHECK_THROWS_WITH_AS((void)jvp(f, {x}, {numbers({3}, 1)}), "jvp: vector 0 is [3] f64, the input is [2] f64",
                         ShapeError);
    CHECK_THROWS_WITH_AS((void)jvp(f, {x}, {ones({2})}), "jvp: vector 0 is [2] f32, the input is [2] f64", DTypeError);
    CHECK_THROWS_WITH_AS((void)hessian(f, x), "hessian: the function must give one tensor of one element, not [2] f64",
                         ShapeError);
    CHECK_THROWS_WITH_AS((void)jacobian(f, arange(int64_t{3})),
                         "jacobian: no input is floating, so there is nothing to differentiate by", AutogradError);
  }
}
