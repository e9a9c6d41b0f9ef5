// The log of a run: one JSON object a line, one line an evaluation.
// Not here: what a person sees on the way (progress.h).
// Next: run_folder.h.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "trainer.h"

namespace tapestry {

/// One line. Losses are in nats a token.
struct LogEntry {
  int64_t step = 0;
  std::optional<double> train_loss;  ///< mean of the steps since the line before; none if all were skipped
  double val_loss = 0;
  int64_t val_tokens = 0;        ///< how many held-out tokens that is the mean of
  double tokens_per_second = 0;  ///< trained on, while in steps and data
  double lr = 0;                 ///< of the last step
  int64_t skipped = 0;           ///< steps so far whose loss or gradient was not finite
  TrainSeconds seconds;          ///< since the line before
  [[nodiscard]] double perplexity() const;
  /// Without a newline. Numbers that are not finite become null.
  [[nodiscard]] std::string to_json() const;
};

/// Appends lines to a file that is cut to the length a checkpoint remembers.
class TrainLog {
 public:
  /// Cuts the file to `bytes` (it is made if missing): what was written after the checkpoint will be written again.
  /// IoError if it cannot be.
  TrainLog(std::string path, int64_t bytes);
  ~TrainLog();
  TrainLog(const TrainLog&) = delete;
  TrainLog& operator=(const TrainLog&) = delete;

  /// Adds a line and syncs it. Returns the length of the file.
  int64_t append(const LogEntry& entry);

 private:
  std::string path_;
  int fd_;
};

}  // namespace tapestry
