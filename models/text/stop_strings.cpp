// Matching byte by byte; the strings are short and few.
// Next: ../../tests/test_stop_strings.cpp.
#include "stop_strings.h"

#include <utility>

#include "../../autograd/error.h"

namespace tapestry {

StopStrings::StopStrings(std::vector<std::string> strings) : strings_(std::move(strings)) {
  for (const std::string& s : strings_)
    if (s.empty()) fail<ValueError>("generate: a stop string is empty; it would end every text at once");
}

std::string StopStrings::push(std::string_view bytes) {
  std::string certain;
  for (const char byte : bytes) {
    if (stopped_) break;
    pending_ += byte;
    size_t length = 0;
    for (const std::string& s : strings_)
      if (s.size() > length && pending_.ends_with(s)) length = s.size();
    stopped_ = length > 0;
    if (stopped_) {
      certain.append(pending_, 0, pending_.size() - length);
      pending_.clear();
      break;
    }
    const auto begins_a_string = [&](std::string_view end) {
      for (const std::string& s : strings_)
        if (s.starts_with(end)) return true;
      return false;
    };
    size_t begin = 0;
    while (begin < pending_.size() && !begins_a_string(std::string_view(pending_).substr(begin))) ++begin;
    certain.append(pending_, 0, begin);
    pending_.erase(0, begin);
  }
  return certain;
}

std::string StopStrings::flush() { return std::exchange(pending_, {}); }

}  // namespace tapestry
