// test_function.cpp: how ops record themselves: saving, versions, composites, wrong rules. Next: plain_ops.h.
#include "../autograd/function.h"

#include <doctest/doctest.h>

#include "../autograd/engine.h"
#include "../autograd/scope.h"
#include "plain_ops.h"

using namespace tapestry;
using plain::leaf;
using V = std::vector<double>;

namespace {

std::vector<double> values(const Tensor& x) { return x.defined() ? x.to_vector<double>() : std::vector<double>{}; }

template <class F>
std::string error_of(F&& f) {
  try {
    f();
  } catch (const Error& e) {
    return e.what();
  }
  return "no error";
}

/// a²b with its definition beside it; the fused rule is raw, so a recording walk must take the composite.
struct SquareTimes {
  static constexpr std::string_view name = "square_times";
  Tensor composite(const Tensor& a, const Tensor& b) const { return plain::mul(plain::mul(a, a), b); }
  Tensor forward(Context&, const Tensor& a, const Tensor& b) const {
    return plain::map(a, b, [](double x, double y) { return x * x * y; });
  }
  Grads backward(Context& c, const Tensor& g) const {
    ++fused;
    const Tensor a = c.input(0), b = c.input(1);
    return grads(
        c,
        [&] {
          return plain::map(plain::map(a, b, [](double x, double y) { return 2 * x * y; }), g, std::multiplies<>());
        },
        [&] { return plain::map(plain::map(a, a, std::multiplies<>()), g, std::multiplies<>()); });
  }
  static inline int fused = 0;
};

/// No backward at all: the composite alone.
struct OnlyComposite {
  static constexpr std::string_view name = "only_composite";
  Tensor composite(const Tensor& a) const { return plain::mul(a, plain::sin(a)); }
  Tensor forward(Context&, const Tensor& a) const {
    return plain::map(a, [](double x) { return x * std::sin(x); });
  }
};

/// Any number of inputs, all added.
struct AddAll {
  static constexpr std::string_view name = "add_all";
  Tensor forward(Context& c, std::span<const Tensor> xs) const {
    (void)c;
    Tensor total = xs[0];
    for (const Tensor& x : xs.subspan(1)) total = plain::add(total, x);
    return total;
  }
  Grads backward(Context& c, const Tensor& g) const {
    Grads result;
    for (int i = 0; i < inputs; ++i) result.push_back(c.needs(i) ? g : Tensor{});
    return result;
  }
  int inputs;
};

struct NoDerivative {
  static constexpr std::string_view name = "rank_of";
  bool floating;
  Tensor forward(Context&, const Tensor& x) const { return full({}, x.dim(), floating ? DType::f32 : DType::i64); }
};

struct SavesNothing {
  static constexpr std::string_view name = "saves_nothing";
  Tensor forward(Context&, const Tensor& x) const { return plain::scale(x, 1); }
  Grads backward(Context& c, const Tensor&) const { return {c.saved(0)}; }
};

}  // namespace

