// Finding where NaN and infinities come from: the first op, or the first rule in backward, whose inputs were finite and whose output is not.
// Not a repair and not for every step: it looks at every element of every result.
// Next: anomaly.cpp.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "../observer.h"
#include "../shape.h"

namespace tapestry {

/// What one tensor of an op held.
struct AnomalyTensor {
  std::string role;  ///< "input 0", "output 1"; of a rule "gradient of output 0", "saved 0", "gradient of input 1"
  Shape shape;
  DType dtype = DType::f32;
  int64_t numel = 0, nans = 0, infinities = 0;
  std::vector<std::string> first;  ///< "[0, 2]": where the first ones are that are not finite, at most three
  double min = 0, max = 0;         ///< of the finite elements; 0 where there are none
};

/// Where values stopped being finite.
struct Anomaly {
  std::string op;
  bool in_backward = false;
  std::string path;                    ///< module path
  std::string inside;                  ///< of a rule: the op it ran that did it, where that is known
  std::string within;                  ///< the op whose rule ran this one, where a rule differentiates its definition
  std::vector<AnomalyTensor> inputs;   ///< floating ones
  std::vector<AnomalyTensor> outputs;  ///< those that are not finite
  /// One line: exp: output 0 ([2] f32) is not finite: 1 inf of 2 elements, first at [1]; input 0 ([2] f32) is in [0, 1000]; in layers.3
  [[nodiscard]] std::string to_string() const;
};

struct AnomalyOptions {
  bool throws = true;  ///< AutogradError with that line at the op; else it is kept and what was running goes on
  std::vector<std::string> may_overflow = {};  ///< ops whose infinities are meant, as "log" where log(0) is
};

/// Watches the calling thread while it lives (observer.h). An op counts if all floating inputs are finite and an output is NaN or infinite; or if an input is
/// infinite, none is NaN, and an output is NaN (∞ − ∞, softmax of a row of −∞). So infinities that are put in, by masked_fill or as constants, are no finding,
/// and what becomes NaN because of them is. A rule's inputs are the gradients it was given and what was saved for it. Parameters and data that are not finite
/// from the start make no finding either: look at them first (first_not_finite).
///
///     AnomalyMode watch;
///     loss(model, batch).backward();   // throws "log: output 0 (…) is not finite: …"
class AnomalyMode : private Observer {
 public:
  explicit AnomalyMode(AnomalyOptions options = {});
  AnomalyMode(const AnomalyMode&) = delete;
  AnomalyMode& operator=(const AnomalyMode&) = delete;
  ~AnomalyMode() override = default;

  /// The first finding, if there was one.
  [[nodiscard]] const std::optional<Anomaly>& found() const { return found_; }

 private:
  struct Rule {
    const Node* node;
    std::string inside;
  };
  void on_forward(std::string_view op, std::span<const Tensor* const> inputs, std::span<const Tensor> outputs) override;
  void before_backward(const Node& node, std::span<const Tensor> grad_outputs) override;
  void on_backward(const Node& node, std::span<const Tensor> grad_outputs,
                   std::span<const Tensor> grad_inputs) override;
  void report(Anomaly anomaly);

  AnomalyOptions options_;
  std::optional<Anomaly> found_;
  std::vector<Rule> rules_;  ///< that are running, the outermost first
  Observing observing_;
};

/// What x holds, if anything in it is not finite.
std::optional<AnomalyTensor> first_not_finite(const Tensor& x, std::string role);
/// "w ([2] f32) is not finite: 1 NaN of 2 elements, first at [1], the others in [0, 3]".
std::string to_string(const AnomalyTensor& bad);

}  // namespace tapestry
