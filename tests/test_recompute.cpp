// Blocks computed again in backward: the same gradients for less memory.
// Not here: checkpoints of any function (test_checkpoint.cpp).
// Next: ../models/transformer/lm.h.
#include <doctest/doctest.h>

#include "../autograd/grad_mode.h"
#include "../autograd/random.h"
#include "../models/training/config.h"
#include "../models/transformer/lm.h"
#include "../nn/visitor.h"
#include "../ops/ops.h"
#include "accounting_configs.h"

using namespace tapestry;

namespace {

struct Step {
  double loss = 0;
  std::vector<std::vector<float>> gradients;
};

Step step_of(const TransformerConfig& c, bool recompute) {
  manual_seed(5);
  Transformer model(c);
  model.recompute = recompute;
  set_random_step(7);
  const Tensor tokens = randint(0, c.vocab_size, {2, 9}), targets = randint(0, c.vocab_size, {2, 9});
  const Tensor loss = model.loss(tokens, targets, {.balance_loss = c.n_experts > 0 ? 0.1 : 0});
  loss.backward();
  Step step{.loss = loss.item(), .gradients = {}};
  for (const auto& [name, p] : named_parameters(model)) step.gradients.push_back(p.grad().to_vector<float>());
  return step;
}

}  // namespace

TEST_SUITE("recompute") {
  TEST_CASE("gradients have the same bits") {
    for (const NamedConfig& row : accounting_configs()) {
      CAPTURE(row.name);
      const Step kept = step_of(row.config, false), again = step_of(row.config, true);
      CHECK(kept.loss == again.loss);
      CHECK(kept.gradients == again.gradients);
    }
  }

  TEST_CASE("without recording, and with a cache, nothing is different") {
    const NoGrad no_grad;
    Transformer model(accounting_base());
    const Tensor tokens = randint(0, model.config.vocab_size, {2, 9});
    const auto logits = [&] {
      KeyValueCache cache(model.config, {.rows = 2});
      return std::vector{model(tokens).to_vector<float>(),
                         model(tokens, TransformerArgs{.cache = &cache}).to_vector<float>()};
    };
    const auto plain = logits();
    model.recompute = true;
    CHECK(logits() == plain);
  }

  TEST_CASE("a training configuration asks for it") {
    TrainConfig c;
    c.recompute = true;
    CHECK(TrainConfig::from_json(c.to_json()).recompute);
  }
}
