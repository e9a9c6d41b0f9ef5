// Update rules, clipping and schedules against trajectories of PyTorch.
// Not here: their edges (test_optim.cpp, test_clip.cpp, test_schedule.cpp).
// Next: golden_optimizer_ops.cpp.
#include <doctest/doctest.h>

#include "golden_check.h"

TEST_SUITE("golden_optim") {
  TEST_CASE("trajectories") {
    constexpr std::string_view fixtures[] = {"optim/adam", "optim/sgd", "optim/clip", "optim/cosine_lr", "cs336/adamw"};
    tapestry::golden::check_fixtures(fixtures);
  }
}
