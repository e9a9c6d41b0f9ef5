// Update rules against plain loops of their formulas; which parameters an optimizer moves, and with which options.
// Not here: stored values (the golden tests read them), clipping (test_clip.cpp). Next: test_optim_state.cpp.
#include <doctest/doctest.h>

#include "../autograd/factory.h"
#include "../autograd/grad_mode.h"
#include "../optim/adamw.h"
#include "../optim/optimizer.h"
#include "../optim/sgd.h"
#include "kernel_reference.h"

using namespace tapestry;
using tapestry::testing::epsilon;
using tapestry::testing::max_error;
using tapestry::testing::same_for_all_threads;
using tapestry::testing::values;

namespace {

// One element of a rule, in double, as the papers write it.
struct Element {
  double p = 0, m = 0, v = 0, v_max = 0, buffer = 0;
  int64_t t = 0;

  void adam(double g, double lr, const Adam::Options& o) {
    ++t;
    m = o.beta1 * m + (1 - o.beta1) * g;
    v = o.beta2 * v + (1 - o.beta2) * g * g;
    v_max = std::max(v_max, v);
    const double m_hat = m / (1 - std::pow(o.beta1, t));
    const double v_hat = (o.amsgrad ? v_max : v) / (1 - std::pow(o.beta2, t));
    p -= lr * m_hat / (std::sqrt(v_hat) + o.eps);
  }
  void step(double g, double lr, const Adam::Options& o) { adam(g + o.weight_decay * p, lr, o); }
  void step(double g, double lr, const AdamW::Options& o) {
    if (o.decay == Decay::first) p -= lr * o.weight_decay * p;
    adam(g, lr, {.beta1 = o.beta1, .beta2 = o.beta2, .eps = o.eps, .amsgrad = o.amsgrad});
    if (o.decay == Decay::last) p -= lr * o.weight_decay * p;
  }
  void step(double g, double lr, const SGD::Options& o) {
    g += o.weight_decay * p;
    if (o.momentum != 0) {
      buffer = t == 0 ? g : o.momentum * buffer + (1 - o.dampening) * g;
      g = o.nesterov ? g + o.momentum * buffer : buffer;
    }
    ++t;
    p -= lr * g;
  }
};

Tensor leaf(const Tensor& data) {
  data.requires_grad_();
  return data;
}

// Five steps with a change of rate before the third; the largest error of the parameters after any step, the elements rounded to T as stored.
template <class T, class Rule>
double worst_error(const typename Rule::Options& options, int64_t n) {
  const auto start = values<T>(n, 1);
  const Tensor p = leaf(from(start, {n}));
  Optimizer<Rule> optimizer({{"p", p}}, options);
  std::vector<Element> elements(static_cast<size_t>(n));
  for (size_t i = 0; i < elements.size(); ++i) elements[i].p = convert<double>(start[i]);
  double worst = 0;
  for (int64_t step = 0; step < 5; ++step) {
    const auto g = values<T>(n, 10 + static_cast<uint64_t>(step));
    if (step == 2) optimizer.set_lr(options.lr / 4);
    p.set_grad(from(g, {n}));
    optimizer.step();
    std::vector<double> want;
    for (size_t i = 0; i < elements.size(); ++i) {
      elements[i].step(convert<double>(g[i]), step < 2 ? options.lr : options.lr / 4, options);
      want.push_back(elements[i].p = convert<double>(convert<T>(elements[i].p)));
    }
    worst = std::max(worst, max_error(p.to_vector<double>(), want));
  }
  return worst;
}

template <class Rule>
void check_rule(const std::vector<typename Rule::Options>& table) {
  for (size_t row = 0; row < table.size(); ++row)
    for (const int64_t n : {1, 15, 16, 17, 1000}) {
      CAPTURE(Rule::name);
      CAPTURE(row);
      CAPTURE(n);
      CHECK(worst_error<double, Rule>(table[row], n) < 20 * epsilon<double>());
      CHECK(worst_error<float, Rule>(table[row], n) < 20 * epsilon<float>());
      CHECK(worst_error<bf16, Rule>(table[row], n) < 2 * epsilon<bf16>());  // one rounding may fall on the other side
    }
}

}  // namespace

