// The loop.
// Next: ../programs/train.cpp.
#include "loop.h"

#include <filesystem>

#include "../../autograd/error.h"
#include "checkpoint.h"
#include "stopwatch.h"

namespace tapestry {
namespace {

// Note [Order of writes]: the log is written and synced before the checkpoint that remembers its length. A kill in
// between leaves a line too many, which the resumed run cuts off and writes again with the same losses; it never leaves
// a line too few.

/// The line for the steps since the last one, whose sums it clears.
LogEntry next_entry(Trainer& trainer, bool whole, double lr) {
  const TokenLoss val = trainer.evaluate(whole);
  TrainState& s = trainer.state();
  LogEntry entry{.step = s.step,
                 .train_loss = {},
                 .val_loss = val.mean(),
                 .val_tokens = val.tokens,
                 .lr = lr,
                 .skipped = s.skipped,
                 .seconds = s.seconds};
  if (s.loss_steps > 0) entry.train_loss = s.loss_sum / static_cast<double>(s.loss_steps);
  if (const double seconds = s.seconds.steps + s.seconds.data; seconds > 0)
    entry.tokens_per_second = static_cast<double>(s.tokens) / seconds;
  s.loss_sum = 0;
  s.loss_steps = s.tokens = 0;
  s.seconds = {};
  return entry;
}

[[noreturn]] void explain(Trainer& trainer, const StepReport& report) {
  const NanReport nan = trainer.debug_last_step();
  fail<ValueError>("train: step {} has loss {} and gradient norm {}: {}; {}", report.step, report.loss,
                   report.grad_norm, nan.origin, nan.in_f64);
}

void save(const RunFolder& folder, Trainer& trainer) {
  const Stopwatch time(trainer.state().seconds.checkpoint);
  save_checkpoint(folder.checkpoint(), trainer);
}

}  // namespace

void begin_run(const RunFolder& folder, Trainer& trainer) {
  folder.create();
  std::filesystem::remove(folder.model());
  save(folder, trainer);
  write_run_config(folder, trainer);
  const TrainLog log(folder.log(), 0);
}

TrainEnd run_training(const RunFolder& folder, Trainer& trainer, TrainObserver& observer,
                      const std::function<bool()>& stop) {
  TrainLog log(folder.log(), trainer.state().log_bytes);
  bool stopped = false;
  while (!trainer.finished() && !stopped) {
    const StepReport report = trainer.step();
    observer.on_step(report);
    if (report.skipped && trainer.debugs_nan()) {
      save(folder, trainer);
      export_model(folder, trainer);
      explain(trainer, report);
    }
    stopped = stop();
    if (trainer.finished() || report.step % trainer.config().eval_interval == 0) {
      const LogEntry entry = next_entry(trainer, trainer.finished(), report.lr);
      trainer.state().log_bytes = log.append(entry);
      save(folder, trainer);
      observer.on_evaluation(entry);
    } else if (stopped) {
      save(folder, trainer);
    }
  }
  export_model(folder, trainer);
  return trainer.finished() ? TrainEnd::finished : TrainEnd::stopped;
}

}  // namespace tapestry
