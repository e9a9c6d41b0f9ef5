// Seconds of a scope, added to a sum.
// Next: trainer.cpp.
#pragma once

#include <chrono>

namespace tapestry {

/// Adds the time from its construction to stop(), or to its end, to `sum`.
class Stopwatch {
 public:
  explicit Stopwatch(double& sum) : sum_(&sum) {}
  ~Stopwatch() { stop(); }
  Stopwatch(const Stopwatch&) = delete;
  Stopwatch& operator=(const Stopwatch&) = delete;
  void stop() {
    if (sum_ != nullptr) *sum_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
    sum_ = nullptr;
  }

 private:
  double* sum_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

}  // namespace tapestry
