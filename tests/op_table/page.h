// The page of ops (docs/ops.md) as text: one line per row of the table.
// Next: page.cpp.
#pragma once

#include <string>

#include "row.h"

namespace tapestry::op_table {

/// What the op computes and its derivative: from the row, else from the node its first sample records.
struct Texts {
  std::string formula, vjp;
};
Texts texts_of(const OpRow& row);

/// The whole page in Markdown.
std::string page();

}  // namespace tapestry::op_table
