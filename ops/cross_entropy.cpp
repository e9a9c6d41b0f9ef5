// Cross-entropy of integer targets, fused with its log-softmax, and nll_loss, which takes the logarithms.
// Not here: losses of two tensors of one shape (loss.cpp).
// Next: loss.cpp.
#include <utility>

#include "../autograd/function.h"
#include "error_text.h"
#include "kernels/cross_entropy.h"
#include "ops.h"
#include "rows.h"
#include "targets.h"

namespace tapestry {
namespace {

void check_rows(const char* op, const char* name, const Tensor& x, const Tensor& targets) {
  detail::require_floating(op, x);
  detail::require_target_rows(op, name, x, targets);
  detail::require_classes(op, name, x, x.size(-1), targets);
}

void check_options(const char* op, const Tensor& x, const CrossEntropyOptions& options) {
  detail::require_loss_terms(op, options.label_smoothing, options.z_loss);
  const Tensor& w = options.weight;
  if (!w.defined()) return;
  if (w.shape() != Shape{x.size(-1)})
    fail<ShapeError>("{}: weight is {}, but there are {} classes; it must hold one number per class", op, w.describe(),
                     x.size(-1));
  if (w.dtype() != x.dtype())
    fail<DTypeError>("{}: weight is {}, the rows are {}; convert with to(weight, DType::{})", op, w.describe(),
                     x.describe(), name_of(x.dtype()));
  if (w.requires_grad() && grad_enabled())
    fail<AutogradError>("{}: weight has no derivative, but requires a gradient; pass weight.detach()", op);
}

/// The class weights in f64, undefined if there are none.
Tensor class_weights(const CrossEntropyOptions& options) {
  return options.weight.defined() ? dense(to(options.weight.detach(), DType::f64)) : Tensor{};
}

/// What a mean divides by: the weights of the kept targets, or their number.
double kept_weight(const Tensor& targets, const CrossEntropyOptions& options) {
  const Tensor t = dense(targets), w = class_weights(options);
  const auto* p = t.data<int64_t>();
  const double* const weight = w.defined() ? w.data<double>() : nullptr;
  double kept = 0;
  for (int64_t i = 0; i < t.numel(); ++i)
    if (p[i] != options.ignore_index) kept += weight ? weight[p[i]] : 1;
  return kept;
}

/// 1 for a sum, 1/weight for a mean, 0 for the mean over nothing.
double share(const CrossEntropyOptions& options, double weight) {
  if (options.reduction != Reduction::mean) return 1;
  return weight == 0 ? 0 : 1 / weight;
}

/// −Σ_c q_c w_c log_probs[c] where kept, reduced; q is one-hot, smoothed by s, w the class weights. Targets are known to be in range. With
/// z_loss `lse` holds ln Σ e^logits of the rows.
Tensor picked_loss(const Tensor& log_probs, const Tensor& targets, const CrossEntropyOptions& options,
                   const Tensor& lse = {}) {
  if (log_probs.numel() == 0) {  // nothing to pick from
    const Tensor nothing = sum(log_probs, {-1});
    return options.reduction == Reduction::none ? nothing : sum(nothing);
  }
  const Tensor kept = not_equal(targets, from(std::vector<int64_t>{options.ignore_index}, {}));
  const Tensor at = where(kept, targets, 0.0), &w = options.weight;
  const Tensor of_target = w.defined() ? reshape(index_select(w.detach(), 0, reshape(at, {-1})), at.shape()) : Tensor{};
  Tensor losses = -squeeze(gather(log_probs, -1, unsqueeze(at, -1)), -1);
  // mul0: a class of weight 0 costs nothing, even where its probability is 0.
  if (w.defined()) losses = mul0(of_target, losses);
  if (const double s = options.label_smoothing; s > 0) {
    const Tensor all_classes = w.defined() ? mul0(w.detach(), log_probs) : log_probs;
    losses = (1 - s) * losses - s * mean(all_classes, {-1});
  }
  if (options.z_loss > 0) {
    const Tensor z = options.z_loss * square(lse);
    losses = losses + (w.defined() ? mul0(of_target, z) : z);
  }
  losses = where(kept, losses, 0.0);
  if (options.reduction == Reduction::none) return losses;
  return sum(losses) * share(options, kept_weight(targets, options));
}

Tensor plain_loss(const Tensor& logits, const Tensor& targets, const CrossEntropyOptions& options) {
  const bool z = options.z_loss > 0 && logits.numel() > 0;
  return picked_loss(log_softmax(logits, -1), targets, options, z ? logsumexp(logits, {-1}) : Tensor{});
}

struct CrossEntropy {
  static constexpr std::string_view name = "cross_entropy",
                                    formula =
                                        "y = ln Σ e^x − x[t] (+ z (ln Σ e^x)²), summed or averaged over kept rows",
                                    vjp = "dx = g (softmax(x) − [j = t])/count, 0 in ignored rows";
  // Not for class weights together with label smoothing, where every class of a row weighs differently.
  CrossEntropyOptions unweighted;  // the class weights are an input, so that a write to them before backward is seen

