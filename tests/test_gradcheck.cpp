// test_gradcheck.cpp: gradcheck and gradgradcheck on rules that are right, what they refuse, and what their result says.
// Not wrong rules (test_gradcheck_wrong_rules.cpp), nor the derivatives of the library's ops (test_op_gradients.cpp). Next: plain_ops.h.
#include "../autograd/tools/gradcheck.h"

#include <doctest/doctest.h>

#include "plain_ops.h"

using namespace tapestry;
using plain::leaf;
using plain::map;
using plain::Rule;
using plain::Rule2;

namespace {

Tensor square(const Tensor& x) {
  return map(x, [](double v) { return v * v; });
}
/// The matrix [[1 … 9]]/4 with a little noise, so that no entry equals another.
Tensor matrix() { return leaf({{0.3, -0.7, 1.1}, {0.9, 0.4, -1.3}, {-0.2, 1.7, 0.6}}); }

struct Sin32 {
  static constexpr std::string_view name = "sin32";
  Tensor forward(Context& c, const Tensor& x) const {
    c.save(x);
    std::vector<float> y;
    for (const float v : x.to_vector()) y.push_back(std::sin(v));
    return from(y, x.shape());
  }
  Grads backward(Context& c, const Tensor& g) const {
    std::vector<float> y;
    for (size_t i = 0; i < 3; ++i) y.push_back(g.to_vector()[i] * std::cos(c.saved(0).to_vector()[i]));
    return {from(y, g.shape())};
  }
};

}  // namespace

