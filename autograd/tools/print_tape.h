// The tape of a loss as text: one line per recorded node, in recording order.
// Next: ../engine.h.
#pragma once

#include <string>

#include "../tensor.h"

namespace tapestry {

/// One line per node its gradient can reach: number, op, the numbers of its inputs (- where none needs a gradient), shape and dtype of its outputs,
/// bytes it saved (a storage saved by several nodes counts for each) and the module path it was recorded in:
///
///   %0 leaf() [2, 3] f32
///   %1 tanh(%0) [2, 3] f32, saves 24 B
///
/// Empty for a tensor that does not require a gradient.
std::string print_tape(const Tensor& loss);

}  // namespace tapestry
