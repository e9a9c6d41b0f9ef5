// A module printed: its tree, its parameters and their sizes.
// Not here: operations, memory and FLOPs of a call.
#pragma once

#include <string>

#include "module.h"

namespace tapestry {

/// One line for every module (name, type, elements below it) and every parameter (name, shape, dtype, frozen or not).
std::string summary(const Module& m);

}  // namespace tapestry
