// The lines of the tape. Next: draw.h.
#include "print_tape.h"

#include <unordered_map>

#include "../engine.h"
#include "../scope.h"

namespace tapestry {

std::string print_tape(const Tensor& loss) {
  const auto nodes = tape(loss);
  std::unordered_map<const Node*, size_t> numbers;
  for (size_t i = 0; i < nodes.size(); ++i) numbers[nodes[i].get()] = i;
  std::string text;
  for (size_t i = 0; i < nodes.size(); ++i) {
    const Node& node = *nodes[i];
    text += fmt::format("%{} {}(", i, node.name());
    for (size_t k = 0; k < node.inputs.size(); ++k) {
      const Edge& edge = node.inputs[k];
      text += k > 0 ? ", " : "";
      text += edge ? fmt::format("%{}", numbers.at(edge.node.get())) : "-";
      if (edge && edge.node->outputs.size() > 1) text += fmt::format("[{}]", edge.output_nr);
    }
    text += ")";
    for (size_t k = 0; k < node.outputs.size(); ++k)
      text += (k > 0 ? ", " : " ") + to_string(node.outputs[k].shape, node.outputs[k].dtype);
    int64_t saved = 0;
    for (const SavedTensor& s : node.saved)
      if (s.tensor.defined()) saved += s.tensor.numel() * size_of(s.tensor.dtype());
    if (saved > 0) text += fmt::format(", saves {} B", saved);
    if (node.released) text += ", freed";
    if (node.path != 0) text += "; in " + path_of(node.path);
    text += "\n";
  }
  return text;
}

}  // namespace tapestry
