// Ctrl-C as a question a loop can ask between two steps.
// Next: train.cpp.
#pragma once

#include <atomic>
#include <csignal>

namespace tapestry::programs {

/// While it lives, the first SIGINT or SIGTERM only sets a flag; a second one ends the process as usual.
class StopSignal {
 public:
  StopSignal() {
    asked_ = false;
    struct sigaction action {};
    action.sa_handler = [](int) { asked_ = true; };
    action.sa_flags = static_cast<int>(SA_RESETHAND);
    sigaction(SIGINT, &action, &old_int_);
    sigaction(SIGTERM, &action, &old_term_);
  }
  ~StopSignal() {
    sigaction(SIGINT, &old_int_, nullptr);
    sigaction(SIGTERM, &old_term_, nullptr);
  }
  StopSignal(const StopSignal&) = delete;
  StopSignal& operator=(const StopSignal&) = delete;

  [[nodiscard]] static bool asked() { return asked_; }

 private:
  static_assert(std::atomic<bool>::is_always_lock_free, "a signal handler may only touch lock-free atomics");
  static inline std::atomic<bool> asked_{false};
  struct sigaction old_int_ {
  }, old_term_{};
};

}  // namespace tapestry::programs
