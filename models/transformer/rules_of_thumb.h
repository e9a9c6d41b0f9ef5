// What most published Transformers have in common, and whether a configuration does.
// Not checks: a config that keeps none of them is valid.
// Next: rules_of_thumb.cpp.
#pragma once

#include <string>
#include <vector>

#include "config.h"

namespace tapestry {

struct RuleOfThumb {
  std::string what;    ///< "d_ff / d_model"
  std::string value;   ///< what the config has: "2.667"
  std::string usual;   ///< "8/3 (gated), rounded to the next multiple of 64"
  std::string reason;  ///< what the number trades against what
  bool kept = false;
};

std::vector<RuleOfThumb> rules_of_thumb(const TransformerConfig& c);

}  // namespace tapestry
