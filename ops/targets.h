// What integer targets of a cross-entropy must be, and what the rows' numbers must be, for all losses that take them.
// Not part of the API: cross_entropy.cpp and linear_cross_entropy.cpp include it.
// Next: targets.cpp.
#pragma once

#include <string_view>

#include "ops.h"

namespace tapestry::detail {

/// IndexError naming the value and the place of row-major target i.
[[noreturn]] void fail_target(std::string_view op, const Tensor& targets, int64_t i, int64_t classes);
/// ShapeError unless targets has the shape of x, called `name`, without its last dim; DTypeError unless it is i64.
void require_target_rows(std::string_view op, const char* name, const Tensor& x, const Tensor& targets);
/// ShapeError where `holder`, called `name`, leaves targets no class to choose.
void require_classes(std::string_view op, const char* name, const Tensor& holder, int64_t classes,
                     const Tensor& targets);
/// The number of targets other than ignore_index; IndexError for one outside [0, classes).
int64_t kept_targets(std::string_view op, const Tensor& targets, int64_t classes, int64_t ignore_index);
/// ValueError unless 0 ≤ label_smoothing ≤ 1 and 0 ≤ z_loss < ∞.
void require_loss_terms(std::string_view op, double label_smoothing, double z_loss);

}  // namespace tapestry::detail
