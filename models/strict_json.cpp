// The parser's events, watched while it builds the value.
// Next: transformer/config.cpp.
#include "strict_json.h"

#include <nlohmann/json.hpp>
#include <string>
#include <unordered_set>
#include <vector>

#include "../autograd/error.h"

namespace tapestry {
namespace {

template <class Json>
Json parse(std::string_view what, std::string_view text) {
  constexpr int deepest = 32;
  std::vector<std::unordered_set<std::string>> names;  // of the objects that are open
  const auto watch = [&](int depth, typename Json::parse_event_t event, const Json& value) {
    if (depth > deepest) fail<FormatError>("{}: the JSON is nested more than {} deep", what, deepest);
    if (event == Json::parse_event_t::object_start) names.emplace_back();
    if (event == Json::parse_event_t::object_end) names.pop_back();
    if (event == Json::parse_event_t::key && !names.back().insert(value.template get<std::string>()).second)
      fail<FormatError>("{}: the field {} is given twice; keep one", what, value.template get<std::string>());
    return true;
  };
  return Json::parse(text, watch, /*allow_exceptions=*/false);
}

}  // namespace

nlohmann::ordered_json parse_strict_json(std::string_view what, std::string_view text) {
  return parse<nlohmann::ordered_json>(what, text);
}

nlohmann::json parse_strict_json_by_name(std::string_view what, std::string_view text) {
  return parse<nlohmann::json>(what, text);
}

}  // namespace tapestry
