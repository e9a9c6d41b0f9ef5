// Dropout: noise while training, the identity in evaluation.
// Not here: the mask, a function of a ticket (ops/dropout.cpp).
// Next: activation.h.
#pragma once

#include "../autograd/error.h"
#include "../ops/ops.h"
#include "module.h"

namespace tapestry {

/// While training 0 with probability p, else x/(1 − p); in evaluation, and for p = 0, x itself. Srivastava et al. 2014.
struct Dropout : Layer<Dropout> {
  double p;

  /// ValueError unless 0 ≤ p ≤ 1; p = 1 gives zeros.
  explicit Dropout(double probability) : p(probability) {
    if (!(0 <= p && p <= 1)) fail<ValueError>("Dropout: p is {}, which is not in [0, 1]", p);
  }
  [[nodiscard]] Tensor forward(const Tensor& x) const { return is_training() && p > 0 ? dropout(x, p) : x; }
};

}  // namespace tapestry
