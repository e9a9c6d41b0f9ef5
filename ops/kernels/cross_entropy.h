// The negative log-likelihood of integer targets under softmax(logits), and its gradient, without storing
// probabilities.
// Not here: the mean and the error message (ops/cross_entropy.cpp). Next: cross_entropy.cpp.
#pragma once

#include <cstdint>

#include "../../autograd/dtype.h"

namespace tapestry::kernels {

/// What a forward pass tells: the loss Σ_i w_i (lse_i − Σ_j q_ij logits[i, j] + z_loss·lse_i²) over the counted rows in
/// double, their number, Σ_i w_i, and the first row whose target is neither ignore_index nor in [0, classes), -1 if there
/// is none (then the others are unspecified). q_i = (1 − smoothing)·one-hot(t_i) + smoothing/classes; w_i = weight[t_i],
/// 1 without.
struct CrossEntropySum {
  double loss = 0;
  int64_t count = 0;
  double weight = 0;
  int64_t bad_row = -1;
};

/// logits (n, classes) with contiguous rows `stride` apart, targets (n). Writes the loss of each row (0 where ignored)
/// unless `losses` is null, and lse = log Σ exp(logits) (n). T: float, double, bf16. A row of −inf alone gives lse =
/// −inf and a loss of NaN; a target of probability 0 costs +inf, with smoothing any class of probability 0 does. A row of
/// weight 0 costs 0.
template <class T>
CrossEntropySum cross_entropy_forward(int64_t n, int64_t classes, const T* logits, int64_t stride,
                                      const int64_t* targets, int64_t ignore_index, compute_t<T>* losses,
                                      compute_t<T>* lse, double smoothing = 0, const double* weight = nullptr,
                                      double z_loss = 0);

/// dlogits[i, j] = scale_i · ((1 + 2·z_loss·lse_i)·exp(logits[i, j] − lse_i) − q_ij), 0 in ignored rows and where scale_i is 0; scale_i
/// = scale · w_i · (scales ? scales[i] : 1). For the mean: scale = g / count. dlogits may be logits.
template <class T>
void cross_entropy_backward(int64_t n, int64_t classes, const T* logits, int64_t stride, const int64_t* targets,
                            int64_t ignore_index, const compute_t<T>* lse, double scale, const compute_t<T>* scales,
                            T* dlogits, int64_t dlogits_stride, double smoothing = 0, const double* weight = nullptr,
                            double z_loss = 0);

}  // namespace tapestry::kernels
