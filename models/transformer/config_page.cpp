// The table of choices applied to a configuration, and as a page of documentation.
// Next: ../../tests/test_config.cpp.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "../strict_json.h"
#include "config_options.h"

namespace tapestry {

TransformerConfig with_fields(const TransformerConfig& config, std::string_view json_object) {
  auto fields = nlohmann::ordered_json::parse(config.to_json());
  const auto changes = parse_strict_json("config", json_object);
  if (!changes.is_object()) return TransformerConfig::from_json(changes.dump());  // says what is wrong
  for (const auto& [name, value] : changes.items()) fields[name] = value;
  return TransformerConfig::from_json(fields.dump());
}

std::vector<std::string> field_names(std::string_view json_object) {
  const auto object = parse_strict_json("config", json_object);
  std::vector<std::string> names;
  for (const auto& [name, value] : object.items()) names.push_back(name);
  return names;
}

std::string config_page() {
  const auto defaults = nlohmann::ordered_json::parse(TransformerConfig{}.to_json());
  std::string page =
      "# The configuration of the Transformer\n\n"
      "Every structural choice is one field of `TransformerConfig` (models/transformer/config.h), or a few that belong "
      "together; `tapestry train --config FILE` reads them as JSON under \"model\". Fields that are left out have the "
      "default, unknown ones are refused. This page is written by `./dev docs` from the table in "
      "models/transformer/config_options.cpp, which the tests differentiate value by value and in pairs.\n\n"
      "Sizes: `vocab_size` V, `max_seq_len` the longest T, `n_layers`, `n_heads` H, `n_kv_heads` Hkv, `d_model` D, "
      "`d_ff` "
      "F.\n";
  for (const ConfigOption& option : config_options()) {
    page +=
        fmt::format("\n## {}\n\n* computes: {}\n* source: {}\n* default:", option.name, option.formula, option.paper);
    std::string names(option.name);
    for (size_t at = 0; at < names.size();) {
      const size_t end = std::min(names.find(", ", at), names.size());
      const std::string name = names.substr(at, end - at);
      page += fmt::format("{} `{}`", at == 0 ? "" : ",", defaults.at(name).dump());
      at = end + 2;
    }
    page += fmt::format("\n* when to change it: {}\n", option.when);
  }
  return page;
}

}  // namespace tapestry