TEST_SUITE("optim") {
  TEST_CASE("rules follow their formulas, with a change of rate in the middle") {
    check_rule<AdamW>({{.lr = 0.1, .weight_decay = 0.5},
                       {.lr = 0.1, .weight_decay = 0.5, .decay = Decay::last},
                       {.lr = 0.05, .beta1 = 0, .beta2 = 0.5, .eps = 0.1, .weight_decay = 0},
                       {.lr = 0.05, .beta2 = 0.9, .amsgrad = true}});
    check_rule<Adam>({{.lr = 0.1}, {.lr = 0.1, .weight_decay = 0.5}, {.lr = 0.1, .beta2 = 0.5, .amsgrad = true}});
    check_rule<SGD>({{.lr = 0.1},
                     {.lr = 0.1, .weight_decay = 0.5},
                     {.lr = 0.1, .momentum = 0.9},
                     {.lr = 0.1, .momentum = 0.9, .dampening = 0.3, .weight_decay = 0.1},
                     {.lr = 0.1, .momentum = 0.9, .weight_decay = 0.1, .nesterov = true}});
  }

  TEST_CASE("first steps by hand") {
    // The first step of Adam is lr · sign(g) whatever |g| is.
    const auto after = [](auto rule, auto options, double p, double g) {
      using Rule = decltype(rule);
      typename Rule::State state;
      const Tensor x = full({1}, p, DType::f64);
      Rule::update(x, full({1}, g, DType::f64), state, options);
      CHECK(state.step == 1);
      return x.item();
    };
    const auto near = [](double x) { return doctest::Approx(x).epsilon(1e-14); };
    for (const double g : {0.5, 1e-3, 1e30, -7.0}) {
      const double sign = g < 0 ? -1 : 1;
      CAPTURE(g);
      CHECK(after(Adam{}, Adam::Options{.lr = 0.1, .eps = 0}, 1, g) == near(1 - 0.1 * sign));
      const AdamW::Options decayed{.lr = 0.1, .eps = 0, .weight_decay = 0.1};
      CHECK(after(AdamW{}, decayed, 1, g) == near(0.99 - 0.1 * sign));
      AdamW::Options last = decayed;
      last.decay = Decay::last;
      CHECK(after(AdamW{}, last, 1, g) == near(0.99 * (1 - 0.1 * sign)));
    }
    CHECK(after(SGD{}, SGD::Options{.lr = 0.5, .momentum = 0.9, .dampening = 0.5}, 1, 2) == 0);  // no dampening yet
    CHECK(after(SGD{}, SGD::Options{.lr = 0.5, .momentum = 0.5, .nesterov = true}, 1, 2) ==
          -0.5);  // 1 - 0.5 (2 + 0.5 · 2)
  }

  TEST_CASE("elements without a gradient so far only decay, even with eps 0") {
    const Tensor p = tensor<double>({2, 3});
    AdamW::State state;
    for (int i = 0; i < 3; ++i)
      AdamW::update(p, tensor<double>({0, 1}), state, {.lr = 0.5, .eps = 0, .weight_decay = 1});
    CHECK(p.to_vector<double>()[0] == 0.25);
    CHECK(std::isfinite(p.to_vector<double>()[1]));
  }

  TEST_CASE("small steps reach an f32 parameter and not a bf16 one") {
    for (const auto& [dtype, want] : {std::pair{DType::f32, 0.94}, {DType::bf16, 1.0}}) {
      const Tensor p = ones({1}, dtype);
      AdamW::State state;
      for (int i = 0; i < 100; ++i) AdamW::update(p, ones({1}, dtype), state, {.lr = 6e-4, .weight_decay = 0});
      CHECK(p.item() == doctest::Approx(want).epsilon(1e-5));
      CHECK(state.exp_avg.dtype() == DType::f32);
    }
  }

  TEST_CASE("bits do not depend on threads, and grad_scale is a gradient scaled before") {
    constexpr int64_t n = 100'003;
    const auto run = [&](double grad_scale, double factor) {
      const Tensor p = leaf(from(values<float>(n, 1), {n}));
      Optimizer<AdamW> optimizer({{"p", p}}, {.lr = 0.1});
      for (uint64_t step = 0; step < 3; ++step) {
        auto g = values<float>(n, 7 + step);
        for (float& x : g) x *= static_cast<float>(factor);
        p.set_grad(from(g, {n}));
        optimizer.step(grad_scale);
      }
      return p.to_vector<float>();
    };
    CHECK(same_for_all_threads([&] { return run(0.3, 1); }));
    CHECK(tapestry::testing::same_bits(run(0.3, 1), run(1, 0.3)));
  }

  TEST_CASE("parameters without a gradient and frozen ones stand still, with their step count") {
    const Tensor a = leaf(ones({2})), b = leaf(ones({2})), c = leaf(ones({2}));
    Optimizer<AdamW> optimizer({{"a", a}, {"b", b}, {"c", c}}, {.lr = 0.1});
    for (int i = 0; i < 3; ++i) {
      a.set_grad(ones({2}));
      b.set_grad(i == 1 ? ones({2}) : Tensor{});
      c.set_grad(ones({2}));
      c.requires_grad_(false);
      optimizer.step();
    }
    CHECK(optimizer.state("a").step == 3);
    CHECK(optimizer.state("b").step == 1);
    CHECK(b.to_vector<float>()[0] == doctest::Approx(0.999 - 0.1));
    CHECK(c.to_vector<float>()[0] == 1);
    optimizer.zero_grad();
    CHECK_FALSE(a.grad().defined());
    const uint32_t version = a.version();
    optimizer.step();
    CHECK(a.version() == version);
    a.set_grad(ones({2}));
    optimizer.step();
    CHECK(a.version() > version);  // a step is a write, which a graph that saved the parameter will notice
  }

  TEST_CASE("parameters and gradients of any strides") {
    const Tensor storage = from(values<double>(12, 1), {3, 4}), dense_copy = empty({4, 3}, DType::f64);
    const Tensor turned = storage.view_of({4, 3}, {1, 4}, 0), g = from(values<double>(12, 2), {3, 4});
    dense_copy.copy_(turned);
    AdamW::State s1, s2;
    AdamW::update(turned, g.view_of({4, 3}, {1, 4}, 0), s1, {.lr = 0.1});
    AdamW::update(dense_copy, dense(g.view_of({4, 3}, {1, 4}, 0)), s2, {.lr = 0.1});
    CHECK(turned.to_vector<double>() == dense_copy.to_vector<double>());
    CHECK(storage.to_vector<double>() != values<double>(12, 1));
    AdamW::State s3;
    AdamW::update(zeros({0, 3}), zeros({0, 3}), s3, {});
    CHECK(s3.step == 1);
  }

  TEST_CASE("patterns") {
    struct Row {
      const char *pattern, *name;
      bool fits;
    };
    for (const Row& row :
         {Row{"*", "", true}, Row{"*", "a.b", true}, Row{"", "a", false},
          Row{"layers.*.weight", "layers.0.attention.q_proj.weight", true},
          Row{"layers.*.weight", "layers.0.bias", false}, Row{"*.norm.*", "layers.1.norm.weight", true},
          Row{"*.norm.*", "norm.weight", false}, Row{"*norm*", "norm.weight", true}, Row{"a?c", "abc", true},
          Row{"a?c", "ac", false}, Row{"a*b*c", "a_b_b_c", true}, Row{"a*b*c", "a_c_b", false},
          Row{"weight", "weights", false}, Row{"*a*a*a*a*b", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", false}}) {
      CAPTURE(row.pattern);
      CAPTURE(row.name);
      CHECK(matches_pattern(row.pattern, row.name) == row.fits);
    }
  }

  TEST_CASE("each parameter takes the options of the first group that matches") {
    const NamedTensors parameters{{"embedding.weight", leaf(ones({3, 2}))},
                                  {"layers.0.norm.weight", leaf(ones({2}))},
                                  {"layers.0.proj.weight", leaf(ones({2, 2}))},
                                  {"layers.0.proj.bias", leaf(ones({2}))}};
    const auto vectors = [](const std::string&, const Tensor& p) { return p.dim() == 1; };
    Optimizer<SGD> optimizer(parameters, {{.match = "*.norm.*", .options = {.lr = 1, .weight_decay = 0.25}},
                                          {.match = vectors, .options = {.lr = 2}},
                                          {.options = {.lr = 3}, .lr_scale = 0.5}});
    const auto after_step = [&] {
      std::vector<double> now;
      for (const auto& [name, p] : parameters) {
        {
          const NoGrad no_grad;
          p.fill_(1);
        }
        p.set_grad(ones(p.shape()));
      }
      optimizer.step();
      for (const auto& [name, p] : parameters) now.push_back(p.to_vector<double>()[0]);
      return now;
    };
    CHECK(after_step() == std::vector<double>{-0.5, -0.25, -0.5, -1});
    CHECK(optimizer.lr() == 1);
    optimizer.set_lr(4);
    CHECK(optimizer.group("layers.0.proj.bias").options.lr == 4);
    CHECK(after_step() == std::vector<double>{-1, -4, -1, -3});
  }

  TEST_CASE("decay of matrices only") {
    const Tensor matrix = leaf(ones({2, 2})), gain = leaf(ones({2})), number = leaf(ones({}));
    Optimizer<AdamW> optimizer({{"w", matrix}, {"gain", gain}, {"t", number}},
                               decay_matrices_only<AdamW>({.lr = 0.5, .weight_decay = 0.5}));
    optimizer.zero_grad();
    for (const Tensor& p : {matrix, gain, number}) p.set_grad(zeros(p.shape()));
    optimizer.step();
    CHECK(matrix.to_vector<double>() == std::vector<double>(4, 0.75));
    CHECK(gain.to_vector<double>() == std::vector<double>(2, 1));
    CHECK(number.item() == 1);
    CHECK_NOTHROW(Optimizer<AdamW>({{"w", matrix}}, decay_matrices_only<AdamW>({})));
  }
}
