// Fields, their types, and those left over.
// Next: tokenizer_parts.cpp.
#include "json_fields.h"

#include <nlohmann/json.hpp>

#include "../../autograd/error.h"

namespace tapestry {
namespace {

/// Values as they stand in errors: never a whole vocabulary.
std::string shown(const nlohmann::json& value) {
  return value.is_structured() ? fmt::format("an {} of {}", value.type_name(), value.size())
                               : value.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace).substr(0, 80);
}

}  // namespace

JsonFields::JsonFields(std::string where, const nlohmann::json& object) : where_(std::move(where)), object_(&object) {
  if (!object.is_object()) fail<FormatError>("tokenizer: {} is {}; expected an object", where_, shown(object));
}

const nlohmann::json* JsonFields::find(const char* name) {
  known_.insert(name);
  const auto it = object_->find(name);
  return it == object_->end() || it->is_null() ? nullptr : &*it;
}

const nlohmann::json& JsonFields::at(const char* name) {
  const nlohmann::json* value = find(name);
  if (value == nullptr) fail<FormatError>("tokenizer: {} has no {}", where_, name);
  return *value;
}

std::string JsonFields::text(const char* name) { return json_text(where_ + "." + name, at(name)); }

std::string JsonFields::text(const char* name, std::string_view missing) {
  return find(name) == nullptr ? std::string(missing) : text(name);
}

bool JsonFields::flag(const char* name, bool missing) {
  const nlohmann::json* value = find(name);
  if (value == nullptr) return missing;
  if (!value->is_boolean())
    fail<FormatError>("tokenizer: {}.{} is {}; expected true or false", where_, name, shown(*value));
  return value->get<bool>();
}

int64_t JsonFields::number(const char* name) {
  const nlohmann::json& value = at(name);
  if (!value.is_number_integer())
    fail<FormatError>("tokenizer: {}.{} is {}; expected a whole number", where_, name, shown(value));
  return value.get<int64_t>();
}

void JsonFields::finish() const {
  for (const auto& [name, value] : object_->items())
    if (!known_.contains(name)) fail<FormatError>("tokenizer: {}.{} = {} is not supported", where_, name, shown(value));
}

const std::string& json_text(const std::string& where, const nlohmann::json& value) {
  if (!value.is_string()) fail<FormatError>("tokenizer: {} is {}; expected a string", where, shown(value));
  return value.get_ref<const std::string&>();
}

}  // namespace tapestry
