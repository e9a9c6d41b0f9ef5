// Schedules at their edges: step 0, the last warm-up step, the end and after it, for any warm-up.
// Not here: the stored table of optim/cosine_lr (the golden tests read it).
// Next: ../optim/schedule.h for the formulas.
#include <doctest/doctest.h>

#include <limits>
#include <string>

#include "../autograd/error.h"
#include "../optim/schedule.h"

using namespace tapestry;

TEST_SUITE("schedule") {
  TEST_CASE("cosine with warm-up is defined at every edge") {
    struct Row {
      int64_t warmup, total, step;
      double want;
    };
    constexpr double hi = 1.0, lo = 0.1, mid = (hi + lo) / 2;
    const Row rows[] = {
        {0, 10, 0, hi},  {0, 10, 5, mid},   {0, 10, 10, lo},  {0, 10, 11, lo},                      // no warm-up
        {1, 11, 0, 0},   {1, 11, 1, hi},    {1, 11, 6, mid},  {1, 11, 11, lo},                      // one step
        {4, 14, 2, 0.5}, {4, 14, 4, hi},    {4, 14, 9, mid},  {4, 14, 14, lo},  {4, 14, 1000, lo},  // the usual
        {10, 10, 0, 0},  {10, 10, 5, 0.5},  {10, 10, 10, hi}, {10, 10, 11, lo},                     // warm-up = total
        {20, 10, 0, 0},  {20, 10, 10, 0.5}, {20, 10, 20, hi}, {20, 10, 21, lo},                     // warm-up > total
        {0, 0, 0, lo},   {0, 0, 1, lo},     {0, 1, 0, hi},    {0, 1, 1, lo},  // no steps, one step
    };
    for (const Row& row : rows) {
      CAPTURE(row.warmup);
      CAPTURE(row.total);
      CAPTURE(row.step);
      const CosineWithWarmup lr{.lr_max = hi, .lr_min = lo, .warmup_steps = row.warmup, .total_steps = row.total};
      CHECK(lr(row.step) == doctest::Approx(row.want).epsilon(1e-14));
    }
  }

  TEST_CASE("cosine stays in bounds, rises through the warm-up and falls after it") {
    for (const int64_t warmup : {0, 1, 7, 30, 40}) {
      const CosineWithWarmup lr{.lr_max = 3e-4, .lr_min = 1e-5, .warmup_steps = warmup, .total_steps = 30};
      for (int64_t step = 0; step < 60; ++step) {
        CAPTURE(warmup);
        CAPTURE(step);
        CHECK(lr(step) >= (step < warmup ? 0.0 : 1e-5));
        CHECK(lr(step) <= 3e-4);
        CHECK((step < warmup ? lr(step) < lr(step + 1) : lr(step) >= lr(step + 1)));
      }
    }
  }

  TEST_CASE("linear warm-up and constant") {
    struct Row {
      int64_t warmup, step;
      double want;
    };
    for (const Row& row : {Row{0, 0, 2}, Row{0, 9, 2}, Row{1, 0, 0}, Row{1, 1, 2}, Row{4, 1, 0.5}, Row{4, 3, 1.5},
                           Row{4, 4, 2}, Row{4, 100, 2}}) {
      CHECK(LinearWarmup{.lr = 2, .warmup_steps = row.warmup}(row.step) == row.want);
    }
    const Schedule schedule = ConstantRate{.lr = 0.25};
    CHECK(schedule(0) == 0.25);
    CHECK(schedule(1'000'000) == 0.25);
  }

  TEST_CASE("bad options are errors that name the value") {
    struct Row {
      Schedule schedule;
      int64_t step;
      std::string want;
    };
    const double nan = std::numeric_limits<double>::quiet_NaN();
    const Row rows[] = {
        {ConstantRate{.lr = 1}, -1, "constant_rate: step must not be negative: it is -1"},
        {ConstantRate{.lr = nan}, 0, "constant_rate: lr must be finite and not negative: it is nan"},
        {LinearWarmup{.lr = 1, .warmup_steps = -2}, 0, "linear_warmup: warmup_steps must not be negative: it is -2"},
        {CosineWithWarmup{.lr_max = 1, .total_steps = -3}, 0,
         "cosine_with_warmup: total_steps must not be negative: it is -3"},
        {CosineWithWarmup{.lr_max = -1}, 0, "cosine_with_warmup: lr_max must be finite and not negative: it is -1"},
        {CosineWithWarmup{.lr_max = 0.1, .lr_min = 1}, 0,
         "cosine_with_warmup: lr_min is above lr_max: lr_min = 1, lr_max = 0.1; swap them"},
    };
    for (const Row& row : rows) CHECK_THROWS_WITH_AS(row.schedule(row.step), row.want.c_str(), ValueError);
  }
}
