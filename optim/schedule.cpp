// The formulas of the schedules and the checks of their options.
// Not here: any state; calling a schedule twice with one step gives one number.
// Next: ../tests/test_schedule.cpp for the edges.
#include "schedule.h"

#include <cmath>
#include <numbers>
#include <string_view>

#include "../autograd/error.h"

namespace tapestry {
namespace {

void check_steps(std::string_view op, std::string_view name, int64_t steps) {
  if (steps < 0) fail<ValueError>("{}: {} must not be negative: it is {}", op, name, steps);
}

void check_rate(std::string_view op, std::string_view name, double lr) {
  if (!std::isfinite(lr) || lr < 0) fail<ValueError>("{}: {} must be finite and not negative: it is {}", op, name, lr);
}

double ramp(double lr, int64_t step, int64_t warmup_steps) {
  return lr * static_cast<double>(step) / static_cast<double>(warmup_steps);
}

}  // namespace

double ConstantRate::operator()(int64_t step) const {
  check_steps("constant_rate", "step", step);
  check_rate("constant_rate", "lr", lr);
  return lr;
}

double LinearWarmup::operator()(int64_t step) const {
  check_steps("linear_warmup", "step", step);
  check_steps("linear_warmup", "warmup_steps", warmup_steps);
  check_rate("linear_warmup", "lr", lr);
  return step < warmup_steps ? ramp(lr, step, warmup_steps) : lr;
}

double CosineWithWarmup::operator()(int64_t step) const {
  check_steps("cosine_with_warmup", "step", step);
  check_steps("cosine_with_warmup", "warmup_steps", warmup_steps);
  check_steps("cosine_with_warmup", "total_steps", total_steps);
  check_rate("cosine_with_warmup", "lr_max", lr_max);
  check_rate("cosine_with_warmup", "lr_min", lr_min);
  if (lr_min > lr_max) {
    fail<ValueError>("cosine_with_warmup: lr_min is above lr_max: lr_min = {}, lr_max = {}; swap them", lr_min, lr_max);
  }
  if (step <= warmup_steps && warmup_steps > 0) return ramp(lr_max, step, warmup_steps);
  if (step >= total_steps) return lr_min;
  const double progress = static_cast<double>(step - warmup_steps) / static_cast<double>(total_steps - warmup_steps);
  return lr_min + (lr_max - lr_min) / 2 * (1 + std::cos(std::numbers::pi * progress));
}

}  // namespace tapestry
