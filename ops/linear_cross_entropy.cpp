// Cross-entropy of a linear layer's logits without the logits: rows are taken in chunks, and the gradients of a chunk are computed in forward.
// Not cross-entropy of logits that exist (cross_entropy.cpp).
// Next: loss.cpp.
#include "ops.h"

namespace tapestry {

Tensor linear_cross_entropy(const Tensor& x, const Tensor& weight, const Tensor& bias, const Tensor& targets,
                            LinearCrossEntropyOptions options) {
  Tensor logits = linear(x, weight, bias);
  if (options.soft_cap != 0) logits = soft_cap(logits, options.soft_cap);
  return cross_entropy(logits, targets,
                       {.ignore_index = options.ignore_index,
                        .reduction = options.reduction,
                        .label_smoothing = options.label_smoothing,
                        .z_loss = options.z_loss});
}

}  // namespace tapestry
