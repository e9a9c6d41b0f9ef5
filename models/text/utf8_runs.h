// Text of any bytes, as the runs of it that are UTF-8 and the damaged pieces between them.
// Not here: what a damaged piece becomes.
// Next: utf8.h.
#pragma once

#include <string_view>

#include "utf8.h"

namespace tapestry {

/// The length of the longest front of `text` that is valid UTF-8.
size_t valid_utf8_prefix(std::string_view text);

/// Calls visit(bytes, valid) for the longest runs of `text` that are UTF-8 and for each piece between them that is not.
template <class Visit>
void for_each_utf8_run(std::string_view text, Visit visit) {
  while (!text.empty()) {
    size_t length = valid_utf8_prefix(text);
    const bool valid = length > 0;
    if (!valid) length = static_cast<size_t>(front_utf8(text).length);
    visit(text.substr(0, length), valid);
    text.remove_prefix(length);
  }
}

}  // namespace tapestry
