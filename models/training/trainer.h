// The trainer: what a run consists of (model, optimizer, schedule, data, state) and one step of it.
// Not here: the loop with its evaluations, log and checkpoints (loop.h), files (checkpoint.h). Every part can be used,
// and replaced, alone.
// Next: loop.h.
#pragma once

#include <memory>

#include "../../nn/module.h"
#include "../../optim/adamw.h"
#include "../../optim/optimizer.h"
#include "../../optim/schedule.h"
#include "config.h"
#include "debug_nan.h"
#include "step.h"
#include "training_text.h"

namespace tapestry {

/// A model to be trained: its members, what its steps descend, and what it is judged by.
struct LanguageModel {
  std::shared_ptr<Module> module;
  LossFn training_loss, held_out_loss;
};

/// The model of config.model with the weights of config.seed.
LanguageModel make_transformer(const TrainConfig& config);
/// Any other model whose call maps tokens to logits.
template <class M>
LanguageModel language_model(std::shared_ptr<M> model) {
  const LossFn loss = summed_cross_entropy([raw = model.get()](const Tensor& tokens) { return (*raw)(tokens); });
  return {model, loss, loss};
}

/// What a step did.
struct StepReport {
  int64_t step = 0;  ///< updates done, this one included
  double loss = 0, grad_norm = 0, lr = 0;
  int64_t tokens = 0;
  bool skipped = false;  ///< the loss or the gradient was not finite, and the weights were left alone
};

/// Where the time went, in seconds.
struct TrainSeconds {
  double steps = 0, data = 0, evaluation = 0, checkpoint = 0;
};

/// What a checkpoint remembers beside tensors. Sums run from the last line of the log.
struct TrainState {
  int64_t step = 0;
  double loss_sum = 0;  ///< of the steps that were not skipped
  int64_t loss_steps = 0;
  int64_t tokens = 0;
  int64_t skipped = 0, skipped_in_a_row = 0;
  TrainSeconds seconds;
  int64_t log_bytes = 0;  ///< length of the log that belongs to this state
};

class Trainer {
 public:
  /// `text` is borrowed. Fills config.model.vocab_size in. ValueError for a config that does not fit itself or the
  /// text.
  Trainer(TrainConfig config, const TrainingText& text);
  /// With parts of one's own: any model, any schedule.
  Trainer(TrainConfig config, const TrainingText& text, LanguageModel model, Schedule schedule);
  Trainer(const Trainer&) = delete;
  Trainer& operator=(const Trainer&) = delete;

  /// One update. A loss or gradient that is not finite skips it; ValueError once config.max_skipped steps in a row were
  /// skipped, unless they are to be debugged.
  StepReport step();
  /// Makes the first skipped step the last one of run_training, which says why it was skipped.
  void set_debug_nan(bool on) { debug_nan_ = on; }
  [[nodiscard]] bool debugs_nan() const { return debug_nan_; }
  /// Why the last step, which was skipped, was not finite. Runs it twice more (debug_nan.h).
  NanReport debug_last_step();
  [[nodiscard]] bool finished() const { return state_.step >= config_.steps; }
  /// Loss on the held-out part: the whole of it, or config.eval_windows windows.
  TokenLoss evaluate(bool whole);

  [[nodiscard]] const TrainConfig& config() const { return config_; }
  [[nodiscard]] const TrainingText& text() const { return text_; }
  [[nodiscard]] Module& model() const { return *model_.module; }
  [[nodiscard]] Optimizer<AdamW>& optimizer() { return optimizer_; }
  [[nodiscard]] const Optimizer<AdamW>& optimizer() const { return optimizer_; }
  [[nodiscard]] TrainState& state() { return state_; }
  [[nodiscard]] const TrainState& state() const { return state_; }

 private:
  [[nodiscard]] std::vector<TokenBatch> micro_batches(int64_t step) const;

  TrainConfig config_;
  const TrainingText& text_;
  BatchOrder order_;
  EvalWindows held_out_;
  LanguageModel model_;
  Schedule schedule_;
  Optimizer<AdamW> optimizer_;
  TrainState state_;
  bool debug_nan_ = false;
};

/// `config` with its vocab_size, checked. ValueError if it names another one than the tokenizer has.
TrainConfig completed(TrainConfig config, const Tokenizer& tokenizer);

}  // namespace tapestry
