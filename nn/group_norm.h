// Normalisation of each sample over groups of channels, or over each channel alone.
// Not here: the op (ops/group_norm.cpp) nor norms over the last dim (norm.h).
// Next: containers.h.
#pragma once

#include "../ops/ops.h"
#include "module.h"

namespace tapestry {

struct ChannelNormOptions {
  double eps = 1e-5;
  bool affine = true;
};

/// x (B, C, …) normalised over C/groups channels and all places of a sample, times weight (C), starting as ones, plus bias
/// (C), starting as zeros. Wu & He 2018.
struct GroupNorm : Layer<GroupNorm> {
  Parameter weight, bias;
  int64_t groups;
  double eps;

  /// ValueError unless groups divides num_channels and both are at least 1.
  GroupNorm(int64_t num_groups, int64_t num_channels, ChannelNormOptions o = {});
  [[nodiscard]] Tensor forward(const Tensor& x) const { return group_norm(x, groups, weight, bias, eps); }
  void visit(Visitor& v) override;
};

/// x (B, C, H, W), each channel of each sample normalised by itself; affine only if asked, as in PyTorch. Ulyanov et al.
/// 2016.
struct InstanceNorm2d : Layer<InstanceNorm2d> {
  Parameter weight, bias;
  double eps;

  explicit InstanceNorm2d(int64_t num_features, ChannelNormOptions o = {.affine = false});
  /// ShapeError for another rank or number of channels.
  [[nodiscard]] Tensor forward(const Tensor& x) const;
  void visit(Visitor& v) override;

 private:
  int64_t features_;
};

}  // namespace tapestry
