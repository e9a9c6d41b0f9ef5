// JSON that somebody wrote by hand or that a damaged file holds: parsed without trust.
// Not here: what its fields mean.
// Next: transformer/config.cpp.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string_view>

namespace tapestry {

/// The parsed text, or a discarded value if it is no JSON. FormatError beginning with `what` for a name given twice in
/// one object, of which a plain parser keeps one in silence, and for nesting so deep that walking it would end the
/// stack.
nlohmann::ordered_json parse_strict_json(std::string_view what, std::string_view text);
/// The same with names sorted, for objects of many: keeping the order costs a walk along the object for each name.
nlohmann::json parse_strict_json_by_name(std::string_view what, std::string_view text);

}  // namespace tapestry
