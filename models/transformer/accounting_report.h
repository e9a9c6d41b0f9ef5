// All that is known of a configuration before it runs, as tables for people and as JSON.
// Not here: where a configuration comes from (../programs/info.cpp).
// Next: accounting_report.cpp.
#pragma once

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "accounting_peak.h"
#include "machine_profile.h"

namespace tapestry {

struct AccountingOptions {
  int64_t rows = 1;                                ///< B, sequences of a step
  int64_t length = 0;                              ///< T; 0: max_seq_len
  int64_t decoded_rows = 1;                        ///< sequences that are decoded side by side
  bool accumulate = false;                         ///< a step has several batches of this size
  DType weights = DType::f32, cache = DType::f32;  ///< when decoding
  std::optional<MachineProfile> machine = {};      ///< for times
};

enum class Unit { none, count, flops, bytes, seconds };

struct ReportRow {
  std::string name;
  std::variant<int64_t, double, std::string> value;
  Unit unit = Unit::none;
  std::string note = {};          ///< beside it in the table
  std::optional<bool> kept = {};  ///< of a rule of thumb
};
struct ReportSection {
  std::string name;   ///< "parameters"
  std::string title;  ///< "parameters, by component"
  std::vector<ReportRow> rows;
};

/// ValueError as check_countable.
std::vector<ReportSection> accounting_report(const TransformerConfig& c, const AccountingOptions& options);

/// A table a section.
std::string to_text(const std::vector<ReportSection>& report);
/// {"parameters": {"token_embedding": 98304, …}, …}: whole numbers, numbers, or strings; a rule of thumb is an object with
/// its value, what is usual and whether it is kept.
std::string to_json(const std::vector<ReportSection>& report);

}  // namespace tapestry
