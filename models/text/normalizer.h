// What a tokenizer file does to text before it is cut: prefixes, replacements, Unicode normal forms.
// Not here: cutting (pre_tokenizer.h) and the file (tokenizer_json.h).
// Next: pre_tokenizer.h.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "regex.h"

namespace tapestry {

/// Puts a text before every text that is not empty.
struct Prepend {
  std::string text;
};
/// Replaces every occurrence of a text or expression.
struct Replace {
  std::variant<std::string, Regex> what;
  std::string by;
};
/// A normal form of Unicode (Unicode Standard Annex 15); bytes that are no UTF-8 stay as they are.
struct NormalForm {
  bool compose = true;
  bool compatibility = false;
};

/// Steps, one after the other.
class Normalizer {
 public:
  using Step = std::variant<Prepend, Replace, NormalForm>;
  Normalizer() = default;
  /// FormatError for a normal form where the library was built without utf8proc.
  explicit Normalizer(std::vector<Step> steps);
  [[nodiscard]] const std::vector<Step>& steps() const { return steps_; }
  /// The text after all steps; `text` itself, or a text kept in `storage`.
  std::string_view apply(std::string_view text, std::string& storage) const;

 private:
  std::vector<Step> steps_;
};

}  // namespace tapestry
