// test_gradcheck_wrong_rules.cpp: backward rules that are wrong in every way we can think of; gradcheck fails for each, and says why.
// Not right rules (test_gradcheck.cpp). docs/gradcheck.md explains the messages. Next: plain_ops.h.
#include <doctest/doctest.h>

#include <set>

#include "../autograd/tools/gradcheck.h"
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
Tensor softmax(const Tensor& x) {
  const Tensor e = map(x, [](double v) { return std::exp(v); });
  const double total = plain::sum(e).item();
  return map(e, [&](double v) { return v / total; });
}
Tensor transposed_copy(const Tensor& x) { return dense(plain::transpose(x)); }
/// y[i] = x[index[i]] of vectors.
Tensor picked(const Tensor& x, const std::vector<size_t>& index) {
  std::vector<double> y;
  for (const size_t i : index) y.push_back(x.to_vector<double>()[i]);
  return from(y);
}
/// Every row of `a` plus b.
Tensor add_row(const Tensor& a, const Tensor& b) {
  auto y = a.to_vector<double>();
  const auto row = b.to_vector<double>();
  for (size_t i = 0; i < y.size(); ++i) y[i] += row[i % row.size()];
  return from(y, a.shape());
}
Tensor row_means(const Tensor& x) {
  std::vector<double> y(static_cast<size_t>(x.size(0)));
  const auto v = x.to_vector<double>();
  const auto n = static_cast<size_t>(x.size(1));
  for (size_t i = 0; i < v.size(); ++i) y[i / n] += v[i] / static_cast<double>(n);
  return from(y);
}
/// g of shape (rows), each number repeated along `columns`.
Tensor repeated(const Tensor& g, int64_t columns) {
  std::vector<double> y;
  for (const double v : g.to_vector<double>()) y.insert(y.end(), static_cast<size_t>(columns), v);
  return from(y, {g.size(0), columns});
}
/// Writes to memory that a rule has no business writing to.
void scribble(const Tensor& t) { const_cast<double*>(t.data<double>())[0] = 7; }

Tensor twice(const Tensor& g, const Tensor& x) { return plain::scale(plain::mul(g, x), 2); }

template <class F, class D>
TensorFunction rule(F f, D df) {
  return [f, df](const Tensor& x) { return apply(Rule{f, df}, x); };
}
template <class D>
TensorFunction square_with(D df) {
  return rule(square, df);
}
template <class F, class D>
TensorFunction rule2(F f, D df) {
  return [f, df](const Tensor& a, const Tensor& b) { return apply(Rule2{f, df}, a, b); };
}
TensorFunction times(double k) {
  return square_with([k](Context& c, const Tensor& g) { return plain::scale(plain::mul(g, c.saved(0)), k); });
}

/// No entry equals another.
Tensor matrix() { return leaf({{0.3, -0.7, 1.1}, {0.9, 0.4, -1.3}, {-0.2, 1.7, 0.6}}); }
Tensor vector() { return leaf({0.3, -0.7, 1.1}); }
std::vector<Tensor> two() { return {leaf({{0.1, 0.2}, {0.3, 0.4}}), leaf({{-0.5, 0.6}, {0.7, 0.8}})}; }

struct Wrong {
  const char* what;
  TensorFunction f;
  std::vector<Tensor> inputs;
  std::vector<const char*> said;
};

