// group_norm and instance_norm, fused.
// Not running statistics (batch_norm.cpp) nor what both call (channel_norm.cpp).
// Next: conv.cpp.
#include "channel_norm.h"

#include <algorithm>

namespace tapestry {
namespace {

struct GroupNorm {
  std::string_view name;
  static constexpr std::string_view
      formula = "y = x̂ w + b, x̂ = (x − mean(x))/√(var(x) + ε) over each group of channels of a sample",
      vjp = "dx = (g w − mean(g w) − x̂ mean(g w x̂))/√(var(x) + ε), dw = Σ g x̂, db = Σ g";
  int64_t groups;
  double eps;

  Tensor composite(const Tensor& x, const Tensor& weight, const Tensor& bias) const {
    const int64_t rest = groups == 0 || x.numel() == 0 ? 0 : x.numel() / (x.size(0) * groups);
    const Tensor rows = reshape(detail::in_dtype(x, detail::compute_dtype(x.dtype())), {x.size(0), groups, rest});
    const Tensor centred = rows - mean(rows, {-1}, true);
    const Tensor hat = centred * rsqrt(mean(square(centred), {-1}, true) + eps);
    return detail::affine(reshape(hat, x.shape()), x, weight, bias);
  }
  Tensor forward(Context& c, const Tensor& x, const Tensor& weight, const Tensor& bias) const {
    const auto [mean, inv_std] = detail::channel_moments(groups, x).tensors(x.dtype(), eps);
    c.save(mean, inv_std);
    return detail::channel_norm(groups, x, mean, inv_std, weight, bias);
  }
  Grads backward(Context& c, const Tensor& g) const {
    return detail::channel_norm_backward(c, groups, false, c.saved(0), c.saved(1), g);
  }
};

}  // namespace

Tensor group_norm(const Tensor& x, int64_t groups, const Tensor& weight, const Tensor& bias, double eps) {
  detail::check_channel_norm("group_norm", x, weight, bias, eps);
  if (groups < 1 || x.size(1) % groups != 0)
    fail<ShapeError>("group_norm: {} groups do not divide the {} channels of x {}", groups, x.size(1), x.describe());
  // Every number divides 0 channels, whose groups hold nothing.
  return apply(GroupNorm{"group_norm", std::min(groups, x.size(1)), eps}, x, weight, bias);
}

Tensor instance_norm(const Tensor& x, const Tensor& weight, const Tensor& bias, double eps) {
  detail::check_channel_norm("instance_norm", x, weight, bias, eps);
  return apply(GroupNorm{"instance_norm", x.size(1), eps}, x, weight, bias);
}

}  // namespace tapestry
