// An observer that looks at every element of every result. Next: memory_report.h.
#include "anomaly.h"

#include <algorithm>
#include <cmath>

#include "../error.h"
#include "../node.h"
#include "../scope.h"

namespace tapestry {
namespace {

std::string place_of(const Shape& shape, int64_t j) {
  Shape index = shape;
  for (int d = shape.rank() - 1; d >= 0; --d) {
    index[d] = j % shape[d];
    j /= shape[d];
  }
  return to_string(index);
}

/// Counts what is in x, which is floating.
AnomalyTensor looked_at(const Tensor& x, std::string role) {
  AnomalyTensor t{.role = std::move(role), .shape = x.shape(), .dtype = x.dtype(), .numel = x.numel(), .first = {}};
  const Tensor y = dense(x);
  double low = INFINITY, high = -INFINITY;
  dispatch(x.dtype(), [&]<class T> {
    const auto* data = static_cast<const T*>(y.raw_data());
    for (int64_t i = 0; i < t.numel; ++i) {
      const auto v = convert<double>(data[i]);
      if (std::isfinite(v)) {
        low = std::min(low, v);
        high = std::max(high, v);
        continue;
      }
      ++(std::isnan(v) ? t.nans : t.infinities);
      if (t.first.size() < 3) t.first.push_back(place_of(t.shape, i));
    }
  });
  if (low <= high) {
    t.min = low;
    t.max = high;
  }
  return t;
}

bool is_finite(const AnomalyTensor& t) { return t.nans == 0 && t.infinities == 0; }

void look_at(std::vector<AnomalyTensor>& list, const Tensor& x, const char* role, size_t i) {
  if (x.defined() && is_floating(x.dtype())) list.push_back(looked_at(x, fmt::format("{} {}", role, i)));
}

/// The ones that are not finite.
std::vector<AnomalyTensor> bad_ones(std::span<const Tensor> xs, const char* role) {
  std::vector<AnomalyTensor> bad;
  for (size_t i = 0; i < xs.size(); ++i) look_at(bad, xs[i], role, i);
  std::erase_if(bad, is_finite);
  return bad;
}

/// Do these outputs, not finite, start here?
bool starts(const std::vector<AnomalyTensor>& inputs, const std::vector<AnomalyTensor>& outputs, bool may_overflow) {
  const auto has_nan = [](const AnomalyTensor& t) { return t.nans > 0; };
  if (std::any_of(inputs.begin(), inputs.end(), has_nan)) return false;
  if (std::any_of(outputs.begin(), outputs.end(), has_nan)) return true;
  return !may_overflow && std::all_of(inputs.begin(), inputs.end(), is_finite);
}

std::string counted(const AnomalyTensor& t) {
  std::string text;
  if (t.nans > 0) text += fmt::format("{} NaN", t.nans);
  if (t.infinities > 0) text += fmt::format("{}{} inf", text.empty() ? "" : " and ", t.infinities);
  text += fmt::format(" of {} element{}, first at ", t.numel, t.numel == 1 ? "" : "s");
  for (size_t i = 0; i < t.first.size(); ++i) text += (i > 0 ? ", " : "") + t.first[i];
  return text;
}

std::string range(const AnomalyTensor& t) {
  if (t.nans + t.infinities == t.numel) return "has no finite element";
  return fmt::format("{}[{:.6g}, {:.6g}]", is_finite(t) ? "is in " : "is, where finite, in ", t.min, t.max);
}

}  // namespace

std::string to_string(const AnomalyTensor& bad) {
  std::string text = fmt::format("{} ({}) is not finite: {}", bad.role, to_string(bad.shape, bad.dtype), counted(bad));
  if (bad.nans + bad.infinities < bad.numel) text += fmt::format(", the others in [{:.6g}, {:.6g}]", bad.min, bad.max);
  return text;
}

std::optional<AnomalyTensor> first_not_finite(const Tensor& x, std::string role) {
  if (!x.defined() || !is_floating(x.dtype())) return {};
  AnomalyTensor t = looked_at(x, std::move(role));
  if (is_finite(t)) return {};
  return t;
}

std::string Anomaly::to_string() const {
  std::string text = fmt::format("{}{}: ", op, in_backward ? " (backward)" : "");
  for (const AnomalyTensor& t : outputs) text += (&t == outputs.data() ? "" : ", ") + tapestry::to_string(t);
  for (const AnomalyTensor& t : inputs)
    if (t.numel > 0) text += fmt::format("; {} ({}) {}", t.role, tapestry::to_string(t.shape, t.dtype), range(t));
  if (!inside.empty()) text += fmt::format("; its {} did it", inside);
  if (!within.empty()) text += fmt::format("; within the backward of {}", within);
  if (!path.empty()) text += "; in " + path;
  return text;
}

AnomalyMode::AnomalyMode(AnomalyOptions options) : options_(std::move(options)), observing_(this) {}

void AnomalyMode::report(Anomaly anomaly) {
  anomaly.path = scope_path();
  found_ = std::move(anomaly);
  if (options_.throws) throw AutogradError(found_->to_string());
}

void AnomalyMode::on_forward(std::string_view op, std::span<const Tensor* const> inputs,
                             std::span<const Tensor> outputs) {
  if (found_ || (!rules_.empty() && !rules_.back().inside.empty())) return;
  std::vector<AnomalyTensor> bad = bad_ones(outputs, "output"), given;
  if (bad.empty()) return;
  for (size_t i = 0; i < inputs.size(); ++i) look_at(given, *inputs[i], "input", i);
  if (!starts(given, bad, std::count(options_.may_overflow.begin(), options_.may_overflow.end(), op) > 0)) return;
  // What an op inside a rule gives may be masked away: the rule's own result decides.
  if (!rules_.empty())
    rules_.back().inside = op;
  else
    report({.op = std::string(op),
            .path = {},
            .inside = {},
            .within = {},
            .inputs = std::move(given),
            .outputs = std::move(bad)});
}

void AnomalyMode::before_backward(const Node& node, std::span<const Tensor>) { rules_.push_back({&node, {}}); }

void AnomalyMode::on_backward(const Node& node, std::span<const Tensor> grad_outputs,
                              std::span<const Tensor> grad_inputs) {
  while (rules_.back().node != &node) rules_.pop_back();  // left behind by a rule that threw
  const std::string inside = rules_.back().inside;
  rules_.pop_back();
  if (found_) return;
  std::vector<AnomalyTensor> bad = bad_ones(grad_inputs, "gradient of input"), given;
  if (bad.empty()) return;
  for (size_t i = 0; i < grad_outputs.size(); ++i) look_at(given, grad_outputs[i], "gradient of output", i);
  for (size_t i = 0; i < node.saved.size(); ++i) look_at(given, node.saved[i].tensor, "saved", i);
  const auto name = node.name();
  if (!starts(given, bad, std::count(options_.may_overflow.begin(), options_.may_overflow.end(), name) > 0)) return;
  report({.op = std::string(name),
          .in_backward = true,
          .path = {},
          .inside = inside,
          .within = rules_.empty() ? "" : std::string(rules_.front().node->name()),
          .inputs = std::move(given),
          .outputs = std::move(bad)});
}

}  // namespace tapestry