std::vector<Wrong> values_are_wrong() {
  return {
      {"a factor", times(4), {matrix()}, {"analytic = 2 * numeric everywhere: a factor is too much"}},
      {"half", times(1), {matrix()}, {"analytic = 0.5 * numeric everywhere: a factor is missing"}},
      {"the sign", times(-2), {matrix()}, {"the sign is wrong"}},
      {"zeros",
       square_with([](Context&, const Tensor& g) { return zeros_like(g); }),
       {matrix()},
       {"the gradient of this input is missing"}},
      {"undefined",
       square_with([](Context&, const Tensor&) { return Tensor{}; }),
       {matrix()},
       {"the gradient of this input is missing"}},
      {"transposed",
       square_with([](Context& c, const Tensor& g) { return transposed_copy(twice(g, c.saved(0))); }),
       {matrix()},
       {"the gradient is transposed"}},
      {"upstream transposed",
       square_with([](Context& c, const Tensor& g) { return twice(transposed_copy(g), c.saved(0)); }),
       {matrix()},
       {"the upstream gradient was read transposed"}},
      {"softmax without its sum",
       rule(softmax, [](Context& c, const Tensor& g) { return plain::mul(g, c.saved(1)); }),
       {matrix()},
       {"a term that sums over elements is missing"}},
      {"product rule half done",
       rule([](const Tensor& x) { return map(x, [](double v) { return v * std::sin(v); }); },
            [](Context& c, const Tensor& g) { return plain::mul(g, plain::sin(c.saved(0))); }),
       {matrix()},
       {"of 81 entries differ by varying factors: a term is missing or wrong"}},
      {"zero below zero",
       square_with([](Context& c, const Tensor& g) {
         return map(g, c.saved(0), [](double u, double x) { return x > 0 ? 2 * u * x : 0; });
       }),
       {matrix()},
       {"3 of 81 entries differ, and analytic is 0 in all of these: a term is missing"}},
      {"a mean without 1/n",
       rule(row_means, [](Context&, const Tensor& g) { return repeated(g, 3); }),
       {matrix()},
       {"analytic = 3 * numeric everywhere: a factor is too much (a mean without its 1/3?)"}},
      {"an index one off",
       rule(
           [](const Tensor& x) {
             return picked(x, {1, 2, 3});
           },
           [](Context&, const Tensor& g) {
             auto d = g.to_vector<double>();
             d.push_back(0);
             return from(d);
           }),
       {leaf({0.3, -0.7, 1.1, 0.9})},
       {"the gradient is written one element off"}},
      {"upstream one off",
       rule([](const Tensor& x) { return map(x, [](double v) { return 3 * v; }); },
            [](Context&, const Tensor& g) {
              return plain::scale(picked(g, {0, 0, 1}), 3);
            }),
       {vector()},
       {"one element off"}},
      {"a repeated index written over",
       rule(
           [](const Tensor& x) {
             return picked(x, {0, 2, 2, 1});
           },
           [](Context&, const Tensor& g) {
             return picked(g, {0, 3, 2});
           }),
       {vector()},
       {"contributions are written over, not added (a broadcast sum or a repeated index)"}},
      {"a broadcast not summed",
       rule2(add_row,
             [](Context&, const Tensor& g) {
               return Grads{g, picked(g, {0, 1, 2})};
             }),
       {matrix(), vector()},
       {"input 1 (shape [3]) at", "contributions are written over, not added (a broadcast sum or a repeated index)"}},
      {"a repeated input not added up",
       [](const Tensor& x) {
         return apply(Rule2{plain::mul,
                            [](Context& c, const Tensor& g) {
                              return Grads{plain::mul(g, c.saved(1)), {}};
                            }},
                      x, x);
       },
       {matrix()},
       {"analytic = 0.5 * numeric everywhere: a factor is missing (or one of two uses of the input)"}},
      {"swapped",
       rule2(plain::mul,
             [](Context& c, const Tensor& g) {
               return Grads{plain::mul(g, c.saved(0)), plain::mul(g, c.saved(1))};
             }),
       two(),
       {"input 0 (shape [2, 2]) at", "it is the gradient of checked input 1: two inputs are swapped"}},
      {"second forgotten",
       rule2(plain::mul,
             [](Context& c, const Tensor& g) {
               return Grads{plain::mul(g, c.saved(1)), Tensor{}};
             }),
       two(),
       {"input 1 (shape [2, 2]) at [1, 1], output at [1, 1]: analytic 0, numeric 0.4, |difference| 4.0e-01 > 1e-05 + "
        "1e-03·|numeric|; analytic is 0 everywhere"}},
      {"not a number",
       square_with([](Context&, const Tensor& g) { return map(g, [](double u) { return u == 1 ? NAN : 0 * u; }); }),
       {matrix()},
       {"analytic is not finite"}},
  };
}

std::vector<Wrong> upstream_is_mistreated() {
  return {
      {"mean of the upstream",
       square_with([](Context& c, const Tensor& g) {
         return map(c.saved(0),
                    [&](double x) { return 2 * x * plain::sum(g).item() / static_cast<double>(g.numel()); });
       }),
       {matrix()},
       {"right only for an all-ones upstream gradient"}},
      {"upstream ignored",
       square_with([](Context& c, const Tensor&) { return plain::scale(c.saved(0), 2); }),
       {matrix()},
       {"not linear in the upstream gradient", "right only for an all-ones upstream gradient"}},
      {"upstream squared",
       square_with([](Context& c, const Tensor& g) { return twice(plain::mul(g, g), c.saved(0)); }),
       {matrix()},
       {"not linear in the upstream gradient"}},
      {"right only for a contiguous upstream",
       square_with([](Context& c, const Tensor& g) {
         std::vector<double> values(9);
         for (size_t i = 0; i < 9; ++i) values[i] = 2 * c.saved(0).to_vector<double>()[i] * g.data<double>()[i];
         return from(values, {3, 3});
       }),
       {matrix()},
       {"a non-contiguous upstream gradient gives", "the rule ignores strides"}},
      {"writes its upstream",
       square_with([](Context& c, const Tensor& g) {
         const Tensor dx = twice(g, c.saved(0));
         scribble(g);
         return dx;
       }),
       {matrix()},
       {"backward changes its upstream gradient"}},
  };
}

