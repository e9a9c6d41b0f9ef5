// Text that arrives in pieces and ends where one of some strings begins.
// Not here: tokens that end a text (models/transformer/writer.h).
// Next: ../transformer/generate_text.h.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tapestry {

/// Bytes arrive in any pieces; they are given out as soon as it is certain that no stop string begins in them. The first
/// stop string that is complete ends the text: it and what follows are never given out, what is before it is. Of several
/// that end at the same byte, the longest one counts. The output of all calls joined does not depend on the pieces.
class StopStrings {
 public:
  /// ValueError for an empty string.
  explicit StopStrings(std::vector<std::string> strings);
  /// Takes more bytes; returns those that are certain. Nothing once stopped.
  std::string push(std::string_view bytes);
  /// Ends the text: what was kept back, which is the beginning of no stop string any more.
  std::string flush();
  [[nodiscard]] bool stopped() const { return stopped_; }

 private:
  std::vector<std::string> strings_;
  std::string pending_;  // the longest end of the text that begins a stop string
  bool stopped_ = false;
};

}  // namespace tapestry
