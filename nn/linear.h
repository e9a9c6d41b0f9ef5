// The linear layer: y = x·Wᵀ + b.
// Not here: the product (ops/matmul.cpp).
// Next: feed_forward.h.
#pragma once

#include "module.h"

namespace tapestry {

struct LinearOptions {
  bool bias = true;
};

/// (…, in) to (…, out). weight (out, in) starts as init::linear_, bias (out) as zeros.
struct Linear : Layer<Linear> {
  Parameter weight, bias;

  /// ValueError unless both sizes are at least 1.
  Linear(int64_t in_features, int64_t out_features, LinearOptions options = {});
  [[nodiscard]] Tensor forward(const Tensor& x) const;
  void visit(Visitor& v) override;
};

}  // namespace tapestry
