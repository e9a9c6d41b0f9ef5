// What a wrong derivative looks like: compares a block of a Jacobian with the right one and names the likely mistake.
// Next: gradcheck_run.h.
#pragma once

#include "probe.h"

namespace tapestry::detail {

/// d(output)/d(input), row-major: one row per output element.
struct Block {
  Flat values;
  Shape output, input;
  [[nodiscard]] int64_t rows() const { return numel(output); }
  [[nodiscard]] int64_t columns() const { return numel(input); }
  [[nodiscard]] double at(int64_t row, int64_t column) const {
    return values[static_cast<size_t>(row * columns() + column)];
  }
};

struct Tolerance {
  double atol, rtol;
  /// The largest difference from `right` that passes.
  [[nodiscard]] double bound(double right) const;
  [[nodiscard]] bool close(double value, double right) const;
};

/// One clause, such as "analytic = -1 * numeric: the sign is wrong". `others`: the numeric blocks of all inputs, to find swapped ones.
std::string hint(const Block& analytic, const Block& numeric, const std::vector<Block>& others, Tolerance tolerance);

}  // namespace tapestry::detail
