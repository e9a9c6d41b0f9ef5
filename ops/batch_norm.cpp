// batch_norm: channels normalised over the batch while training, by running statistics otherwise.
// Not the kernels (kernels/channel_norm.h) nor the layers that own the statistics (nn/batch_norm.h).
// Next: group_norm.cpp.
#include "channel_norm.h"

namespace tapestry {
namespace {

/// running = (1 − momentum)·running + momentum·factor·value, in place.
void update(const Tensor& running, const std::vector<double>& value, double momentum, double factor) {
  std::vector<double> next = running.to_vector<double>();
  for (size_t c = 0; c < next.size(); ++c) next[c] = (1 - momentum) * next[c] + momentum * factor * value[c];
  const NoGrad raw;
  running.copy_(from(next));
}

// Note [Running statistics are written once]: forward writes them; composite, which a recording walk runs again, does not.
// A checkpoint that recomputes the layer calls it anew and so writes them again.
struct BatchNorm {
  static constexpr std::string_view
      name = "batch_norm",
      formula = "y = x̂ w + b, x̂ = (x − mean(x))/√(var(x) + ε) over each channel, or by running statistics",
      vjp = "dx = (g w − mean(g w) − x̂ mean(g w x̂))/√(var(x) + ε), dw = Σ g x̂, db = Σ g";
  BatchNormOptions options;
  Tensor running_mean, running_var;  // written while training
  Tensor mean, inv_std;              // of the running statistics when the op was called, in evaluation

  Tensor composite(const Tensor& x, const Tensor& weight, const Tensor& bias) const {
    const Tensor wide = detail::in_dtype(x, detail::compute_dtype(x.dtype()));
    if (!options.training)
      return detail::affine((wide - detail::along_channels(mean, x)) * detail::along_channels(inv_std, x), x, weight,
                            bias);
    Dims dims = {0};
    for (int d = 2; d < x.dim(); ++d) dims.push_back(d);
    const Tensor centred = wide - tapestry::mean(wide, dims, true);
    return detail::affine(centred * rsqrt(tapestry::mean(square(centred), dims, true) + options.eps), x, weight, bias);
  }

  Tensor forward(Context& c, const Tensor& x, const Tensor& weight, const Tensor& bias) const {
    if (!options.training) return detail::channel_norm(0, x, mean, inv_std, weight, bias);
    const detail::Moments moments = detail::channel_moments(0, x);
    const auto [batch_mean, batch_inv_std] = moments.tensors(x.dtype(), options.eps);
    c.save(batch_mean, batch_inv_std);
    if (running_mean.defined() && x.numel() > 0) {
      const int64_t count = x.numel() / x.size(1);
      const auto n = static_cast<double>(count);
      update(running_mean, moments.mean, options.momentum, 1);
      update(running_var, moments.variance, options.momentum, n / (n - 1));
    }
    return detail::channel_norm(0, x, batch_mean, batch_inv_std, weight, bias);
  }

  Grads backward(Context& c, const Tensor& g) const {
    if (!options.training) return detail::channel_norm_backward(c, 0, true, mean, inv_std, g);
    return detail::channel_norm_backward(c, 0, false, c.saved(0), c.saved(1), g);
  }
};

void check_running(const Tensor& x, const char* name, const Tensor& running, const BatchNormOptions& options) {
  if (!running.defined()) {
    if (!options.training)
      fail<ValueError>("batch_norm: {} is undefined; it is needed unless training is true (x is {})", name,
                       x.describe());
    return;
  }
  if (running.shape() != Shape{x.size(1)})
    fail<ShapeError>("batch_norm: {} is {}, x is {}; {} must be [{}]", name, running.describe(), x.describe(), name,
                     x.size(1));
  if (!is_floating(running.dtype()))
    fail<DTypeError>("batch_norm: {} is {}; it must be floating", name, running.describe());
  if (running.requires_grad())
    fail<AutogradError>("batch_norm: {} requires a gradient, but running statistics have none; detach() it", name);
}

}  // namespace

Tensor batch_norm(const Tensor& x, Tensor running_mean, Tensor running_var, const Tensor& weight, const Tensor& bias,
                  BatchNormOptions options) {
  detail::check_channel_norm("batch_norm", x, weight, bias, options.eps);
  check_running(x, "running_mean", running_mean, options);
  check_running(x, "running_var", running_var, options);
  if (running_mean.defined() != running_var.defined())
    fail<ValueError>("batch_norm: running_mean and running_var belong together; give both or neither");
  if (!(options.momentum >= 0 && options.momentum <= 1))
    fail<ValueError>("batch_norm: momentum is {}; it must be in [0, 1]", options.momentum);
  if (options.training) {
    if (x.size(1) > 0 && x.numel() == x.size(1))
      fail<ValueError>(
          "batch_norm: expected more than 1 value per channel when training, x is {}; use a larger batch, or "
          "evaluation",
          x.describe());
    return apply(BatchNorm{options, std::move(running_mean), std::move(running_var), {}, {}}, x, weight, bias);
  }
  detail::Moments running{running_mean.to_vector<double>(), running_var.to_vector<double>()};
  auto [mean, inv_std] = running.tensors(x.dtype(), options.eps);
  return apply(BatchNorm{options, {}, {}, std::move(mean), std::move(inv_std)}, x, weight, bias);
}

}  // namespace tapestry
