// Optimizer state by name: saved, resumed bit for bit, refused when it does not fit; and the errors of options, parameters and groups.
// Not here: files. Next: ../optim/optimizer.h.
#include <doctest/doctest.h>

#include <functional>
#include <limits>

#include "../autograd/factory.h"
#include "../autograd/grad_mode.h"
#include "../optim/adamw.h"
#include "../optim/optimizer.h"
#include "../optim/sgd.h"
#include "kernel_reference.h"

using namespace tapestry;
using tapestry::testing::values;

namespace {

Tensor leaf(const Tensor& data) {
  data.requires_grad_();
  return data;
}

// A parameter with a gradient.
Tensor with_grad(const Tensor& data, const Tensor& grad) {
  leaf(data).set_grad(grad);
  return data;
}

std::map<std::string, Tensor> copies(const std::map<std::string, Tensor>& dict) {
  std::map<std::string, Tensor> result;
  for (const auto& [key, t] : dict) {
    result[key] = empty(t.shape(), t.dtype());
    result[key].copy_(t);
  }
  return result;
}

}  // namespace

TEST_SUITE("optim_state") {
  TEST_CASE_TEMPLATE("a run continues from saved state bit for bit", Rule, AdamW, Adam, SGD) {
    typename Rule::Options options{.lr = 0.1, .weight_decay = 0.1};
    if constexpr (requires { options.momentum; }) options.momentum = 0.9;
    if constexpr (requires { options.amsgrad; }) options.amsgrad = true;
    if constexpr (requires { options.decay; }) options.decay = Decay::last;
    const auto start = [](uint64_t seed) {
      return NamedTensors{{"w", leaf(from(values<float>(6, seed), {2, 3}))},
                          {"half", leaf(from(values<bf16>(5, seed + 1), {5}))},
                          {"never", leaf(from(values<double>(4, seed + 2), {4}))}};
    };
    const auto run = [](Optimizer<Rule>& optimizer, uint64_t steps, uint64_t from_step) {
      for (uint64_t step = from_step; step < from_step + steps; ++step) {
        optimizer.set_lr(0.1 / static_cast<double>(step + 1));
        optimizer.parameters()[0].second.set_grad(from(values<float>(6, 50 + step), {2, 3}));
        optimizer.parameters()[1].second.set_grad(from(values<bf16>(5, 60 + step), {5}));
        optimizer.step();
      }
    };
    const NamedTensors one = start(1), two = start(9);
    Optimizer<Rule> straight(one, options), resumed(two, {.lr = 7});
    run(straight, 3, 0);
    const auto dict = copies(straight.state_dict()), untouched = copies(dict);
    for (size_t i = 0; i < one.size(); ++i) {
      const NoGrad no_grad;
      two[i].second.copy_(one[i].second);
    }
    resumed.load_state_dict(dict);
    resumed.load_state_dict(dict);
    CHECK(resumed.lr() == straight.lr());
    CHECK(resumed.state_dict().size() == dict.size());
    run(straight, 3, 3);
    run(resumed, 3, 3);
    for (size_t i = 0; i < one.size(); ++i)
      CHECK(one[i].second.template to_vector<double>() == two[i].second.template to_vector<double>());
    CHECK(resumed.state("w").step == 6);
    CHECK(resumed.state("never").step == 0);
    for (const auto& [key, t] : untouched)  // what was loaded is a copy
      CHECK(dict.at(key).template to_vector<double>() == t.template to_vector<double>());
    const auto now = straight.state_dict();
    for (const auto& [key, t] : resumed.state_dict())
      CHECK(t.template to_vector<double>() == now.at(key).template to_vector<double>());
  }

  TEST_CASE("state that does not fit is one error, and nothing is loaded") {
    const Tensor w = with_grad(ones({2}), ones({2}));
    Optimizer<AdamW> optimizer({{"w", w}}, {.lr = 0.1});
    optimizer.step();
    const auto good = copies(optimizer.state_dict());
    struct Row {
      std::function<void(std::map<std::string, Tensor>&)> spoil;
      std::string want;
    };
    const Row rows[] = {
        {[](auto& d) { d.clear(); },
         "load_state_dict: 9 missing (group.0.lr; group.0.beta1; group.0.beta2; …); nothing was loaded"},
        {[](auto& d) { d.erase("exp_avg_sq.w"); }, "load_state_dict: 1 missing (exp_avg_sq.w); nothing was loaded"},
        {[](auto& d) {
           d.erase("exp_avg.w");
           d["exp_avg.v"] = ones({2});
         },
         "load_state_dict: 1 missing (exp_avg.w), 1 unexpected (exp_avg.v); nothing was loaded"},
        {[](auto& d) {
           d["exp_avg.w"] = ones({3});
           d["exp_avg_sq.w"] = ones({2}, DType::f64);
         },
         "load_state_dict: 2 misfit (exp_avg.w is [3] f32, want [2] f32; exp_avg_sq.w is [2] f64, want [2] f32); "
         "nothing was loaded"},
        {[](auto& d) { d["step.w"] = ones({}); },
         "load_state_dict: 1 misfit (step.w is [] f32, want one i64); nothing was loaded"},
        {[](auto& d) { d["step.w"] = full({}, -1, DType::i64); },
         "load_state_dict: 1 misfit (step.w is -1, want a count); nothing was loaded"},
        {[](auto& d) { d["group.0.decay"] = full({}, 1e300, DType::f64); },
         "load_state_dict: 1 misfit (group.0.decay is 1e+300, want 0 or 1); nothing was loaded"},
        {[](auto& d) { d["group.0.lr"] = Tensor{}; },
         "load_state_dict: 1 misfit (group.0.lr is undefined, want one f64); nothing was loaded"},
    };
    for (const Row& row : rows) {
      auto dict = copies(good);
      row.spoil(dict);
      CHECK_THROWS_WITH_AS(optimizer.load_state_dict(dict), row.want.c_str(), FormatError);
    }
    auto dict = copies(good);
    dict["group.0.beta1"] = full({}, 1, DType::f64);
    dict["step.w"] = full({}, 77, DType::i64);
    CHECK_THROWS_WITH_AS(optimizer.load_state_dict(dict), "adamw: beta1 must be in [0, 1): it is 1", ValueError);
    CHECK(optimizer.state("w").step == 1);
    CHECK(optimizer.lr() == 0.1);
  }

  TEST_CASE("options outside their domain are errors that name the value") {
    const double nan = std::numeric_limits<double>::quiet_NaN(), inf = std::numeric_limits<double>::infinity();
    const auto message = [](auto rule, auto options) -> std::string {
      using Rule = decltype(rule);
      try {
        Optimizer<Rule>({{"w", leaf(ones({1}))}}, options);
      } catch (const ValueError& e) {
        return e.what();
      }
      return "";
    };
    CHECK(message(AdamW{}, AdamW::Options{}) == "");
    CHECK(message(AdamW{}, AdamW::Options{.lr = -1}) == "adamw: lr must be finite and not negative: it is -1");
    CHECK(message(AdamW{}, AdamW::Options{.lr = inf}) == "adamw: lr must be finite and not negative: it is inf");
    CHECK(message(AdamW{}, AdamW::Options{.beta1 = 1}) == "adamw: beta1 must be in [0, 1): it is 1");
    CHECK(message(AdamW{}, AdamW::Options{.beta2 = nan}) == "adamw: beta2 must be in [0, 1): it is nan");
    CHECK(message(Adam{}, Adam::Options{.eps = -1e-8}) == "adam: eps must be finite and not negative: it is -1e-08");
    CHECK(message(Adam{}, Adam::Options{.weight_decay = -2}) ==
          "adam: weight_decay must be finite and not negative: it is -2");
    CHECK(message(SGD{}, SGD::Options{.momentum = -0.5}) ==
          "sgd: momentum must be finite and not negative: it is -0.5");
    CHECK(message(SGD{}, SGD::Options{.nesterov = true}) ==
          "sgd: nesterov needs momentum above 0 and no dampening: momentum = 0, dampening = 0");
    const Tensor w = with_grad(ones({1}), ones({1}));
    Optimizer<SGD> optimizer({{"w", w}}, {.lr = 0.5});
    CHECK_THROWS_WITH_AS(optimizer.set_lr(nan), "sgd: lr must be finite and not negative: it is nan", ValueError);
    CHECK_THROWS_WITH_AS(optimizer.step(inf), "sgd: grad_scale must be finite and not negative: it is inf", ValueError);
    CHECK(w.item() == 1);
    CHECK(optimizer.lr() == 0.5);
    CHECK(optimizer.state("w").step == 0);
    CHECK_THROWS_WITH_AS((void)optimizer.state("v"), "state: there is no parameter named v among the 1", ValueError);
  }

  TEST_CASE("parameters and groups that do not fit are errors that name them") {
    const Tensor w = leaf(ones({2, 2})), b = leaf(ones({2}));
    using Groups = std::vector<ParameterGroup<SGD>>;
    struct Row {
      NamedTensors parameters;
      Groups groups;
      std::string want;
    };
    const Groups all(1);
    const Row rows[] = {
        {{}, all, "sgd: there are no parameters to optimize"},
        {{{"w", w}, {"w", b}}, all, "sgd: two parameters are named w; state is kept by name"},
        {{{"w", w}, {"tied", w}}, all, "sgd: parameters w and tied are one tensor; list it once"},
        {{{"w", Tensor{}}}, all, "sgd: parameter w is undefined"},
        {{{"ids", arange(3)}}, all, "sgd: parameter ids ([3] i64) is not floating"},
        {{{"w", w}, {"b", b}},
         {{.match = "w*"}},
         "sgd: parameter b ([2] f32) is in none of the 1 groups; end with a group \"*\""},
        {{{"w", w}},
         {{.match = "*.nrom.*"}, {}},
         "sgd: the pattern \"*.nrom.*\" fits none of the 1 parameters (the first is w)"},
        {{{"w", w}}, {{.lr_scale = -1}}, "sgd: lr_scale must be finite and not negative: it is -1"},
    };
    for (const Row& row : rows) {
      std::string got;
      try {
        Optimizer<SGD>(row.parameters, row.groups);
      } catch (const Error& e) {
        got = e.what();
      }
      CHECK(got == row.want);
    }
    SGD::State state;
    CHECK_THROWS_WITH_AS(SGD::update(w, ones({2}), state, {}),
                         "sgd: the gradient [2] f32 does not have the shape of the parameter [2, 2] f32", ShapeError);
    CHECK_THROWS_AS(SGD::update(w, ones({2, 2}, DType::f64), state, {}), DTypeError);
    state.momentum_buffer = ones({2});
    CHECK_THROWS_WITH_AS(SGD::update(w, ones({2, 2}), state, {.momentum = 0.9}),
                         "sgd: momentum_buffer [2] f32 does not have the shape of the parameter [2, 2] f32",
                         ShapeError);
  }
}