TEST_SUITE("function") {
  TEST_CASE(
      "a write after a save throws at backward and names op and versions; a write while recording throws at "
      "once") {
    const Tensor a = leaf({1, 2, 3}), b = plain::exp(a), loss = plain::sum(b);
    CHECK(error_of([&] { b.mutable_data<double>()[1] = 2; }) ==
          "mutable_data: an in-place write to a recorded tensor [3] f64 (result of exp); write under NoGrad or use the "
          "out-of-place op");
    {
      const NoGrad off;
      b.mutable_data<double>()[1] = 2;
    }
    CHECK(error_of([&] { loss.backward(); }) ==
          "exp: a tensor saved for backward (shape [3]) was overwritten by mutable_data: it is at version 1, saved at "
          "version "
          "0; write before the op or on a clone");
  }

  TEST_CASE("a write is seen through views, detach and constants, and only where the value is needed") {
    const Tensor constant = tensor<double>({1, 2, 3});
    const struct {
      const char* what;
      std::function<void(const Tensor&)> write;
    } writes[] = {
        {"itself", [](const Tensor& t) { t.fill_(0); }},
        {"detached", [](const Tensor& t) { t.detach().fill_(0); }},
        {"a view", [](const Tensor& t) { t.view_of({1}, {1}, t.offset() + 2).zero_(); }},
        {"copy_", [](const Tensor& t) { t.copy_(ones({3})); }},
    };
    for (const auto& row : writes) {
      CAPTURE(row.what);
      const Tensor x = leaf({4, 5, 6}), c = tensor<double>({1, 2, 3});
      const Tensor y = plain::sum(plain::mul(x, c));
      row.write(c);
      CHECK(error_of([&] {
              y.backward();
            }).starts_with("mul: a tensor saved for backward (shape [3]) was overwritten by"));
    }
    const Tensor x = leaf({4, 5, 6});
    const Tensor y = plain::sum(plain::add(x, constant));
    constant.fill_(9);
    y.backward();
    CHECK(values(x.grad()) == V{1, 1, 1});
  }

  TEST_CASE("composites: fused first derivative, recorded higher ones, an input computed from the other") {
    const Tensor x = full({}, 3, DType::f64).requires_grad_();
    SquareTimes::fused = 0;
    const auto f = [](const Tensor& t) { return apply(SquareTimes{}, t, plain::mul(t, t)); };  // x⁴
    CHECK(grad({f(x)}, {x})[0].item() == 108);
    CHECK(SquareTimes::fused == 1);
    Tensor y = f(x);
    for (const double right : {108, 108, 72, 24}) {
      y = grad({y}, {x}, {.create_graph = true})[0];
      CHECK(y.item() == right);
    }
    CHECK(SquareTimes::fused == 1);
    const Tensor only = apply(OnlyComposite{}, x);
    CHECK(grad({only}, {x})[0].item() == doctest::Approx(std::sin(3.0) + 3 * std::cos(3.0)));
    Tensor z = apply(OnlyComposite{}, x);
    z = grad({z}, {x}, {.create_graph = true})[0];
    CHECK(grad({z}, {x})[0].item() == doctest::Approx(2 * std::cos(3.0) - 3 * std::sin(3.0)));
    const int64_t nodes = Node::live();
    f(x).backward({}, {});
    CHECK(Node::live() == nodes);
  }

  TEST_CASE("any number of inputs, some of them constants") {
    const Tensor a = leaf({1, 2}), b = tensor<double>({3, 4}), c = leaf({5, 6});
    const std::vector<Tensor> list = {a, b, c, a};
    const Tensor y = apply(AddAll{4}, std::span<const Tensor>(list));
    CHECK(values(y) == V{10, 14});
    y.backward(tensor<double>({1, 10}));
    CHECK(values(a.grad()) == V{2, 20});
    CHECK(values(c.grad()) == V{1, 10});
    const std::vector<Tensor> one = {a};
    const Tensor same = apply(AddAll{1}, std::span<const Tensor>(one));  // forward hands its input back
    CHECK_FALSE(same.is_same(a));
    CHECK_FALSE(same.is_leaf());
    CHECK(a.is_leaf());
  }

  TEST_CASE("an op without a derivative refuses floating results at the call, and gives integers") {
    const Tensor x = leaf({1, 2});
    CHECK(error_of([&] { apply(NoDerivative{true}, x); }) ==
          "rank_of: it has no derivative, but an input requires a gradient; detach() the input or use NoGrad");
    CHECK(apply(NoDerivative{true}, x.detach()).item() == 1);
    const Tensor rank = apply(NoDerivative{false}, x);
    CHECK(rank.item<int>() == 1);
    CHECK_FALSE(rank.requires_grad());
    const NoGrad off;
    CHECK(apply(NoDerivative{true}, x).item() == 1);
  }

  TEST_CASE("wrong rules are named with op, input, both shapes and the module path") {
    const Tensor x = leaf({{1, 2, 3}, {4, 5, 6}});
    const auto wrong = [&](auto df) {
      const Scope scope(intern_path("layers.0.norm"));
      return plain::sum(apply(plain::Rule{[](const Tensor& t) { return plain::scale(t, 1); }, df}, x));
    };
    CHECK(error_of([&] {
            wrong([](Context&, const Tensor&) { return zeros({3, 2}, DType::f64); }).backward();
          }) == "rule: the gradient of input 0 is [3, 2] f64, the input is [2, 3] f64; in layers.0.norm");
    CHECK(error_of([&] {
            wrong([](Context&, const Tensor&) { return zeros({2, 3}); }).backward();
          }) == "rule: the gradient of input 0 is [2, 3] f32, the input is [2, 3] f64; in layers.0.norm");
    CHECK(error_of([&] { plain::sum(apply(SavesNothing{}, x)).backward(); }) ==
          "saves_nothing: saved(0) asks for one of 0 saved tensors");
    CHECK(scope_path().empty());
    CHECK_FALSE(x.grad().defined());
  }

  TEST_CASE("nothing is recorded, and nothing saved, where no input requires a gradient") {
    const int64_t nodes = Node::live();
    const Tensor x = tensor<double>({1, 2});
    const Tensor y = plain::mul(plain::exp(x), x);
    CHECK(Node::live() == nodes);
    CHECK(y.is_leaf());
    CHECK_FALSE(y.requires_grad());
  }
}
