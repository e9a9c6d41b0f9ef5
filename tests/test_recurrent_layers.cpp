// Recurrent modules: layers and directions against their definition, names, states, cells, dropout.
// Not here: the recurrences (test_recurrent.cpp).
// Next: ../nn/recurrent.h.
#include <doctest/doctest.h>

#include <cmath>

#include "../autograd/tools/gradcheck.h"
#include "../nn/recurrent.h"
#include "../nn/visitor.h"
#include "../ops/ops.h"
#include "op_table/run.h"

using namespace tapestry;
using op_table::distance;
using op_table::same_bits;

namespace {

/// The parameters of one direction of a layer by their names.
std::vector<Tensor> named(const Module& m, const std::string& suffix) {
  std::vector<Tensor> found;
  for (const char* name : {"weight_ih", "weight_hh", "bias_ih", "bias_hh"})
    for (const auto& [path, p] : named_parameters(m))
      if (path == name + suffix) found.push_back(p);
  REQUIRE(found.size() == 4);
  return found;
}

std::vector<std::string> names_of(const Module& m) {
  std::vector<std::string> names;
  for (const auto& [path, p] : named_parameters(m)) names.push_back(path);
  return names;
}

Tensor backwards(const Tensor& x) { return slice(x, 0, {}, {}, -1); }

}  // namespace

