// Makes a failing program small: every change that leaves it failing the same way is kept, until none is left.
// Next: fuzz_derivatives.cpp.
#pragma once

#include "check.h"

namespace tapestry::fuzz {

/// The smallest program found that `check` still finds wrong, of the same order of derivative if that is how it failed.
/// The result has one output, no step that can be replaced by a leaf of its values, and short numbers where these do.
Program shrink(Program program);

}  // namespace tapestry::fuzz
