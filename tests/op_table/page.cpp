#include "page.h"

#include "../../autograd/engine.h"
#include "run.h"

namespace tapestry::op_table {
namespace {

/// A cell may not hold the bar that ends it.
std::string cell(std::string_view text) {
  std::string result;
  for (const char c : text) {
    if (c == '|') result += '\\';
    result += c;
  }
  return result;
}

std::string dtypes_of(const OpRow& row) {
  return std::string("f64 f32") + (row.no_bf16 == nullptr ? " bf16" : "") + (row.i64 ? " i64" : "");
}

std::string derivatives_of(const OpRow& row) {
  if (!row.differentiable) return "none";
  if (row.zero_derivative) return "0";
  if (row.no_gradgradcheck != nullptr) return std::string("first (second: ") + row.no_gradgradcheck + ")";
  return "first, second";
}

}  // namespace

Texts texts_of(const OpRow& row) {
  Texts texts{row.formula == nullptr ? "" : row.formula, row.vjp == nullptr ? "" : row.vjp};
  if (!texts.formula.empty() || !row.differentiable) return texts;
  const std::string name = row.name, base = name.substr(0, name.find(' '));
  for (const Tensor& y : call(row, row.samples[0], make_inputs(row, row.samples[0], DType::f64)))
    for (const Ref<Node>& node : tape(y))
      if (node->name() == base) return {std::string(node->formula()), std::string(node->vjp())};
  return texts;
}

std::string page() {
  std::string text =
      "# Ops\n\n"
      "Written by `tapestry_docs` from the op table (`tests/op_table/`); a test fails where this page is stale.\n\n"
      "*y* is the result, *g* the gradient that arrives at it; the gradients of several inputs stand in their order. A "
      "result differs from\n"
      "exact arithmetic on the rounded inputs by at most bound · max(1, |y|); i64 is exact. *Derivatives* says which "
      "are compared with finite\n"
      "differences. Every row is also checked on transposed, stepped, offset, reversed and expanded inputs, without "
      "elements, at 1, 2 and 4\n"
      "threads for equal bits, and forward over reverse.\n";
  for (const Family& family : families()) {
    text += fmt::format(
        "\n## {}\n\n| op | y | gradient | dtypes | bound f64, f32, bf16 | derivatives |\n|---|---|---|---|---|---|\n",
        family.title);
    for (const OpRow& row : family.rows) {
      const Texts t = texts_of(row);
      text +=
          fmt::format("| `{}` | {} | {} | {} | {:.0e}, {:.0e}, {:.0e} | {} |\n", row.name, cell(t.formula), cell(t.vjp),
                      dtypes_of(row), row.bounds.f64, row.bounds.f32, row.bounds.bf16, derivatives_of(row));
    }
  }
  return text;
}

}  // namespace tapestry::op_table
