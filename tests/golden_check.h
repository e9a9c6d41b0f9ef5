// Runs golden fixtures: every case in f64 and in f32, its outputs, gradients and, where stored, second derivatives.
// Not here: what the ops are (golden_ops.h).
// Next: test_golden_ops.cpp.
#pragma once

#include <span>
#include <string_view>

#include "golden_fixture.h"

namespace tapestry::golden {

/// A case that cannot be run yet, "ops/at_zero:c2", or all cases of an op, "asin". A row whose case runs is a failure,
/// so that the row goes when its op comes.
struct Skip {
  std::string_view what, missing;
};

/// Our documented choice where more than the stored value is accepted: what to expect of a tensor, from the stored
/// value, what was computed and the case.
struct Policy {
  std::string_view what;  ///< "nn/sdpa:c5"
  std::string_view tensor;
  Tensor (*expected)(const FixtureCase& c, const Tensor& stored, const Tensor& got);
};

/// Checks all cases of the fixtures and says how many were run and skipped. Fails for a fixture without a case that
/// runs, for a case that has neither an op nor a skip, and for rows of skips and policies that fit nothing.
void check_fixtures(std::span<const std::string_view> fixtures, std::span<const Skip> skips = {},
                    std::span<const Policy> policies = {});

}  // namespace tapestry::golden
