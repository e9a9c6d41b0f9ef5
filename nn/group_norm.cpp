// Construction and the calls of the norms within a sample.
#include "group_norm.h"

#include "../autograd/error.h"

namespace tapestry {

GroupNorm::GroupNorm(int64_t num_groups, int64_t num_channels, ChannelNormOptions o) : groups(num_groups), eps(o.eps) {
  if (groups < 1 || num_channels < 1 || num_channels % groups != 0 || !(eps >= 0))
    fail<ValueError>("GroupNorm: num_groups {} must divide num_channels {}, and eps {} be at least 0", num_groups,
                     num_channels, o.eps);
  if (!o.affine) return;
  weight = Parameter(ones({num_channels}));
  bias = Parameter(zeros({num_channels}));
}

void GroupNorm::visit(Visitor& v) {
  v.parameter("weight", weight);
  v.parameter("bias", bias);
}

InstanceNorm2d::InstanceNorm2d(int64_t num_features, ChannelNormOptions o) : eps(o.eps), features_(num_features) {
  if (num_features < 1 || !(eps >= 0))
    fail<ValueError>("InstanceNorm2d: num_features {} must be at least 1 and eps {} at least 0", num_features, o.eps);
  if (!o.affine) return;
  weight = Parameter(ones({num_features}));
  bias = Parameter(zeros({num_features}));
}

Tensor InstanceNorm2d::forward(const Tensor& x) const {
  if (x.dim() != 4 || x.size(1) != features_)
    fail<ShapeError>("InstanceNorm2d: x is {}; it must be (B, {}, H, W)", x.describe(), features_);
  return instance_norm(x, weight, bias, eps);
}

void InstanceNorm2d::visit(Visitor& v) {
  v.parameter("weight", weight);
  v.parameter("bias", bias);
}

}  // namespace tapestry
