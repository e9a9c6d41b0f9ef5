// A module's state by name: taken out, and put back with every mismatch reported at once.
// Not here: files (safetensors.h).
// Next: linear.h.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "module.h"

namespace tapestry {

using StateDict = std::map<std::string, Tensor>;

/// Parameters and buffers by path: handles without an edge on the module's own data.
StateDict state_dict(const Module& m);

struct LoadOptions {
  bool strict = true;  ///< false: load what fits and report the rest
};
struct LoadReport {
  std::vector<std::string> loaded;
  std::vector<std::string> missing;     ///< the module has them, the dict has not
  std::vector<std::string> unexpected;  ///< the dict has them, the module has not
  std::vector<std::string> mismatched;  ///< "name is [2, 3] f32, file has [3, 2] f32", other shapes and kinds of dtype
  std::vector<std::string> converted;   ///< loaded, but from another floating dtype
};

/// "2 missing (a, b), 1 unexpected (c, nearest a), …": the first three of each kind; empty if all fits.
std::string describe(const LoadReport& report);

/// Copies the values of `dict` into the members of m with the same path; floating dtypes are converted. Anything
/// missing, unexpected or mismatched is one FormatError that names all of it, with the nearest name beside each
/// unexpected one, and then nothing was changed.
LoadReport load_state_dict(Module& m, const StateDict& dict, LoadOptions options = {});

}  // namespace tapestry
