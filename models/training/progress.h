// What a person sees of a run: one line that rewrites itself on a terminal, and one line for every evaluation.
// Not here: the log for programs (log.h).
// Next: ../programs/train.cpp.
#pragma once

#include <chrono>
#include <string>

#include "loop.h"

namespace tapestry {

/// "0:42", "1:02:03".
std::string format_duration(double seconds);
/// "812", "31.2k", "1.25M".
std::string format_count(double count);

/// The progress line goes to stderr if that is a terminal, at most ten times a second; evaluations and skipped steps
/// are lines on stdout.
class Progress : public TrainObserver {
 public:
  explicit Progress(int64_t steps);
  void on_step(const StepReport& report) override;
  void on_evaluation(const LogEntry& entry) override;
  /// Clears the progress line.
  void clear();

 private:
  using Clock = std::chrono::steady_clock;
  int64_t steps_;
  bool terminal_;
  bool shown_ = false;
  Clock::time_point last_line_{}, last_step_ = Clock::now();
  double seconds_a_step_ = 0;  // smoothed
};

}  // namespace tapestry
