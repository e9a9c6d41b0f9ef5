// Losses of a prediction and a target of one shape: a pointwise term, summed or averaged.
// Not here: cross-entropy of integer targets (cross_entropy.cpp).
// Next: gumbel_softmax.cpp.
#include "activation_table.h"
#include "binary_table.h"
#include "error_text.h"
#include "kernels/pointwise_lanes.h"
#include "ops.h"

namespace tapestry {
namespace {

using kernels::LanesLoop;

Tensor reduced(const Tensor& losses, Reduction reduction) {
  if (reduction == Reduction::none) return losses;
  return reduction == Reduction::sum ? sum(losses) : mean(losses);
}

void check_pair(const char* op, const Tensor& x, const Tensor& target, const char* second = "target") {
  detail::require_floating(op, x);
  detail::require_defined(op, target);
  if (x.shape() != target.shape())
    fail<ShapeError>("{}: x is {}, {} is {}; the shapes must be equal: expand({}, x.shape())", op, x.describe(), second,
                     target.describe(), second);
  detail::require_same_dtype(op, x, target);
}

}  // namespace

Tensor mse_loss(const Tensor& x, const Tensor& target, Reduction reduction) {
  check_pair("mse_loss", x, target);
  return reduced(square(x - target), reduction);
}

// t·softplus(−x) + (1 − t)·softplus(x): the same function as max(x, 0) − x·t + ln(1 + e^(−|x|)), as accurate, and with the right derivative
// σ(x) − t at 0 too, where max and |x| have a kink.
Tensor binary_cross_entropy_with_logits(const Tensor& x, const Tensor& target, Reduction reduction) {
  check_pair("binary_cross_entropy_with_logits", x, target);
  return reduced(target * softplus(-x) + (1 - target) * softplus(x), reduction);
}

Tensor binary_cross_entropy(const Tensor& p, const Tensor& target, Reduction reduction) {
  check_pair("binary_cross_entropy", p, target);
  return reduced(pointwise<LanesLoop>(rows::bce, p, target), reduction);
}

Tensor l1_loss(const Tensor& x, const Tensor& target, Reduction reduction) {
  check_pair("l1_loss", x, target);
  return reduced(abs(x - target), reduction);
}

Tensor huber_loss(const Tensor& x, const Tensor& target, double delta, Reduction reduction) {
  check_pair("huber_loss", x, target);
  if (!(delta > 0)) fail<ValueError>("huber_loss: delta is {}; it must be positive", delta);
  return reduced(pointwise<LanesLoop>(rows::huber(delta), x - target), reduction);
}

Tensor smooth_l1_loss(const Tensor& x, const Tensor& target, double beta, Reduction reduction) {
  check_pair("smooth_l1_loss", x, target);
  if (!(beta >= 0)) fail<ValueError>("smooth_l1_loss: beta is {}; it must not be negative", beta);
  if (beta == 0) return l1_loss(x, target, reduction);
  return reduced(pointwise<LanesLoop>(rows::huber(beta), x - target), reduction) / beta;
}

Tensor kl_div(const Tensor& log_q, const Tensor& target, Reduction reduction) {
  check_pair("kl_div", log_q, target);
  const Tensor terms = pointwise<LanesLoop>(rows::kl_term, log_q, target);
  if (reduction != Reduction::mean) return reduced(terms, reduction);
  return sum(terms) / (log_q.dim() == 0 ? 1.0 : static_cast<double>(log_q.size(0)));
}

Tensor hinge_loss(const Tensor& x, const Tensor& target, Reduction reduction) {
  check_pair("hinge_loss", x, target);
  return reduced(relu(1 - target * x), reduction);
}

Tensor gaussian_nll_loss(const Tensor& mean, const Tensor& target, const Tensor& variance, double eps,
                         Reduction reduction) {
  check_pair("gaussian_nll_loss", mean, target);
  check_pair("gaussian_nll_loss", mean, variance, "variance");
  if (!(eps > 0)) fail<ValueError>("gaussian_nll_loss: eps is {}; it must be positive", eps);
  const Tensor v = maximum(variance, eps);
  return reduced(0.5 * (log(v) + square(mean - target) / v), reduction);
}

}  // namespace tapestry
