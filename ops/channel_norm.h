// What batch_norm and group_norm share: their parameters, the fused kernels' operands, and the affine part of their definitions.
// Not part of the API: batch_norm.cpp and group_norm.cpp include it. Next: channel_norm.cpp.
#pragma once

#include "../autograd/function.h"
#include "error_text.h"
#include "kernels/channel_norm.h"
#include "ops.h"
#include "rows.h"

namespace tapestry::detail {

/// A parameter (C) along dim 1 of x.
inline Tensor along_channels(const Tensor& parameter, const Tensor& x) {
  Shape shape{parameter.size(0)};
  for (int d = 2; d < x.dim(); ++d) shape.push_back(1);
  return reshape(in_dtype(parameter, compute_dtype(x.dtype())), shape);
}
/// x̂ · weight + bias in x's dtype, where either is given.
inline Tensor affine(Tensor hat, const Tensor& x, const Tensor& weight, const Tensor& bias) {
  if (weight.defined()) hat = hat * along_channels(weight, x);
  if (bias.defined()) hat = hat + along_channels(bias, x);
  return in_dtype(hat, x.dtype());
}

inline kernels::ChannelSets channel_sets(const Tensor& x, int64_t groups) {
  return {x.size(0), x.size(1), numel(std::span<const int64_t>(x.shape()).subspan(2)), groups};
}

void check_channel_norm(const char* op, const Tensor& x, const Tensor& weight, const Tensor& bias, double eps);

/// The kernels on tensors. mean and inv_std are of the compute dtype, one number a set.
Tensor channel_norm(int64_t groups, const Tensor& x, const Tensor& mean, const Tensor& inv_std, const Tensor& weight,
                    const Tensor& bias);
Grads channel_norm_backward(const Context& c, int64_t groups, bool fixed, const Tensor& mean, const Tensor& inv_std,
                            const Tensor& g);
/// Mean and variance of every set.
struct Moments {
  std::vector<double> mean, variance;
  /// As tensors of the compute dtype: the mean, and 1/√(variance + eps).
  [[nodiscard]] std::array<Tensor, 2> tensors(DType dtype, double eps) const;
};
Moments channel_moments(int64_t groups, const Tensor& x);

}  // namespace tapestry::detail
