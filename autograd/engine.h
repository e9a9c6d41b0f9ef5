// The walk: the tape of a loss is the nodes its gradient can reach, sorted by number; backward goes through it in reverse.
// Not recursive, and it stores nothing in the nodes: walks inside walks, and walks of several threads over shared leaves, just work.
// Next: accumulate.h.
#pragma once

#include <vector>

#include "node.h"

namespace tapestry {

struct GradOptions {
  std::vector<Tensor> grad_outputs = {};  ///< upstream gradients; may be left out for single-element outputs
  bool retain_graph = false;
  bool create_graph = false;
  bool allow_unused = false;  ///< undefined instead of an AutogradError for inputs the outputs do not depend on
};

/// d(sum of outputs·grad_outputs)/d(input) for every input. Visits only nodes on a path to an input; writes no .grad.
std::vector<Tensor> grad(const std::vector<Tensor>& outputs, const std::vector<Tensor>& inputs,
                         GradOptions options = {});

/// The nodes the gradient of `root` can reach, in recording order: leaves and operations.
std::vector<Ref<Node>> tape(const Tensor& root);

}  // namespace tapestry
