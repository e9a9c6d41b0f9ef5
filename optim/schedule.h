// Learning-rate schedules: pure functions of the step, as small structs named by their options.
// Not here: who asks for the rate and hands it to an optimizer (the training loop).
// Next: sgd.h, or schedule.cpp for the formulas.
#pragma once

#include <cstdint>
#include <functional>

namespace tapestry {

/// Learning rate of update number `step`, counted from 0. Every struct below converts to it.
/// All of them throw ValueError on a negative step and on options outside their domain.
using Schedule = std::function<double(int64_t step)>;

/// The same rate at every step.
struct ConstantRate {
  double lr = 1e-3;
  double operator()(int64_t step) const;
};

/// lr · min(step / warmup_steps, 1): 0 at step 0, lr from step `warmup_steps` on. Without warm-up lr everywhere.
struct LinearWarmup {
  double lr = 1e-3;
  int64_t warmup_steps = 0;
  double operator()(int64_t step) const;
};

/// Linear warm-up, then half a cosine down to lr_min (Loshchilov & Hutter 2017, without restarts).
///
///     step                        rate
///     step ≤ warmup, warmup > 0   lr_max · step / warmup
///     warmup ≤ step < total       lr_min + (lr_max − lr_min) / 2 · (1 + cos(π · (step − warmup) / (total − warmup)))
///     otherwise                   lr_min
///
/// The first row that fits counts, so the edges are: step 0 has rate 0 with warm-up and lr_max without; the last warm-up
/// step has lr_max; steps `total` and later have lr_min. With total ≤ warmup the ramp still ends at lr_max on step
/// `warmup`, and lr_min follows at once.
struct CosineWithWarmup {
  double lr_max = 1e-3;
  double lr_min = 0;
  int64_t warmup_steps = 0;
  int64_t total_steps = 0;
  double operator()(int64_t step) const;
};

}  // namespace tapestry
