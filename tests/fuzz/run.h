// Many programs, one after another: what was checked, what was left aside, and the first failures, shrunk.
// Next: fuzz_derivatives.cpp.
#pragma once

#include <map>

#include "check.h"

namespace tapestry::fuzz {

struct Failure {
  uint64_t number = 0;
  Finding finding;
  Program program;   ///< shrunk
  size_t steps = 0;  ///< before
};

struct Report {
  int64_t programs = 0, steps = 0, kinks = 0, large = 0, refused = 0;
  std::map<std::string, int64_t> rows;  ///< how often each was used
  std::vector<Failure> failures;
};

/// Programs first … first + count − 1 of `seed`; stops after `most` failures.
Report run_programs(uint64_t seed, uint64_t first, int64_t count, size_t most = 1);

/// The failure as text: what disagrees, and C++ that reproduces it.
std::string as_text(const Failure& failure);

}  // namespace tapestry::fuzz
