// The proof that a run can be stopped and resumed without a trace, on the user's own configuration and text.
// Next: progress.h.
#pragma once

#include <string>

#include "trainer.h"

namespace tapestry {

struct ResumeVerdict {
  bool equal = false;
  std::string message;  ///< one line: what was compared, or the first difference
};

/// Trains 2·steps steps straight, and again steps steps, a checkpoint written to `file` and read into a new trainer,
/// and steps more. Compares every loss, weight and moment bit by bit. The file is removed.
ResumeVerdict verify_resume(const TrainConfig& config, const TrainingText& text, int64_t steps,
                            const std::string& file);

}  // namespace tapestry
