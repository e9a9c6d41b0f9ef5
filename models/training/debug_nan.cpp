// The two runs.
#include "debug_nan.h"

#include <cmath>

#include "../../autograd/error.h"
#include "../../autograd/random.h"
#include "../../nn/visitor.h"

namespace tapestry {
namespace {

/// The thread's random streams as they were, at the end.
class KeptRandom {
 public:
  KeptRandom() : kept_(random_state()) {}
  ~KeptRandom() { random_state() = kept_; }
  KeptRandom(const KeptRandom&) = delete;
  KeptRandom& operator=(const KeptRandom&) = delete;

 private:
  RandomState kept_;
};

/// The model in f64; its own parameters and buffers, the very leaves an optimizer knows, come back at the end.
class InF64 {
 public:
  explicit InF64(Module& model) : model_(model) {
    for_each_parameter(model, [&](const std::string&, Parameter& p) {
      parameters_.push_back(p);
      trained_.push_back(p.requires_grad());
    });
    for_each_buffer(model, [&](const std::string&, Buffer& b) { buffers_.push_back(b); });
    to(model, DType::f64);
  }
  ~InF64() {
    size_t i = 0, k = 0;
    for_each_parameter(model_, [&](const std::string&, Parameter& p) {
      p = Parameter(parameters_[i]);
      p.requires_grad_(trained_[i++]);
    });
    for_each_buffer(model_, [&](const std::string&, Buffer& b) { b = Buffer(buffers_[k++]); });
  }
  InF64(const InF64&) = delete;
  InF64& operator=(const InF64&) = delete;

 private:
  Module& model_;
  std::vector<Tensor> parameters_, buffers_;
  std::vector<bool> trained_;
};

std::optional<AnomalyTensor> first_bad_gradient(const Module& model) {
  for (const auto& [name, p] : named_parameters(model))
    if (auto bad = first_not_finite(p.grad(), "the gradient of " + name)) return bad;
  return {};
}

void find_origin(NanReport& report, const Module& model, const std::function<TokenLoss()>& step) {
  for (const auto& [name, p] : named_parameters(model))
    if (const auto bad = first_not_finite(p, "parameter " + name)) {
      report.origin = to_string(*bad) + ", before the step";
      return;
    }
  AnomalyMode watch;
  try {
    (void)step();
  } catch (const AutogradError&) {
    if (!watch.found()) throw;
    report.found = watch.found();
    report.origin = report.found->to_string();
    return;
  }
  const auto bad = first_bad_gradient(model);
  report.origin = bad ? to_string(*bad) + ", as a sum of finite contributions" : "run again, every op was finite";
}

}  // namespace

NanReport debug_nan(Module& model, const LossFn& summed_loss, std::span<const TokenBatch> micro_batches,
                    uint64_t random_step) {
  const KeptRandom random;
  const auto step = [&] {
    zero_grad(model);
    set_random_step(random_step);
    return accumulate_gradients(summed_loss, micro_batches);
  };
  NanReport report;
  find_origin(report, model, step);
  try {
    const InF64 wide(model);
    const TokenLoss loss = step();
    report.finite_in_f64 = std::isfinite(loss.mean()) && !first_bad_gradient(model);
    report.in_f64 =
        *report.finite_in_f64
            ? fmt::format("in f64 the same step is finite (loss {:.6g}): precision is the cause", loss.mean())
            : "in f64 the same step is not finite either: precision is not the cause";
  } catch (const Error& e) {
    report.in_f64 = fmt::format("the step cannot run in f64 ({})", e.what());
  }
  zero_grad(model);
  return report;
}

}  // namespace tapestry
