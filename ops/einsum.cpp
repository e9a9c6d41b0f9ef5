// Einstein's sums: an equation of letters, read once, then contracted pair by pair from the left through matmul.
// Not a search for the cheapest order of pairs: write the operands in the order they should meet.
// Next: distance.cpp.
#include <algorithm>
#include <string>
#include <vector>

#include "../autograd/error.h"
#include "ops.h"

namespace tapestry {
namespace {

// A label names a dim: 'a' … 'Z' are the letters' own codes, the dims behind "..." are numbered from the right downwards from −1, as broadcasting
// aligns them.
using Labels = std::vector<int>;

bool has(const Labels& labels, int label) { return std::find(labels.begin(), labels.end(), label) != labels.end(); }

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

/// Bytes that would break a line of text, or are parts of a character, as question marks.
std::string printable(std::string_view text) {
  std::string result(text);
  std::replace_if(
      result.begin(), result.end(), [](char c) { return c < ' ' || c > '~'; }, '?');
  return result;
}

struct Term {
  std::string text;
  std::string letters;  ///< without the dots
  int dots_at = -1;     ///< place in `letters` where "..." stood
  explicit Term(std::string_view written) : text(written) {
    for (size_t i = 0; i < written.size(); ++i) {
      if (written.substr(i, 3) == "..." && dots_at < 0) {
        dots_at = static_cast<int>(letters.size());
        i += 2;
      } else if (is_letter(written[i])) {
        letters.push_back(written[i]);
      } else {
        fail<ValueError>("einsum: \"{}\" in \"{}\" is no letter; use a to z, A to Z and once \"...\"",
                         printable(written.substr(i, 1)), printable(written));
      }
    }
  }
  /// The labels of a term whose dots stand for `dots` dims.
  [[nodiscard]] Labels labels(int dots) const {
    Labels result(letters.begin(), letters.end());
    for (int i = 0; i < dots; ++i) result.insert(result.begin() + dots_at + i, i - dots);
    return result;
  }
};

struct Equation {
  std::vector<Term> inputs;
  std::vector<Term> output;  ///< one, or none where there is no arrow

  explicit Equation(std::string_view written) {
    std::string text;
    for (const char c : written)
      if (c != ' ') text.push_back(c);
    const size_t arrow = text.find("->");
    if (arrow != std::string::npos) output.emplace_back(std::string_view(text).substr(arrow + 2));
    std::string_view rest = std::string_view(text).substr(0, arrow);
    for (;;) {
      const size_t comma = rest.find(',');
      inputs.emplace_back(rest.substr(0, comma));
      if (comma == std::string_view::npos) break;
      rest.remove_prefix(comma + 1);
    }
  }
};

/// A tensor whose dims have names.
struct Operand {
  Tensor x;
  Labels labels;

