// A config.json as a list of fields that are read or written by one and the same description, family by family.
// Not here: what the fields mean (common_fields.h and families/).
// Next: common_fields.h.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "../config.h"

namespace tapestry::hf {

/// Reading: each call takes the field of this name, if it is there and not null, into `value`; a field that no call took
/// is refused by finish(), since it may change what the model computes. Writing: each call adds the field. All errors
/// are FormatErrors that begin with the file and name the field.
class ConfigFields {
 public:
  /// The fields of a JSON object. `file` is what errors call it.
  static ConfigFields reading(const std::string& file, std::string_view json);
  static ConfigFields writing();
  ConfigFields(ConfigFields&&) noexcept;
  ConfigFields& operator=(ConfigFields&&) noexcept;
  ~ConfigFields();

  [[nodiscard]] bool is_reading() const;
  [[nodiscard]] bool given(std::string_view name) const;    ///< there and not null; false when writing
  [[nodiscard]] bool present(std::string_view name) const;  ///< there, may be null; false when writing

  // Without a default the field must be there.
  void size(std::string_view name, int64_t& value);  ///< 1 to 2^31
  void integer(std::string_view name, int64_t& value);
  void integer(std::string_view name, int64_t& value, int64_t absent);
  void number(std::string_view name, double& value);
  void number(std::string_view name, double& value, double absent);
  void flag(std::string_view name, bool& value, bool absent);
  void text(std::string_view name, std::string& value, std::string_view absent);
  void activation(std::string_view name, Activation& value, Activation absent, bool gpt2_names = false);
  /// 0 stands for null.
  void integer_or_null(std::string_view name, int64_t& value);
  void number_or_null(std::string_view name, double& value);
  /// "full_attention" and "sliding_attention"; an empty list is not written. Returns whether there is one.
  bool layer_types(std::string_view name, std::vector<AttentionSpan>& value);
  void integers(std::string_view name, std::vector<int64_t>& value);
  /// One number or a list of them; none is not written.
  void ids(std::string_view name, std::vector<int64_t>& value);

  /// Fields that do not change what the model computes; `value` is JSON, and given if it must be that one.
  void harmless(std::initializer_list<std::string_view> names);
  void must_be(std::string_view name, std::string_view value, std::string_view why);
  /// Writing only: `value` is JSON.
  void put(std::string_view name, std::string_view value);

  /// The fields of the object of this name: if it is there when reading, always when writing.
  std::optional<ConfigFields> object(std::string_view name);

  /// FormatError for the first field that was not asked for.
  void finish(std::string_view what) const;
  /// FormatError about this field.
  [[noreturn]] void refuse(std::string_view name, const std::string& why) const;
  [[nodiscard]] std::string to_json() const;

 private:
  struct State;
  explicit ConfigFields(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

/// First field of the configs' JSON forms that differs: "norm_placement (\"pre\" instead of \"post\")"; empty if none.
std::string first_difference(const TransformerConfig& a, const TransformerConfig& b);

}  // namespace tapestry::hf
