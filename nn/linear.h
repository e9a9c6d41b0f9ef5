// The linear layer: y = x·Wᵀ + b.
// Not here: the product (ops/matmul.cpp), nor the giving and taking of adapters (lora.h).
// Next: feed_forward.h.
#pragma once

#include <optional>

#include "module.h"

namespace tapestry {

struct LinearOptions {
  bool bias = true;
};

/// What lora.h puts beside a frozen weight: scale·B·A.
struct LowRankAdapter {
  Parameter a, b;      ///< (r, in), (out, r)
  double scale = 1;    ///< α/r
  double dropout = 0;  ///< of what A reads, while training
  Buffer unmerged;     ///< the weight without the product, while it is merged; undefined otherwise
};

/// (…, in) to (…, out). weight (out, in) starts as init::linear_, bias (out) as zeros.
struct Linear : Layer<Linear> {
  Parameter weight, bias;
  std::optional<LowRankAdapter> adapter;

  /// ValueError unless both sizes are at least 1.
  Linear(int64_t in_features, int64_t out_features, LinearOptions options = {});
  [[nodiscard]] Tensor forward(const Tensor& x) const;
  void visit(Visitor& v) override;
};

}  // namespace tapestry
