// Losses: cross-entropy fused with its log-softmax, and those that are short compositions of other ops.
// Not here: softmax itself (softmax.cpp).
// Next: rope.cpp.
#include "../autograd/function.h"
#include "error_text.h"
#include "kernels/cross_entropy.h"
#include "ops.h"
#include "rows.h"

namespace tapestry {
namespace {

Tensor reduced(const Tensor& losses, Reduction reduction) {
  if (reduction == Reduction::none) return losses;
  return reduction == Reduction::sum ? sum(losses) : mean(losses);
}

/// "[3, 17]" of the row-major index i.
std::string position(const Shape& shape, int64_t i) {
  Dims at = shape;
  for (int d = shape.rank(); d-- > 0; i /= shape[d]) at[d] = i % shape[d];
  return to_string(at);
}

[[noreturn]] void fail_target(std::string_view op, const Tensor& targets, int64_t i, int64_t classes) {
  fail<IndexError>("{}: target {} at {} is out of range for {} classes", op, dense(targets).data<int64_t>()[i],
                   position(targets.shape(), i), classes);
}

void check_rows(const char* op, const char* name, const Tensor& x, const Tensor& targets) {
  detail::require_floating(op, x);
  Shape rows;
  for (int d = 0; d + 1 < x.dim(); ++d) rows.push_back(x.shape()[d]);
  if (x.dim() == 0 || targets.shape() != rows)
    fail<ShapeError>("{}: {} is {}, targets is {}; targets must have the shape of {} without its last dim", op, name,
                     x.describe(), targets.describe(), name);
  if (x.size(-1) == 0 && targets.numel() > 0)
    fail<ShapeError>("{}: {} is {}, targets is {}; there must be a class to choose", op, name, x.describe(),
                     targets.describe());
  if (targets.dtype() != DType::i64)
    fail<DTypeError>("{}: targets is {}; it must be i64: convert with to(x, DType::i64)", op, targets.describe());
}

int64_t count_kept(const Tensor& targets, int64_t ignore_index) {
  const Tensor t = dense(targets);
  const auto* p = t.data<int64_t>();
  int64_t kept = 0;
  for (int64_t i = 0; i < t.numel(); ++i) kept += p[i] != ignore_index ? 1 : 0;
  return kept;
}

/// 1 for a sum, 1/count for a mean, 0 for the mean over nothing.
double share(const CrossEntropyOptions& options, int64_t count) {
  if (options.reduction != Reduction::mean) return 1;
  return count == 0 ? 0 : 1 / static_cast<double>(count);
}

/// −log_probs[target] where kept, reduced. Targets are known to be in range.
Tensor picked_loss(const Tensor& log_probs, const Tensor& targets, const CrossEntropyOptions& options) {
  if (log_probs.numel() == 0) {  // nothing to pick from
    const Tensor nothing = sum(log_probs, {-1});
    return options.reduction == Reduction::none ? nothing : sum(nothing);
  }
  const Tensor kept = not_equal(targets, from(std::vector<int64_t>{options.ignore_index}, {}));
  const Tensor picked = squeeze(gather(log_probs, -1, unsqueeze(where(kept, targets, 0.0), -1)), -1);
  const Tensor losses = where(kept, -picked, 0.0);
  if (options.reduction == Reduction::none) return losses;
  return sum(losses) * share(options, count_kept(targets, options.ignore_index));
}

struct CrossEntropy {
  static constexpr std::string_view name = "cross_entropy",
                                    formula = "y = ln Σ e^x − x[t], summed or averaged over kept rows",
                                    vjp = "dx = g (softmax(x) − [j = t])/count, 0 in ignored rows";
  CrossEntropyOptions options;

  Tensor composite(const Tensor& logits, const Tensor& targets) const {
    return picked_loss(log_softmax(logits, -1), targets, options);
  }

  Tensor forward(Context& c, const Tensor& logits, const Tensor& targets) const {
    const detail::RowView x = detail::rows_of(logits);
    const Tensor t = dense(targets);
    const DType wide = logits.dtype() == DType::f64 ? DType::f64 : DType::f32;
    const bool each = options.reduction == Reduction::none;
    const Tensor losses = each ? empty(targets.shape(), wide) : Tensor{}, lse = empty({x.rows}, wide);
    double total = 0;
    detail::dispatch_floating(logits.dtype(), [&]<class T> {
      using C = compute_t<T>;
      const auto found = kernels::cross_entropy_forward<T>(
          x.rows, x.width, x.data<T>(), x.stride, t.data<int64_t>(), options.ignore_index,
          each ? detail::fresh<C>(losses) : nullptr, detail::fresh<C>(lse));
      if (found.bad_row >= 0) fail_target(name, targets, found.bad_row, x.width);
      if (found.count > 0) total = found.loss * share(options, found.count);
    });
    c.save(lse);
    if (each) return wide == logits.dtype() ? losses : to(losses, logits.dtype());
    return scalar(total, logits.dtype());
  }

  Grads backward(Context& c, const Tensor& g) const {
    const Tensor logits = c.input(0), targets = c.input(1), lse = c.saved(0), t = dense(targets);
    const detail::RowView x = detail::rows_of(logits);
    const Tensor dx = empty(logits.shape(), logits.dtype());
    const bool each = options.reduction == Reduction::none;
    const double scale = each ? 1 : g.item() * share(options, count_kept(targets, options.ignore_index));
    const Tensor scales = each ? dense(g.dtype() == lse.dtype() ? g : to(g, lse.dtype())) : Tensor{};
    detail::dispatch_floating(logits.dtype(), [&]<class T> {
      using C = compute_t<T>;
      kernels::cross_entropy_backward<T>(x.rows, x.width, x.data<T>(), x.stride, t.data<int64_t>(),
                                         options.ignore_index, lse.data<C>(), scale, each ? scales.data<C>() : nullptr,
                                         detail::fresh<T>(dx), x.width);
    });
    return {dx, {}};
  }
};

void check_pair(const char* op, const Tensor& x, const Tensor& target) {
  detail::require_floating(op, x);
  if (x.shape() != target.shape())
    fail<ShapeError>("{}: x is {}, target is {}; the shapes must be equal: expand(target, x.shape())", op, x.describe(),
                     target.describe());
  detail::require_same_dtype(op, x, target);
}

}  // namespace

Tensor cross_entropy(const Tensor& logits, const Tensor& targets, CrossEntropyOptions options) {
  check_rows("cross_entropy", "logits", logits, targets);
  return apply(CrossEntropy{options}, logits, targets);
}

Tensor nll_loss(const Tensor& log_probs, const Tensor& targets, CrossEntropyOptions options) {
  check_rows("nll_loss", "log_probs", log_probs, targets);
  const Tensor t = dense(targets);
  const auto* p = t.data<int64_t>();
  for (int64_t i = 0; i < t.numel(); ++i)
    if (p[i] != options.ignore_index && (p[i] < 0 || p[i] >= log_probs.size(-1)))
      fail_target("nll_loss", targets, i, log_probs.size(-1));
  return picked_loss(log_probs, targets, options);
}

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

}  // namespace tapestry
