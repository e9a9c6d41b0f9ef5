// The choices a TransformerConfig holds, as a table: what each value computes, where it comes from, when to change it.
// Not the fields themselves (config.h). The tests differentiate a model for every value, the documentation prints it.
// Next: block.h.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "config.h"

namespace tapestry {

/// One choice: a field, or fields that only mean something together.
struct ConfigOption {
  std::string_view name;
  std::string_view formula;  ///< what it computes
  std::string_view paper;    ///< where it comes from
  std::string_view when;     ///< when to leave the default, and what constraint it comes from
  /// Values to be tried on a small model, as JSON objects of fields; the first is the default, "{}".
  std::span<const std::string_view> values;
};

/// All of them, in the order of the fields of config.h. The sizes (vocab_size, max_seq_len, n_layers, d_model, d_ff) are
/// not among them.
std::span<const ConfigOption> config_options();

/// `config` with the fields of a JSON object. FormatError or ValueError as TransformerConfig::from_json.
TransformerConfig with_fields(const TransformerConfig& config, std::string_view json_object);

/// Names of the fields in a JSON object.
std::vector<std::string> field_names(std::string_view json_object);

/// The table as a page of documentation.
std::string config_page();

}  // namespace tapestry
