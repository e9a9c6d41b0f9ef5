// One step of training, and how a trainer is put together.
// Next: loop.cpp.
#include "trainer.h"

#include <algorithm>
#include <cmath>

#include "../../autograd/error.h"
#include "../../autograd/random.h"
#include "../../nn/visitor.h"
#include "../../optim/clip.h"
#include "../transformer/lm.h"
#include "stopwatch.h"

namespace tapestry {
namespace {

std::vector<ParameterGroup<AdamW>> matrices_decay(const TrainConfig& c) {
  AdamW::Options decaying{.lr = c.lr, .beta1 = c.beta1, .beta2 = c.beta2, .eps = c.eps, .weight_decay = c.weight_decay};
  AdamW::Options plain = decaying;
  plain.weight_decay = 0;
  const auto is_matrix = [](const std::string&, const Tensor& p) { return p.dim() >= 2; };
  std::vector<ParameterGroup<AdamW>> groups(2);
  groups[0].match = is_matrix;
  groups[0].options = decaying;
  groups[1].options = plain;
  return groups;
}

Schedule cosine(const TrainConfig& c) {
  return CosineWithWarmup{.lr_max = c.lr, .lr_min = c.lr_min, .warmup_steps = c.warmup, .total_steps = c.steps};
}

}  // namespace

TrainConfig completed(TrainConfig config, const Tokenizer& tokenizer) {
  const int64_t vocab_size = tokenizer.vocab_size();
  if (config.model.vocab_size != 0 && config.model.vocab_size != vocab_size)
    fail<ValueError>("config: vocab_size is {}, but the {} tokenizer of this text has {}; leave it out to take that",
                     config.model.vocab_size, tokenizer.name(), vocab_size);
  config.model.vocab_size = vocab_size;
  config.validate();
  config.model.validate();
  return config;
}

LanguageModel make_transformer(const TrainConfig& config) {
  manual_seed(static_cast<uint64_t>(config.seed));
  const auto model = std::make_shared<Transformer>(config.model);
  model->recompute = config.recompute;
  const auto loss = [raw = model.get()](const LanguageModelLossOptions& options) {
    return [raw, options](const Tensor& tokens, const Tensor& targets) { return raw->loss(tokens, targets, options); };
  };
  const LanguageModelLossOptions plain{.ignore_index = ignored_target, .reduction = Reduction::sum};
  LanguageModelLossOptions trained = plain;
  trained.label_smoothing = config.label_smoothing;
  trained.z_loss = config.z_loss;
  trained.balance_loss = config.balance_loss;
  return {model, loss(trained), loss(plain)};
}

Trainer::Trainer(TrainConfig config, const TrainingText& text)
    : Trainer(completed(std::move(config), text.tokenizer()), text, LanguageModel{}, Schedule{}) {}

Trainer::Trainer(TrainConfig config, const TrainingText& text, LanguageModel model, Schedule schedule)
    : config_(completed(std::move(config), text.tokenizer())),
      text_(text),
      order_(text.corpus().train(), config_.context, static_cast<uint64_t>(config_.seed)),
      held_out_(text.corpus().held_out(), config_.context),
      model_(model.module ? std::move(model) : make_transformer(config_)),
      schedule_(schedule ? std::move(schedule) : cosine(config_)),
      optimizer_(named_parameters(*model_.module), matrices_decay(config_)) {
  manual_seed(static_cast<uint64_t>(config_.seed));
}

std::vector<TokenBatch> Trainer::micro_batches(int64_t step) const {
  const int64_t rows = config_.micro_batch == 0 ? config_.batch : std::min(config_.micro_batch, config_.batch);
  std::vector<TokenBatch> batches;
  for (int64_t first = 0; first < config_.batch; first += rows)
    batches.push_back(order_.batch(step, std::min(rows, config_.batch - first), first));
  return batches;
}

StepReport Trainer::step() {
  // Step 0 of the random streams initialised the weights. What a step draws depends on its number alone, so a resumed
  // run draws the same.
  set_random_step(static_cast<uint64_t>(state_.step) + 1);
  Stopwatch data(state_.seconds.data);
  const std::vector<TokenBatch> batches = micro_batches(state_.step);
  data.stop();
  const Stopwatch time(state_.seconds.steps);
  const TokenLoss loss = accumulate_gradients(model_.training_loss, batches);
  StepReport report{.step = state_.step + 1,
                    .loss = loss.mean(),
                    .grad_norm = grad_norm(optimizer_.parameters()),
                    .lr = schedule_(state_.step),
                    .tokens = loss.tokens};
  report.skipped = !std::isfinite(report.loss) || !std::isfinite(report.grad_norm);
  if (!report.skipped) {
    optimizer_.set_lr(report.lr);
    optimizer_.step(config_.clip > 0 ? clip_coefficient(report.grad_norm, config_.clip) : 1);
  }
  optimizer_.zero_grad();
  ++state_.step;
  state_.tokens += loss.tokens;
  if (!report.skipped) {
    state_.loss_sum += report.loss;
    ++state_.loss_steps;
    state_.skipped_in_a_row = 0;
    return report;
  }
  ++state_.skipped;
  if (++state_.skipped_in_a_row >= config_.max_skipped && !debug_nan_)
    fail<ValueError>(
        "train: {} steps in a row had a loss or gradient that is not finite (step {}: loss {}, gradient norm {}); "
        "lower lr ({})",
        state_.skipped_in_a_row, report.step, report.loss, report.grad_norm, config_.lr);
  return report;
}

NanReport Trainer::debug_last_step() {
  return debug_nan(model(), model_.training_loss, micro_batches(state_.step - 1), static_cast<uint64_t>(state_.step));
}

TokenLoss Trainer::evaluate(bool whole) {
  const Stopwatch time(state_.seconds.evaluation);
  const bool training = model().is_training();
  model().eval();
  const TokenLoss loss = tapestry::evaluate(model_.held_out_loss, held_out_, whole ? 0 : config_.eval_windows);
  model().train(training);
  return loss;
}

}  // namespace tapestry
