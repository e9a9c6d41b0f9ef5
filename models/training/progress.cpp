// The lines.
// Next: loop.cpp.
#include "progress.h"

#include <fmt/core.h>
#include <unistd.h>

#include <cmath>
#include <cstdio>

namespace tapestry {

std::string format_duration(double seconds) {
  const auto s = static_cast<int64_t>(std::ceil(seconds));
  if (s >= 3600) return fmt::format("{}:{:02}:{:02}", s / 3600, s / 60 % 60, s % 60);
  return fmt::format("{}:{:02}", s / 60, s % 60);
}

std::string format_count(double count) {
  if (count >= 1e6) return fmt::format("{:.2f}M", count / 1e6);
  if (count >= 1e4) return fmt::format("{:.1f}k", count / 1e3);
  return fmt::format("{:.0f}", count);
}

Progress::Progress(int64_t steps) : steps_(steps), terminal_(::isatty(STDERR_FILENO) == 1) {}

void Progress::on_step(const StepReport& report) {
  const auto now = Clock::now();
  const double seconds = std::chrono::duration<double>(now - last_step_).count();
  last_step_ = now;
  seconds_a_step_ = seconds_a_step_ == 0 ? seconds : 0.95 * seconds_a_step_ + 0.05 * seconds;
  if (report.skipped) {
    clear();
    fmt::print("step {}: skipped, loss {} and gradient norm {} are not both finite\n", report.step, report.loss,
               report.grad_norm);
    std::fflush(stdout);
    return;
  }
  if (!terminal_ || now - last_line_ < std::chrono::milliseconds(100)) return;
  last_line_ = now;
  shown_ = true;
  const double tokens_per_second = static_cast<double>(report.tokens) / seconds_a_step_;
  fmt::print(stderr, "\r\x1b[Kstep {}/{}  loss {:.4f}  lr {:.2e}  gradient {:.2f}  {} tokens/s  {} left", report.step,
             steps_, report.loss, report.lr, report.grad_norm, format_count(tokens_per_second),
             format_duration(seconds_a_step_ * static_cast<double>(steps_ - report.step)));
  std::fflush(stderr);
}

void Progress::on_evaluation(const LogEntry& entry) {
  clear();
  last_step_ = Clock::now();  // the evaluation is no part of the next step
  const std::string train = entry.train_loss ? fmt::format("{:.4f}", *entry.train_loss) : "none";
  fmt::print("step {:>6}  train loss {}  held-out loss {:.4f}  perplexity {:.3f}  {} tokens/s\n", entry.step, train,
             entry.val_loss, entry.perplexity(), format_count(entry.tokens_per_second));
  std::fflush(stdout);
}

void Progress::clear() {
  if (shown_) fmt::print(stderr, "\r\x1b[K");
  if (shown_) std::fflush(stderr);
  shown_ = false;
}

}  // namespace tapestry
