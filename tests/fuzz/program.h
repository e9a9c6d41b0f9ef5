// A program of ops as data: leaves, steps that name rows of the op table, outputs. Run, cut down and printed as C++.
// Not how programs are made up (generate.h), checked (check.h) or shrunk (shrink.h). Next: generate.h.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "../../autograd/tools/gradcheck.h"
#include "../op_table/op_table.h"

namespace tapestry::fuzz {

using op_table::OpRow;
using op_table::Params;

/// The rows programs are made of: the differentiable ones of the op table with a real input. A test may add its own.
std::vector<const OpRow*>& rows();

/// The row of this name applied to xs, the random streams at their start. `nested` times it is wrapped in an op that is given by its composite alone, so
/// that walks differentiate walks. ValueError for a name that no row has.
Tensors op(std::string_view name, std::span<const Tensor> xs, const Params& p = {}, int nested = 0);
inline Tensors op(std::string_view name, std::initializer_list<Tensor> xs, const Params& p = {}, int nested = 0) {
  return op(name, std::span<const Tensor>(xs.begin(), xs.size()), p, nested);
}
/// The elements of xs one after another, again from the start where they are too few, as `shape`.
Tensor fit(std::span<const Tensor> xs, const Shape& shape);
inline Tensor fit(std::initializer_list<Tensor> xs, const Shape& shape) {
  return fit(std::span<const Tensor>(xs.begin(), xs.size()), shape);
}
/// x moved smoothly into (low, high).
Tensor squash(const Tensor& x, double low, double high);

/// Output `nr` of step `step`, or leaf `nr` where step is -1; `nr` -1 is no tensor at all.
struct Ref {
  int step = -1, nr = -1;
  friend bool operator==(const Ref&, const Ref&) = default;
};

struct Step {
  enum class Kind : uint8_t { op, fit, squash };
  Kind kind = Kind::op;
  const OpRow* row = nullptr;
  Params p = {};
  int nested = 0;
  Shape shape = {};          ///< of fit
  double low = 0, high = 0;  ///< of squash
  std::vector<Ref> inputs = {};
};

struct Program {
  std::vector<Tensor> leaves;  ///< those that require a gradient are differentiated
  std::vector<Step> steps;
  std::vector<Ref> outputs;
};

/// Every value of a run: the leaves, then each step's outputs.
struct Values {
  std::vector<Tensor> leaves;
  std::vector<Tensors> steps;
  [[nodiscard]] Tensor operator[](const Ref& ref) const {
    if (ref.nr < 0) return {};
    const auto nr = static_cast<size_t>(ref.nr);
    return ref.step < 0 ? leaves[nr] : steps[static_cast<size_t>(ref.step)][nr];
  }
};
Tensors run(const Step& step, const Values& values);
Values run(const Program& program, std::span<const Tensor> leaves);
/// The program as a function of its leaves.
TensorFunction function_of(const Program& program);

/// Without the steps and leaves that no output needs.
Program compacted(const Program& program);

/// A function `GradcheckResult reproduce()` with its includes, one line per step, that calls gradcheck (or gradgradcheck).
std::string as_cpp(const Program& program, bool second);

}  // namespace tapestry::fuzz
