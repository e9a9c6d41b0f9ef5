// Named tensors: all that optimizers and clipping know of a model.
// Not here: where the names come from (modules list their parameters by name; any list will do). Next: parameter_filter.h.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "../autograd/tensor.h"

namespace tapestry {

/// Parameters with their names, in a fixed order.
using NamedTensors = std::vector<std::pair<std::string, Tensor>>;

}  // namespace tapestry
