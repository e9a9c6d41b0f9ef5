// Why a training step was not finite: the step again, watched, and once more in f64.
// Not the finder itself (../../autograd/tools/anomaly.h).
// Next: loop.h.
#pragma once

#include <optional>
#include <string>

#include "../../autograd/tools/anomaly.h"
#include "../../nn/module.h"
#include "step.h"

namespace tapestry {

struct NanReport {
  std::optional<Anomaly> found;  ///< the op or rule whose inputs were finite and whose output is not, if there is one
  std::string origin;            ///< one line: that, or else what was not finite before any op, or only as a sum
  std::optional<bool> finite_in_f64;  ///< of loss and gradients; none if the step cannot run in f64
  std::string in_f64;                 ///< one line
};

/// Runs the step `random_step` on these batches with the model's weights twice more: watched by AnomalyMode, and with parameters and buffers converted to f64,
/// which are put back afterwards. Leaves the gradients cleared and everything else as it was.
NanReport debug_nan(Module& model, const LossFn& summed_loss, std::span<const TokenBatch> micro_batches,
                    uint64_t random_step);

}  // namespace tapestry
