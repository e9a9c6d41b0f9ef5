// Normalisation of x (B, C, P): each channel over the batch (batch norm), or each group of channels of a sample (group norm).
// Not norms over the last dim (norm.h), nor running statistics (ops/batch_norm.cpp). Next: channel_norm.cpp.
#pragma once

#include <cstdint>

#include "../../autograd/dtype.h"

namespace tapestry::kernels {

/// x (batch, channels, inner), contiguous, and which elements are normalised together: with groups = 0 those of a channel, `channels` sets in all; else
/// those of a sample's group of channels, batch · groups sets.
struct ChannelSets {
  int64_t batch, channels, inner, groups;

  [[nodiscard]] int64_t count() const { return groups == 0 ? channels : batch * groups; }
  [[nodiscard]] int64_t elements() const { return groups == 0 ? batch * inner : channels / groups * inner; }
  /// The set of sample n, channel c.
  [[nodiscard]] int64_t of(int64_t n, int64_t c) const {
    return groups == 0 ? c : n * groups + c / (channels / groups);
  }
};

/// Mean and variance (divided by n) of every set, in two passes summed in double.
template <class T>
void channel_moments(const ChannelSets& sets, const T* x, double* mean, double* variance);

/// y = (x − mean[set]) · inv_std[set] · w[c] + b[c]; w and b may be null.
///
/// (T, W): (float, float), (double, double), (bf16, bf16), (bf16, float).
template <class T, class W>
void channel_norm_forward(const ChannelSets& sets, const T* x, const compute_t<T>* mean, const compute_t<T>* inv_std,
                          const W* w, const W* b, T* y);

/// From g = dL/dy, with x̂ = (x − mean) · inv_std: dx = inv_std · (g w − mean_set(g w) − x̂ mean_set(g w x̂)), or inv_std · g w where the statistics are
/// `fixed`; dw = Σ g x̂ and db = Σ g over batch and inner. Null outputs are not computed.
template <class T, class W>
void channel_norm_backward(const ChannelSets& sets, const T* x, const compute_t<T>* mean, const compute_t<T>* inv_std,
                           const W* w, const T* g, bool fixed, T* dx, W* dw, W* db);

}  // namespace tapestry::kernels
