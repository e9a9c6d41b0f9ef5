// The table of ready-made training configurations: a new one is a new row.
// Next: training_text.h.
#pragma once

#include <span>
#include <string_view>

#include "config.h"

namespace tapestry {

struct Preset {
  std::string_view name;
  std::string_view what;  ///< one line for --help
  TrainConfig config;
};

/// All rows.
std::span<const Preset> presets();
/// The configuration called `name`. ValueError, listing the names, for one that is not among them.
const TrainConfig& preset(std::string_view name);

}  // namespace tapestry
