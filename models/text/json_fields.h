// One JSON object of a tokenizer file, read so that nothing in it is ignored.
// Not here: what the fields mean (tokenizer_parts.h). Next: tokenizer_parts.h.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <set>
#include <string>
#include <string_view>

namespace tapestry {

/// The fields of an object, by name; `finish` refuses those that nobody asked for.
class JsonFields {
 public:
  /// `where` names the object in errors. FormatError if it is no object.
  JsonFields(std::string where, const nlohmann::json& object);

  /// The field, or null where it is missing.
  const nlohmann::json* find(const char* name);
  /// The field. FormatError where it is missing.
  const nlohmann::json& at(const char* name);
  /// FormatError where they are of another type.
  std::string text(const char* name);
  std::string text(const char* name, std::string_view missing);
  bool flag(const char* name, bool missing);
  int64_t number(const char* name);
  /// Lets a field pass that says nothing about ids or text.
  void skip(const char* name) { known_.insert(name); }

  /// FormatError that names a field which was not asked for.
  void finish() const;
  [[nodiscard]] const std::string& where() const { return where_; }

 private:
  std::string where_;
  const nlohmann::json* object_;
  std::set<std::string, std::less<>> known_;
};

/// A string as it is. FormatError beginning with `where` for anything else.
const std::string& json_text(const std::string& where, const nlohmann::json& value);

}  // namespace tapestry
