// Boxes, ellipses and arrows in DOT. Next: memory_report.h.
#include "draw.h"

#include <cmath>
#include <unordered_map>

#include "../engine.h"
#include "../node.h"
#include "../scope.h"

namespace tapestry {
namespace {

/// Inside a DOT string: quotes and backslashes are escaped, line ends become DOT's.
std::string escaped(std::string_view text) {
  std::string result;
  for (const char c : text) {
    if (c == '"' || c == '\\') result += '\\';
    if (c == '\n')
      result += "\\n";
    else
      result += c;
  }
  return result;
}

std::string norm_of(const Tensor& g) {
  double largest = 0, sum = 0;
  const std::vector<double> values = g.to_vector<double>();
  for (const double v : values) largest = std::isnan(v) ? v : std::max(largest, std::abs(v));
  if (largest > 0 && std::isfinite(largest))
    for (const double v : values) sum += v / largest * (v / largest);
  return fmt::format("{:.4g}", sum > 0 ? largest * std::sqrt(sum) : largest);
}

std::vector<std::string> lines_of(const Node& node, const std::string& name) {
  std::vector<std::string> lines{name.empty() ? std::string(node.name()) : name};
  for (const Meta& m : node.outputs) lines.push_back(to_string(m.shape, m.dtype));
  int64_t saved = 0;
  for (const SavedTensor& s : node.saved)
    if (s.tensor.defined()) saved += s.tensor.numel() * size_of(s.tensor.dtype());
  if (saved > 0) lines.push_back(fmt::format("saves {} B", saved));
  if (node.released) lines.emplace_back("freed");
  if (node.path != 0) lines.push_back(path_of(node.path));
  return lines;
}

}  // namespace

std::string draw(const Tensor& loss, const std::vector<std::pair<std::string, Tensor>>& names) {
  const auto nodes = tape(loss);
  std::unordered_map<const Node*, size_t> numbers;
  for (size_t i = 0; i < nodes.size(); ++i) numbers[nodes[i].get()] = i;
  std::unordered_map<const Node*, std::string> named;
  for (const auto& [name, tensor] : names)
    if (tensor.defined() && tensor.is_leaf() && tensor.body()->edge)
      named.emplace(tensor.body()->edge.node.get(), name);
  std::string text = "digraph tape {\n  rankdir=TB;\n  node [fontname=\"monospace\"];\n";
  for (size_t i = 0; i < nodes.size(); ++i) {
    Node& node = *nodes[i];
    const auto name = named.find(&node);
    std::vector<std::string> lines = lines_of(node, name == named.end() ? "" : name->second);
    if (node.is_leaf()) {
      auto& leaf = static_cast<Leaf&>(node);
      const std::lock_guard lock(leaf.mutex);
      if (leaf.grad.defined()) lines.push_back("|grad| = " + norm_of(leaf.grad));
    } else if (node.extras) {
      for (const Tensor& g : node.extras->retained)
        if (g.defined()) lines.push_back("|grad| = " + norm_of(g));
    }
    std::string label;
    for (const std::string& line : lines) label += (label.empty() ? "" : "\\n") + escaped(line);
    text += fmt::format("  n{} [shape={}, label=\"{}\"];\n", i, node.is_leaf() ? "ellipse" : "box", label);
    for (const Edge& edge : node.inputs) {
      if (!edge) continue;
      text += fmt::format("  n{} -> n{}", numbers.at(edge.node.get()), i);
      if (edge.node->outputs.size() > 1) text += fmt::format(" [label=\"{}\"]", edge.output_nr);
      text += ";\n";
    }
  }
  return text + "}\n";
}

}  // namespace tapestry
