// The training loop: steps, evaluations, the log and checkpoints, in the order that loses nothing when the process is
// killed.
// Not here: what a step is (trainer.h) and what a person sees (progress.h).
// Next: verify_resume.h.
#pragma once

#include <functional>

#include "log.h"
#include "run_folder.h"
#include "trainer.h"

namespace tapestry {

/// Is told what happens; the default is silence.
class TrainObserver {
 public:
  virtual ~TrainObserver() = default;
  virtual void on_step(const StepReport& /*report*/) {}
  virtual void on_evaluation(const LogEntry& /*entry*/) {}
};

enum class TrainEnd { finished, stopped };

/// Starts a run in its folder: checkpoint of step 0 first, which alone makes the folder one that can be resumed, then
/// config.json and an empty log; an older model.safetensors is removed.
void begin_run(const RunFolder& folder, Trainer& trainer);

/// Trains until config.steps or until stop() says so between two steps. Every config.eval_interval steps: evaluate,
/// write a line of the log, then the checkpoint that counts it. The last step evaluates the whole held-out part and
/// exports the model; a stop saves a checkpoint and exports, too. A skipped step of a trainer that debugs NaN does so as well,
/// and ends as a ValueError which says where the step stopped being finite.
TrainEnd run_training(const RunFolder& folder, Trainer& trainer, TrainObserver& observer,
                      const std::function<bool()>& stop);

}  // namespace tapestry
