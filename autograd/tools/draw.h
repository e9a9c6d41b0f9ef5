// The tape of a loss as a drawing, in Graphviz's DOT language.
// Not a list (print_tape.h). Next: draw.cpp.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "../tensor.h"

namespace tapestry {

/// A graph of what `loss` was computed from: a box per recorded op with its name, the shapes and dtypes of its results, the bytes it saved (as print_tape
/// counts them) and the module path; an ellipse per leaf, with its name where `names` has it. Where a leaf has a .grad, or an intermediate was told to
/// retain_grad(), its L2 norm stands there. An edge leads from each result to each op that uses it, labelled with the output's number where
/// there are several. Drawn after backward, ops whose graph was freed say so.
///
///     std::ofstream("loss.dot") << draw(loss, named_parameters(model));   // dot -Tsvg loss.dot > loss.svg
///
/// An empty graph for a tensor that does not require a gradient.
std::string draw(const Tensor& loss, const std::vector<std::pair<std::string, Tensor>>& names = {});

}  // namespace tapestry
