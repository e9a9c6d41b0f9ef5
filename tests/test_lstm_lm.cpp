// The LSTM language model: windows and carried states agree, text is written a token at a time, what does not fit is
// refused. Not here: what holds for every model (test_zoo.cpp).
// Next: ../models/lstm_lm.h.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "../autograd/grad_mode.h"
#include "../models/lstm_lm.h"
#include "../models/training/step.h"
#include "../nn/visitor.h"
#include "../ops/ops.h"
#include "op_table/run.h"

using namespace tapestry;
using op_table::distance;
using op_table::same_bits;

namespace {

const LstmLmConfig small{.vocab_size = 7, .d_model = 4, .hidden_size = 6, .n_layers = 2};

}  // namespace

TEST_SUITE("lstm_lm") {
  TEST_CASE("a text read in pieces with the state carried is the text read at once") {
    manual_seed(1);
    const LstmLm model(small);
    const Tensor tokens = randint(0, 7, {3, 9}), whole = model(tokens);
    CHECK(whole.shape() == Shape{3, 9, 7});
    LSTMState state;
    std::vector<Tensor> pieces;
    for (const auto& [from, to] : {std::array<int64_t, 2>{0, 4}, {4, 5}, {5, 9}})
      pieces.push_back(model(slice(tokens, 1, from, to), &state));
    CHECK(distance(cat(pieces, 1), whole) <= 1e-6);
    CHECK(state.h.shape() == Shape{2, 3, 6});
  }

  TEST_CASE("the loss is that of the logits, also through the training step") {
    manual_seed(2);
    const LstmLm model(small);
    const TokenBatch batch{.rows = 2, .context = 3, .inputs = {1, 2, 3, 4, 5, 6}, .targets = {2, 3, 4, 5, 6, 0}};
    const Tensor x = from(batch.inputs, {2, 3}), y = from(batch.targets, {2, 3});
    const Tensor loss = model.loss(x, y);
    CHECK(distance(loss, cross_entropy(model(x), y)) == 0);
    const TokenLoss step =
        accumulate_gradients(summed_cross_entropy([&](const Tensor& t) { return model(t); }), std::span(&batch, 1));
    CHECK(step.tokens == 6);
    CHECK(step.mean() == doctest::Approx(loss.item()).epsilon(1e-5));
    for (const auto& named : named_parameters(model)) CHECK(named.second.grad().defined());
  }

  TEST_CASE("at temperature 0 it writes the likeliest token, whatever pieces the prompt is read in") {
    manual_seed(3);
    const LstmLm model(small);
    const std::vector<int32_t> prompt = {3, 1, 4};
    std::vector<int32_t> written;
    generate(model, prompt, {.max_tokens = 6, .sampler = {.temperature = 0}},
             [&](int32_t id) { written.push_back(id); });
    std::vector<int64_t> all(prompt.begin(), prompt.end());
    const NoGrad raw;
    for (int i = 0; i < 6; ++i) {
      const Tensor logits = model(from(all, {1, static_cast<int64_t>(all.size())}));
      all.push_back(argmax(select(select(logits, 0, 0), 0, -1)).item<int64_t>());
    }
    CHECK(std::vector<int64_t>(written.begin(), written.end()) == std::vector<int64_t>(all.begin() + 3, all.end()));

    LstmReader at_once(model), in_pieces(model);
    const std::vector<float> a = at_once.read(prompt);
    static_cast<void>(in_pieces.read(std::span(prompt).first(1)));
    const std::vector<float> b = in_pieces.read(std::span(prompt).subspan(1));
    for (size_t i = 0; i < a.size(); ++i) CHECK(a[i] == doctest::Approx(b[i]).epsilon(1e-5));
  }

  TEST_CASE("forget gates start open, and dropout is for training alone") {
    manual_seed(4);
    LstmLmConfig config = small;
    config.dropout = 0.5;
    LstmLm model(config);
    for (const RecurrentWeights& w : model.lstm.stack.weights) {
      const Tensor bias = (w.bias_ih + w.bias_hh).detach();
      CHECK(min(slice(bias, 0, 6, 12)).item() == 1);
      CHECK(max(slice(bias, 0, 6, 12)).item() == 1);
      CHECK(max(abs(slice(bias, 0, 0, 6))).item() < 2 / std::sqrt(6.0));
    }
    const Tensor tokens = randint(0, 7, {3, 9});
    CHECK_FALSE(same_bits(model(tokens), model(tokens)));
    model.eval();
    CHECK(same_bits(model(tokens), model(tokens)));
  }

  TEST_CASE("what does not fit is refused") {
    CHECK_THROWS_WITH_AS(LstmLm({.vocab_size = 0}), "LstmLmConfig: vocab_size is 0; it must be at least 1", ValueError);
    CHECK_THROWS_WITH_AS(LstmLm({.dropout = -1}), "LstmLmConfig: dropout is -1; it must be from 0 to 1", ValueError);
    const LstmLm model(small);
    CHECK_THROWS_WITH_AS((void)model(zeros({3}, DType::i64)), "LstmLm: tokens are [3] i64; they must be (B, T)",
                         ShapeError);
    CHECK_THROWS_AS((void)model(full({1, 1}, 7, DType::i64)), IndexError);
    CHECK_THROWS_WITH_AS((void)LstmReader(model).read({}), "generate: there are no tokens to read; give at least one",
                         ValueError);
    CHECK_THROWS_AS(generate(model, {}, {}, [](int32_t) {}), ValueError);
    CHECK_THROWS_AS(generate(model, {}, {.max_tokens = -1, .sampler = {}}, [](int32_t) {}), ValueError);
  }
}