  [[nodiscard]] CrossEntropyOptions with(const Tensor& weight) const {
    CrossEntropyOptions options = unweighted;
    options.weight = weight;
    return options;
  }

  Tensor composite(const Tensor& logits, const Tensor& targets, const Tensor& weight) const {
    return plain_loss(logits, targets, with(weight));
  }

  Tensor forward(Context& c, const Tensor& logits, const Tensor& targets, const Tensor& weight) const {
    const CrossEntropyOptions options = with(weight);
    const detail::RowView x = detail::rows_of(logits);
    const Tensor t = dense(targets), weights = class_weights(options);
    const DType wide = logits.dtype() == DType::f64 ? DType::f64 : DType::f32;
    const bool each = options.reduction == Reduction::none;
    const Tensor losses = each ? empty(targets.shape(), wide) : Tensor{}, lse = empty({x.rows}, wide);
    double total = 0;
    detail::dispatch_floating(logits.dtype(), [&]<class T> {
      using C = compute_t<T>;
      const auto found = kernels::cross_entropy_forward<T>(
          x.rows, x.width, x.data<T>(), x.stride, t.data<int64_t>(), options.ignore_index,
          each ? detail::fresh<C>(losses) : nullptr, detail::fresh<C>(lse), options.label_smoothing,
          weights.defined() ? weights.data<double>() : nullptr, options.z_loss);
      if (found.bad_row >= 0) detail::fail_target(name, targets, found.bad_row, x.width);
      if (found.count > 0) total = found.loss * share(options, found.weight);
    });
    c.save(lse);
    if (each) return wide == logits.dtype() ? losses : to(losses, logits.dtype());
    return scalar(total, logits.dtype());
  }

  Grads backward(Context& c, const Tensor& g) const {
    const CrossEntropyOptions options = with(c.input(2));
    const Tensor logits = c.input(0), targets = c.input(1), lse = c.saved(0), t = dense(targets),
                 weights = class_weights(options);
    const detail::RowView x = detail::rows_of(logits);
    const Tensor dx = empty(logits.shape(), logits.dtype());
    const bool each = options.reduction == Reduction::none;
    const double scale = each ? 1 : g.item() * share(options, kept_weight(targets, options));
    const Tensor scales = each ? dense(g.dtype() == lse.dtype() ? g : to(g, lse.dtype())) : Tensor{};
    detail::dispatch_floating(logits.dtype(), [&]<class T> {
      using C = compute_t<T>;
      kernels::cross_entropy_backward<T>(x.rows, x.width, x.data<T>(), x.stride, t.data<int64_t>(),
                                         options.ignore_index, lse.data<C>(), scale, each ? scales.data<C>() : nullptr,
                                         detail::fresh<T>(dx), x.width, options.label_smoothing,
                                         weights.defined() ? weights.data<double>() : nullptr, options.z_loss);
    });
    return {dx, {}, {}};
  }
};

}  // namespace

Tensor cross_entropy(const Tensor& logits, const Tensor& targets, CrossEntropyOptions options) {
  check_rows("cross_entropy", "logits", logits, targets);
  check_options("cross_entropy", logits, options);
  if (options.label_smoothing == 0 || !options.weight.defined()) {
    const Tensor weight = std::exchange(options.weight, {});
    return apply(CrossEntropy{options}, logits, targets, weight);
  }
  (void)detail::kept_targets("cross_entropy", targets, logits.size(-1), options.ignore_index);
  if (logits.dtype() != DType::bf16) return plain_loss(logits, targets, options);
  options.weight = to(options.weight, DType::f32);
  return to(plain_loss(to(logits, DType::f32), targets, options), DType::bf16);
}

Tensor nll_loss(const Tensor& log_probs, const Tensor& targets, CrossEntropyOptions options) {
  check_rows("nll_loss", "log_probs", log_probs, targets);
  check_options("nll_loss", log_probs, options);
  if (options.label_smoothing != 0)
    fail<ValueError>("nll_loss: label_smoothing is {}, which needs all classes; use cross_entropy",
                     options.label_smoothing);
  if (options.z_loss != 0)
    fail<ValueError>("nll_loss: z_loss is {}, which needs the logits; use cross_entropy", options.z_loss);
  (void)detail::kept_targets("nll_loss", targets, log_probs.size(-1), options.ignore_index);
  return picked_loss(log_probs, targets, options);
}

}  // namespace tapestry
