// The check, eight bytes at a time where they are ASCII.
// Next: utf8.cpp.
#include "utf8_runs.h"

#include <cstdint>
#include <cstring>

namespace tapestry {

size_t valid_utf8_prefix(std::string_view text) {
  size_t at = 0;
  while (at < text.size()) {
    uint64_t eight = 0;
    if (at + sizeof eight <= text.size()) {
      std::memcpy(&eight, text.data() + at, sizeof eight);
      if ((eight & 0x8080808080808080U) == 0) {
        at += sizeof eight;
        continue;
      }
    }
    const Utf8Char front = front_utf8(text.substr(at));
    if (front.kind != Utf8Char::Kind::complete) return at;
    at += static_cast<size_t>(front.length);
  }
  return at;
}

}  // namespace tapestry
