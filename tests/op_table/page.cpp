// The cells of docs/ops.md. Next: ../../docs/ops.md.
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

std::string first_of(const OpRow& row) {
  if (!row.differentiable) return "none";
  return row.zero_derivative ? "0" : "checked";
}

std::string second_of(const OpRow& row) {
  return row.no_gradgradcheck != nullptr ? row.no_gradgradcheck : first_of(row);
}

std::string strided_of(const OpRow& row) {
  return row.no_expanded == nullptr ? "all" : std::string("not expanded: ") + row.no_expanded;
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
      "exact arithmetic on the rounded inputs by at most bound · max(1, |y|); i64 is exact. *First* and *second* "
      "derivatives are checked\n"
      "against finite differences, 0 everywhere, or none (the op refuses an input that requires a gradient, or gives "
      "integers). *Strided*: the\n"
      "layouts tried, which are transposed, stepped, offset, reversed and expanded inputs. Every row also runs without "
      "elements, at 1, 2 and 4\n"
      "threads for equal bits, and forward over reverse (`tests/test_op_table.cpp`, `tests/test_op_gradients.cpp`).\n";
  for (const Family& family : families()) {
    text += fmt::format(
        "\n## {}\n\nTested by the rows of `tests/op_table/{}`.\n\n"
        "| op | y | gradient | dtypes | bound f64, f32, bf16 | first | second | strided "
        "|\n|---|---|---|---|---|---|---|---|\n",
        family.title, family.file);
    for (const OpRow& row : family.rows) {
      const Texts t = texts_of(row);
      text += fmt::format("| `{}` | {} | {} | {} | {:.0e}, {:.0e}, {:.0e} | {} | {} | {} |\n", row.name,
                          cell(t.formula), cell(t.vjp), dtypes_of(row), row.bounds.f64, row.bounds.f32, row.bounds.bf16,
                          first_of(row), second_of(row), strided_of(row));
    }
  }
  return text;
}

}  // namespace tapestry::op_table