  [[nodiscard]] int dim_of(int label) const {
    return static_cast<int>(std::find(labels.begin(), labels.end(), label) - labels.begin());
  }
  /// Repeated labels become their diagonal.
  void take_diagonals() {
    for (int i = 0; i < static_cast<int>(labels.size()); ++i) {
      const int label = labels[static_cast<size_t>(i)];
      const auto again = std::find(labels.begin() + i + 1, labels.end(), label);
      if (again == labels.end()) continue;
      x = diagonal(x, 0, i, again - labels.begin());
      labels.erase(again);
      labels.erase(labels.begin() + i--);
      labels.push_back(label);
    }
  }
  /// Sums over the dims whose label is not wanted.
  template <class F>
  void sum_unless(const F& wanted) {
    Dims dims;
    Labels kept;
    for (size_t i = 0; i < labels.size(); ++i) {
      if (wanted(labels[i]))
        kept.push_back(labels[i]);
      else
        dims.push_back(static_cast<int64_t>(i));
    }
    if (dims.empty()) return;
    x = sum(x, dims);
    labels = kept;
  }
  /// The dims in the order of `order`, which holds all labels.
  [[nodiscard]] Tensor arranged(const Labels& order) const {
    Dims dims;
    for (const int label : order) dims.push_back(dim_of(label));
    return permute(x, dims);
  }
  [[nodiscard]] Shape sizes_of(const Labels& some) const {
    Shape shape;
    for (const int label : some) shape.push_back(x.size(dim_of(label)));
    return shape;
  }
};

Labels joined(Labels a, const Labels& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

/// The product of a and b, summed over the labels that `wanted` (of what comes later) does not ask for.
template <class F>
Operand contract(Operand a, Operand b, const F& wanted) {
  a.sum_unless([&](int label) { return wanted(label) || has(b.labels, label); });
  b.sum_unless([&](int label) { return wanted(label) || has(a.labels, label); });
  Labels batch, inner, rows, columns;
  for (const int label : a.labels) (!has(b.labels, label) ? rows : wanted(label) ? batch : inner).push_back(label);
  for (const int label : b.labels)
    if (!has(a.labels, label)) columns.push_back(label);
  const Labels labels = joined(joined(batch, rows), columns);
  if (inner.empty()) {  // nothing to sum: the product is as large as the result
    Tensor left = a.arranged(joined(batch, rows)), right = b.arranged(joined(batch, columns));
    for (size_t i = 0; i < columns.size(); ++i) left = unsqueeze(left, -1);
    for (size_t i = 0; i < rows.size(); ++i) right = unsqueeze(right, static_cast<int64_t>(batch.size()));
    return {mul(left, right), labels};
  }
  const int64_t n_batch = numel(a.sizes_of(batch)), n_inner = numel(a.sizes_of(inner)),
                n_rows = numel(a.sizes_of(rows)), n_columns = numel(b.sizes_of(columns));
  const Tensor left = reshape(a.arranged(joined(joined(batch, rows), inner)), {n_batch, n_rows, n_inner});
  const Tensor right = reshape(b.arranged(joined(joined(batch, inner), columns)), {n_batch, n_inner, n_columns});
  Shape shape = a.sizes_of(joined(batch, rows));
  for (const int64_t size : b.sizes_of(columns)) shape.push_back(size);
  return {reshape(matmul(left, right), shape), labels};
}

/// Checks operand i against its term and gives its dims their labels.
Operand named(const Term& term, size_t i, const Tensor& x, int& most_dots) {
  const int letters = static_cast<int>(term.letters.size()), dots = x.dim() - letters;
  if (dots < 0 || (dots > 0 && term.dots_at < 0))
    fail<ShapeError>("einsum: operand {} is {}, \"{}\" names {} dims; one letter a dim, \"...\" for any number", i,
                     x.describe(), term.text, letters);
  most_dots = std::max(most_dots, dots);
  return {x, term.labels(dots)};
}

/// Letters have one size wherever they stand; dims behind dots broadcast, and those of size 1 that do are dropped here.
void fit_sizes(std::vector<Operand>& operands, const std::vector<Term>& terms) {
  struct Seen {
    int label;
    int64_t size;
    size_t operand;
  };
  std::vector<Seen> seen;
  const auto find = [&](int label) {
    return std::find_if(seen.begin(), seen.end(), [&](const Seen& s) { return s.label == label; });
  };
  for (size_t i = 0; i < operands.size(); ++i)
    for (size_t d = 0; d < operands[i].labels.size(); ++d) {
      const int label = operands[i].labels[d];
      const int64_t size = operands[i].x.size(static_cast<int64_t>(d));
      const auto before = find(label);
      if (before == seen.end()) {
        seen.push_back({label, size, i});
      } else if (before->size != size) {
        if (label < 0 && before->size == 1)
          *before = {label, size, i};
        else if (label >= 0 || size != 1)
          fail<ShapeError>("einsum: {} has size {} in operand {} ({}, \"{}\") but {} in operand {} ({}, \"{}\")",
                           label < 0 ? "dim " + std::to_string(label) + " of \"...\""
                                     : "letter " + std::string(1, static_cast<char>(label)),
                           before->size, before->operand, operands[before->operand].x.describe(),
                           terms[before->operand].text, size, i, operands[i].x.describe(), terms[i].text);
      }
    }
  for (Operand& o : operands)
    for (size_t d = o.labels.size(); d-- > 0;)
      if (const auto dim = static_cast<int64_t>(d); o.x.size(dim) == 1 && find(o.labels[d])->size != 1) {
        o.x = squeeze(o.x, dim);
        o.labels.erase(o.labels.begin() + dim);
      }
}

/// The labels of the result: as written after the arrow, else the dots and then the letters met once, in alphabetical order.
Labels output_labels(const Equation& equation, int dots) {
  std::string all;
  for (const Term& term : equation.inputs) all += term.letters;
  if (equation.output.empty()) {
    Labels result;
    for (int i = -dots; i < 0; ++i) result.push_back(i);
    std::sort(all.begin(), all.end());
    for (const char c : all)
      if (std::count(all.begin(), all.end(), c) == 1) result.push_back(c);
    return result;
  }
  const Term& out = equation.output[0];
  for (const char c : out.letters) {
    if (all.find(c) == std::string::npos)
      fail<ValueError>("einsum: letter {} of the result \"{}\" is in no operand; every letter comes from one", c,
                       out.text);
    if (std::count(out.letters.begin(), out.letters.end(), c) > 1)
      fail<ValueError>("einsum: letter {} stands twice in the result \"{}\"; a result names each dim once", c,
                       out.text);
  }
  if (dots > 0 && out.dots_at < 0)
    fail<ValueError>("einsum: the result \"{}\" has no place for the {} dims of \"...\"; write \"...{}\"", out.text,
                     dots, out.text);
  return out.labels(dots);
}

void check_operands(const Equation& equation, std::span<const Tensor> xs) {
  if (equation.inputs.size() != xs.size())
    fail<ValueError>("einsum: the equation names {} operands, {} are given; separate them by commas",
                     equation.inputs.size(), xs.size());
  for (size_t i = 0; i < xs.size(); ++i) {
    if (!xs[i].defined()) fail<AutogradError>("einsum: operand {} is undefined", i);
    if (xs[i].dtype() != xs[0].dtype())
      fail<DTypeError>("einsum: dtypes differ: operand 0 is {}, operand {} is {}; convert with to(x, DType::{})",
                       xs[0].describe(), i, xs[i].describe(), name_of(xs[0].dtype()));
    if (xs[i].dtype() == DType::boolean)
      fail<DTypeError>("einsum: bool has no product: operand {} is {}; convert with to(x, DType::i64)", i,
                       xs[i].describe());
  }
}

}  // namespace

Tensor einsum(std::string_view equation_text, std::span<const Tensor> xs) {
  const Equation equation(equation_text);
  check_operands(equation, xs);
  int dots = 0;
  std::vector<Operand> operands;
  for (size_t i = 0; i < xs.size(); ++i) operands.push_back(named(equation.inputs[i], i, xs[i], dots));
  fit_sizes(operands, equation.inputs);
  const Labels output = output_labels(equation, dots);
  for (Operand& o : operands) o.take_diagonals();

  Operand result = operands[0];
  for (size_t i = 1; i < operands.size(); ++i)
    result = contract(result, operands[i], [&](int label) {
      const auto later = operands.begin() + static_cast<int64_t>(i) + 1;
      return has(output, label) ||
             std::any_of(later, operands.end(), [&](const Operand& o) { return has(o.labels, label); });
    });
  result.sum_unless([&](int label) { return has(output, label); });
  return result.arranged(output);
}

}  // namespace tapestry