std::vector<Wrong> contract_is_broken() {
  auto calls = std::make_shared<int>();
  return {
      {"shape",
       square_with([](Context&, const Tensor&) { return zeros({9}, DType::f64); }),
       {matrix()},
       {"gradcheck: backward fails: rule: the gradient of input 0 is [9] f64, the input is [3, 3] f64"}},
      {"dtype",
       square_with([](Context&, const Tensor&) {
         return zeros({3, 3});
       }),
       {matrix()},
       {"the gradient of input 0 is [3, 3] f32, the input is [3, 3] f64"}},
      {"count",
       [](const Tensor& x) {
         return apply(Rule2{plain::mul, [](Context&, const Tensor& g) { return Grads{g}; }}, x, x);
       },
       {matrix()},
       {"backward returned 1 gradients for 2 inputs"}},
      {"throws",
       square_with([](Context&, const Tensor&) -> Tensor { fail<ShapeError>("inner: it broke"); }),
       {matrix()},
       {"backward fails: inner: it broke"}},
      {"not deterministic",
       square_with([calls](Context&, const Tensor& g) { return plain::scale(g, ++*calls); }),
       {matrix()},
       {"backward is not deterministic"}},
      {"impure function",
       rule([calls](const Tensor& x) { return plain::scale(x, ++*calls); },
            [](Context&, const Tensor& g) { return g; }),
       {matrix()},
       {"two calls with the same inputs give different values"}},
      {"writes its input",
       square_with([](Context& c, const Tensor& g) {
         const Tensor x = c.saved(0), dx = twice(g, x);
         scribble(x);
         return dx;
       }),
       {matrix()},
       {"input 0 (shape [3, 3]) was changed"}},
      {"writes its output",
       square_with([](Context& c, const Tensor& g) {
         scribble(c.saved(1));
         return twice(g, c.saved(0));
       }),
       {matrix()},
       {"output was changed by backward"}},
      {"depends on which gradients are wanted",
       rule2(plain::mul,
             [](Context& c, const Tensor& g) {
               const Tensor both = c.needs(0) && c.needs(1) ? c.saved(1) : c.saved(0);
               return Grads{plain::mul(g, both), plain::mul(g, c.saved(0))};
             }),
       two(),
       {"asked for alone, the gradient is"}},
  };
}

/// Right once and wrong twice.
std::vector<Wrong> second_is_wrong() {
  const char* outside = "the rule computes a factor outside the tape (detach, NoGrad or a raw kernel)";
  return {
      {"a raw kernel",
       square_with([](Context& c, const Tensor& g) {
         return map(g, c.saved(0), [](double u, double v) { return 2 * u * v; });
       }),
       {matrix()},
       {"the gradient of this input is missing", outside}},
      {"a detached factor",
       square_with([](Context& c, const Tensor& g) { return twice(g, c.saved(0).detach()); }),
       {matrix()},
       {"input 0 (shape [3, 3]) at", "the gradient of this input is missing", outside}},
      {"half of it under NoGrad",
       rule([](const Tensor& x) { return map(x, [](double v) { return v * v * v; }); },
            [](Context& c, const Tensor& g) {
              const Tensor x = c.saved(0);
              return plain::scale(plain::mul(plain::mul(g, x), x.detach()), 3);
            }),
       {matrix()},
       {"analytic = 0.5 * numeric everywhere: a factor is missing", outside}},
      {"a wrong rule for the derivative",
       rule([](const Tensor& x) { return map(x, [](double v) { return std::sin(v); }); },
            [](Context& c, const Tensor& g) {
              const auto cos = [](const Tensor& x) {
                return apply(Rule{[](const Tensor& t) { return map(t, [](double v) { return std::cos(v); }); },
                                  [](Context& k, const Tensor& u) { return plain::mul(u, plain::sin(k.saved(0))); }},
                             x);
              };
              return plain::mul(g, cos(c.saved(0)));
            }),
       {matrix()},
       {"analytic = -1 * numeric: the sign is wrong"}},
  };
}

std::set<std::string> caught;

template <class Check>
void expect_caught(const std::vector<Wrong>& rules, const std::string& begins, Check check) {
  for (const Wrong& row : rules) {
    CAPTURE(row.what);
    const GradcheckResult result = check(row.f, row.inputs);
    CHECK_FALSE(result);
    CHECK_MESSAGE(result.message.starts_with(begins), result.message);
    for (const char* said : row.said) CHECK_MESSAGE(result.message.find(said) != std::string::npos, result.message);
    caught.insert(row.what);
  }
}

}  // namespace

TEST_SUITE("gradcheck_wrong_rules") {
  TEST_CASE("each of many wrong rules fails with its own diagnosis") {
    const auto first = [](const TensorFunction& f, const std::vector<Tensor>& xs) { return gradcheck(f, xs); };
    caught.clear();
    expect_caught(values_are_wrong(), "gradcheck: ", first);
    expect_caught(upstream_is_mistreated(), "gradcheck: ", first);
    expect_caught(contract_is_broken(), "gradcheck: ", first);
    expect_caught(second_is_wrong(), "gradgradcheck: ", [](const TensorFunction& f, const std::vector<Tensor>& xs) {
      CHECK(gradcheck(f, xs));
      return gradgradcheck(f, xs);
    });
    CHECK(caught.size() == 37);
  }
}
