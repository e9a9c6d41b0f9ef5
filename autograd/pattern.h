// Patterns over names and module paths: "layers.*.weight".
// Not regular expressions. Next: ../optim/parameter_filter.h, ../nn/capture.h.
#pragma once

#include <string_view>

namespace tapestry {

/// Whether a whole name fits a pattern: `*` stands for any characters (dots too), `?` for one, everything else for itself.
bool matches_pattern(std::string_view pattern, std::string_view name);

}  // namespace tapestry
