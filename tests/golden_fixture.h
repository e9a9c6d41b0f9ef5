// Golden fixtures: values and gradients that PyTorch computed, in files under golden/, and how to compare with them.
// Not here: what a case computes (golden_ops.h) and how it is run (golden_check.h).
// Next: golden_check.h.
#pragma once

#include <map>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "../autograd/tensor.h"

namespace tapestry::golden {

/// One case of a file. Names of tensors are without the case's id: "in/x", "w/weight", "out/y", "cot/y", "grad/in/x".
struct FixtureCase {
  std::string id, op;
  std::shared_ptr<const nlohmann::json> attrs;
  std::vector<std::string> arguments;  ///< "in/…" and "w/…"
  std::vector<std::string> outputs;    ///< "out/…": those a run must give
  std::vector<std::string> no_grad;    ///< arguments that get none, or zeros
  std::map<std::string, Tensor> tensors;
  std::map<std::string, std::array<double, 2>> tolerance;  ///< absolute, for f64 and for f32
  std::map<std::string, std::string> accept;               ///< tensors for which more than the stored value is right
  [[nodiscard]] const Tensor* find(const std::string& name) const;
};

struct Fixture {
  std::string name;
  double rtol_f64 = 0, rtol_f32 = 0;
  std::vector<FixtureCase> cases;
};

/// "nn/linear", or the folder of a model ("models/cs336-tiny"): then the weights are those of its checkpoint, and the
/// loss is what is differentiated.
Fixture read_fixture(const std::string& name);

/// |got − want| ≤ atol + rtol·|want| with the tensor's tolerances for this dtype; NaN matches NaN, infinities match by
/// sign, integers and bools exactly; an f32 run must match `native`, the stored f32 value if there is one, where that is
/// not finite. Empty if all is well, else what is not.
std::string mismatch(const Fixture& fixture, const FixtureCase& c, const std::string& name, const Tensor& got,
                     const Tensor& want, const Tensor& native, DType dtype);

}  // namespace tapestry::golden