TEST_SUITE("recurrent_layers") {
  TEST_CASE("layers and directions follow their definition, under PyTorch's names") {
    manual_seed(4);
    LSTM m(3, 5, {.num_layers = 2, .bidirectional = true});
    to(m, DType::f64);
    CHECK(names_of(m) == std::vector<std::string>{"weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0",
                                                  "weight_ih_l0_reverse", "weight_hh_l0_reverse", "bias_ih_l0_reverse",
                                                  "bias_hh_l0_reverse", "weight_ih_l1", "weight_hh_l1", "bias_ih_l1",
                                                  "bias_hh_l1", "weight_ih_l1_reverse", "weight_hh_l1_reverse",
                                                  "bias_ih_l1_reverse", "bias_hh_l1_reverse"});
    const Tensor x = randn({4, 2, 3}, DType::f64), h = randn({4, 2, 5}, DType::f64), c = randn({4, 2, 5}, DType::f64);
    Tensor input = x;
    std::vector<Tensor> hs, cs;
    for (const std::string layer : {"_l0", "_l1"}) {
      std::vector<Tensor> outputs;
      for (const std::string direction : {"", "_reverse"}) {
        const auto w = named(m, layer + direction);
        const auto at = static_cast<int64_t>(hs.size());
        const Tensor read = direction.empty() ? input : backwards(input);
        const auto y = lstm(read, select(h, 0, at), select(c, 0, at), w[0], w[1], w[2], w[3]);
        outputs.push_back(direction.empty() ? y[0] : backwards(y[0]));
        hs.push_back(y[1]);
        cs.push_back(y[2]);
      }
      input = cat(outputs, -1);
    }
    const auto [output, state] = m(x, LSTMState{h, c});
    CHECK(same_bits(output, input));
    CHECK(same_bits(state.h, stack(hs)));
    CHECK(same_bits(state.c, stack(cs)));
  }

  TEST_CASE("without first states they are zeros, and batch_first swaps x and the output alone") {
    manual_seed(5);
    GRU m(3, 5, {.num_layers = 2});
    const Tensor x = randn({4, 2, 3});
    const auto [output, h] = m(x);
    CHECK(output.shape() == Shape{4, 2, 5});
    CHECK(h.shape() == Shape{2, 2, 5});
    CHECK(same_bits(m(x, zeros({2, 2, 5})).output, output));
    m.stack.options.batch_first = true;
    const auto [swapped, same] = m(transpose(x, 0, 1));
    CHECK(same_bits(transpose(swapped, 0, 1), output));
    CHECK(same_bits(same, h));
  }

  TEST_CASE("derivatives of stacks and cells, in every parameter") {
    manual_seed(6);
    const auto check = [](auto module, auto call) {
      to(module, DType::f64);
      std::vector<Tensor> inputs = {randn({2, 2, 3}, DType::f64).requires_grad_()};
      for (const auto& [name, p] : named_parameters(module)) inputs.push_back(p);
      const auto result = gradcheck(
          [&](std::span<const Tensor> xs) {
            auto bound = module;
            size_t at = 1;
            for_each_parameter(bound, [&](const std::string&, Parameter& p) { static_cast<Tensor&>(p) = xs[at++]; });
            return call(bound, xs[0]);
          },
          inputs);
      CHECK_MESSAGE(result.ok, result.message);
    };
    const auto output = [](const auto& m, const Tensor& x) { return m(x).output; };
    const RecurrentOptions both{.num_layers = 2, .batch_first = true, .bidirectional = true};
    check(RNN(3, 2, both), output);
    check(LSTM(3, 2, both), output);
    check(GRU(3, 2, both), output);
    const auto twice = [](const auto& m, const Tensor& x) { return m(select(x, 0, 0), m(select(x, 0, 1))); };
    check(RNNCell(3, 2, {}, true), twice);
    check(GRUCell(3, 2), twice);
    check(LSTMCell(3, 2), [&](const LSTMCell& m, const Tensor& x) { return twice(m, x).h; });
  }

  TEST_CASE("a cell is one step of its layer") {
    manual_seed(7);
    LSTM layer(3, 5);
    const LSTMCell cell(3, 5);
    const auto to_copy = named(cell, "");
    size_t at = 0;
    for_each_parameter(layer, [&](const std::string&, Parameter& p) { p = Parameter(to_copy[at++]); });
    const Tensor x = randn({2, 2, 3});
    const auto [output, last] = layer(x);
    LSTMState state;
    for (int64_t t = 0; t < 2; ++t) {
      state = cell(select(x, 0, t), state);
      CHECK(distance(state.h, select(output, 0, t)) <= 1e-6);
    }
    CHECK(distance(state.c, select(last.c, 0, 0)) <= 1e-6);
    CHECK(names_of(GRUCell(3, 5, {.bias = false})) == std::vector<std::string>{"weight_ih", "weight_hh"});
  }

  TEST_CASE("weights start uniform in ±1/√H") {
    manual_seed(8);
    const GRU m(40, 100);
    for (const auto& [name, p] : named_parameters(m)) {
      CHECK(max(abs(p)).item() <= 0.1);
      CHECK(max(p).item() > 0.09);
      CHECK(min(p).item() < -0.09);
    }
  }

  TEST_CASE("dropout lies between layers, while training") {
    manual_seed(9);
    RNN one(3, 50, {.dropout = 0.5}), two(3, 50, {.num_layers = 2, .dropout = 1});
    const Tensor x = randn({3, 2, 3});
    CHECK(same_bits(one(x).output, one(x).output));
    for (const auto& [name, p] : named_parameters(two))
      if (name.starts_with("bias")) p.detach().zero_();
    CHECK(max(abs(two(x).output)).item() == 0);
    two.eval();
    CHECK(max(abs(two(x).output)).item() > 0);
  }

  TEST_CASE("bf16 is computed in f32 and rounded once") {
    manual_seed(10);
    LSTM m(3, 20);
    to(m, DType::bf16);
    const Tensor x = to(randn({30, 2, 3}), DType::bf16);
    LSTM wide = m;
    to(wide, DType::f32);
    CHECK(same_bits(m(x).output, to(wide(to(x, DType::f32)).output, DType::bf16)));
  }

  TEST_CASE("what does not fit is refused") {
    CHECK_THROWS_WITH_AS(LSTM(0, 3), "LSTM: input_size 0 and hidden_size 3 must be at least 1", ValueError);
    CHECK_THROWS_WITH_AS(GRUCell(3, 0), "GRUCell: input_size 3 and hidden_size 0 must be at least 1", ValueError);
    CHECK_THROWS_WITH_AS(GRU(2, 3, {.num_layers = 0}), "GRU: num_layers is 0; it must be at least 1", ValueError);
    CHECK_THROWS_WITH_AS(RNN(2, 3, {.dropout = 1.5}), "RNN: dropout is 1.5, which is not in [0, 1]", ValueError);
    const LSTM m(2, 3, {.batch_first = true});
    CHECK_THROWS_WITH_AS((void)m(zeros({4, 2})), "LSTM: x is [4, 2] f32; it must be (B, T, in) with in = 2",
                         ShapeError);
    CHECK_THROWS_WITH_AS((void)m(zeros({4, 5, 2}), LSTMState{.c = zeros({1, 5, 3})}),
                         "LSTM: state c is [1, 5, 3] f32, x is [5, 4, 2] f32; it must be [1, 4, 3]", ShapeError);
  }
}