TEST_SUITE("gradcheck") {
  TEST_CASE("right rules pass in both orders") {
    const Tensor a = matrix(), b = leaf({{0.2, 0.5}, {-0.4, 0.8}, {1.2, -0.6}});
    const struct {
      const char* what;
      TensorFunction f;
      std::vector<Tensor> inputs;
    } right[] = {
        {"sin", [](const Tensor& x) { return plain::sin(x); }, {a}},
        {"exp of a product", [](const Tensor& x) { return plain::exp(plain::mul(x, plain::cos(x))); }, {a}},
        {"matmul", [](const Tensor& x, const Tensor& y) { return plain::matmul(x, y); }, {a, b}},
        {"two outputs",
         [](std::span<const Tensor> xs) {
           return std::vector<Tensor>{plain::sin(xs[0]), plain::sum(plain::mul(xs[0], xs[0]))};
         },
         {a}},
        {"an input used twice",
         [](const std::vector<Tensor>& xs) { return plain::matmul(xs[0], plain::transpose(xs[0])); },
         {b}},
        {"a transposed leaf",
         [](const Tensor& x) { return plain::mul(x, plain::sin(x)); },
         {plain::transpose(b.detach()).requires_grad_()}},
    };
    for (const auto& row : right) {
      CAPTURE(row.what);
      const auto first = gradcheck(row.f, row.inputs), second = gradgradcheck(row.f, row.inputs);
      CHECK_MESSAGE(first, first.message);
      CHECK_MESSAGE(second, second.message);
    }
  }

  TEST_CASE("large inputs: random projections find and locate one wrong entry") {
    const Tensor x = rand({40, 30}, DType::f64).requires_grad_();
    const auto off_at = [](int64_t bad) {
      return [bad](const Tensor& t) {
        return apply(Rule{square,
                          [bad](Context& c, const Tensor& g) {
                            int64_t j = 0;
                            return map(g, c.saved(0),
                                       [&](double u, double v) { return (j++ == bad ? 2.5 : 2) * u * v; });
                          }},
                     t);
      };
    };
    CHECK(gradcheck(off_at(-1), {x}));
    const auto r = gradcheck(off_at(17 * 30 + 4), {x});
    CHECK_FALSE(r);
    CHECK_MESSAGE(r.message.starts_with("gradcheck: input 0 (shape [40, 30]) at [17, 4], output at [17, 4]: analytic"),
                  r.message);
    CHECK(gradgradcheck([](const Tensor& t) { return plain::mul(plain::sin(t), t); }, {x}));
  }

  TEST_CASE("the result names the worst entry") {
    const Tensor a = leaf({1, 2}), b = leaf({3, 4});
    const auto r = gradcheck(
        [](const Tensor& p, const Tensor& q) {
          return std::vector<Tensor>{
              plain::add(p, q),
              apply(Rule2{plain::mul,
                          [](Context& c, const Tensor& g) {
                            return Grads{plain::mul(g, c.saved(1)), plain::scale(plain::mul(g, c.saved(0)), 3)};
                          }},
                    p, q)};
        },
        {a, b});
    CHECK(r.input == 1);
    CHECK(r.output == 1);
    CHECK(r.analytic == doctest::Approx(6));
    CHECK(r.numeric == doctest::Approx(2));
    CHECK(r.message ==
          "gradcheck: input 1 (shape [2]) at [1], output 1 at [1]: analytic 6, numeric 2, |difference| 4.0e+00 > 1e-05 "
          "+ 1e-03·|numeric|; "
          "analytic = 3 * numeric everywhere: a factor is too much");
  }

  TEST_CASE("what proves nothing fails unless allowed") {
    const Tensor x = leaf({1, 2}), y = leaf({3, 4});
    const TensorFunction flat = [](const Tensor& t) { return plain::scale(t, 0); };
    CHECK(gradcheck(flat, {x}).message.find("which proves nothing") != std::string::npos);
    CHECK(gradcheck(flat, {x}, {.allow_zero = true}));
    const TensorFunction first = [](const Tensor& a, const Tensor&) { return plain::sin(a); };
    CHECK(gradcheck(first, {x, y}).message.find("input 1 (shape [2]) is not used: no output depends on it") !=
          std::string::npos);
    CHECK(gradcheck(first, {x, y}, {.allow_unused = true}));
    const TensorFunction constant_output = [](const Tensor& a) {
      return std::array{plain::sin(a), ones({2}, DType::f64)};
    };
    CHECK(gradcheck(constant_output, {x}).message.find("output 1 depends on no checked input") != std::string::npos);
    const TensorFunction cut = [](const Tensor& a) { return plain::sin(a).detach(); };
    CHECK(gradcheck(cut, {x}).message.find("the gradient of this input is missing") != std::string::npos);
    const Tensor large = rand({100}, DType::f64).requires_grad_();
    CHECK(gradcheck(flat, {large}).message.find("which proves nothing") != std::string::npos);
    CHECK_FALSE(gradcheck(first, {large, large}));
    CHECK(gradcheck(flat, {zeros({0, 3}, DType::f64).requires_grad_()}));
  }

  TEST_CASE("inputs that cannot be checked are refused") {
    const TensorFunction f = [](const Tensor& a) { return plain::sin(a); };
    const auto said = [&](const Tensor& x, GradcheckOptions options = {}) {
      try {
        gradcheck(f, {x}, options);
      } catch (const Error& e) {
        return std::string(e.what());
      }
      return std::string();
    };
    CHECK(said(ones({2}, DType::f64)) ==
          "gradcheck: none of the 1 inputs requires a gradient; call requires_grad_() on those to check");
    CHECK(said(ones({2}).requires_grad_())
              .starts_with(
                  "gradcheck: input 0 is [2] f32: its finite differences are mostly rounding; use f64, or allow_f32"));
    CHECK(said(ones({2}, DType::bf16).requires_grad_(), {.allow_f32 = true})
              .starts_with("gradcheck: input 0 is [2] bf16"));
    CHECK(said(ones({1}, DType::f64).view_of({2, 3}, {0, 0}, 0).requires_grad_()) ==
          "gradcheck: input 0 ([2, 3] f64, strides [0, 0]) overlaps itself, as an expanded tensor does, so its "
          "elements cannot be moved one by one; pass a clone");
    CHECK(said(ones({4}, DType::f64).view_of({2, 3}, {1, 1}, 0).requires_grad_()).find("overlaps itself") !=
          std::string::npos);
    CHECK(said(ones({2, 3}, DType::f64).view_of({3, 2}, {-1, 3}, 2).requires_grad_()).empty());
  }

  TEST_CASE("f32 on request, with tolerances for it") {
    const auto r =
        gradcheck([](const Tensor& x) { return apply(Sin32{}, x); }, {tensor({0.3, 0.8, -1.2}).requires_grad_()},
                  {.atol = 1e-3, .rtol = 1e-3, .allow_f32 = true});
    CHECK_MESSAGE(r, r.message);
  }

  TEST_CASE("random numbers drawn by the function are the same in every call, and nothing leaks") {
    const int64_t nodes = Node::live();
    manual_seed(3);
    const auto r = gradcheck([](const Tensor& x) { return plain::mul(x, rand({3}, DType::f64)); }, {leaf({1, 2, 3})});
    CHECK_MESSAGE(r, r.message);
    CHECK(random_state().call == 0);
    CHECK(Node::live() == nodes);
  }
}
