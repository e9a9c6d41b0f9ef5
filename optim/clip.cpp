// clip.cpp: the passes over gradients that clip.h promises. Next: ../ops/kernels/optimizer.h.
#include "clip.h"

#include <algorithm>
#include <cmath>
#include <unordered_set>

#include "../autograd/grad_mode.h"
#include "../autograd/node.h"
#include "../ops/kernels/optimizer.h"
#include "update.h"

namespace tapestry {
namespace {

struct Gradient {
  std::string name;
  Tensor parameter, grad;
};

std::vector<Gradient> gradients_of(const NamedTensors& parameters) {
  std::vector<Gradient> found;
  std::unordered_set<const Node*> seen;
  for (const auto& [name, parameter] : parameters) {
    const Tensor grad = parameter.grad();
    if (grad.defined() && parameter.requires_grad() && seen.insert(parameter.body()->edge.node.get()).second)
      found.push_back({name, parameter, grad});
  }
  return found;
}

NamedTensors numbered(const std::vector<Tensor>& tensors) {
  NamedTensors named;
  for (const Tensor& t : tensors) named.emplace_back("parameter " + std::to_string(named.size()), t);
  return named;
}

// f.operator()<T>(numel, elements) on the dense elements of x.
template <class F>
double on_elements(const Tensor& x, F f) {
  const Tensor d = dense(x);
  return dispatch(d.dtype(), [&]<class T>() -> double {
    if constexpr (std::is_same_v<T, int64_t> || std::is_same_v<T, bool>)
      return 0;
    else
      return f(d.numel(), d.data<T>());
  });
}

double sum_of_squares(const std::vector<Gradient>& gradients, double scale) {
  double sum = 0;
  for (const Gradient& g : gradients)
    sum += on_elements(g.grad, [&](int64_t n, const auto* x) { return kernels::sum_of_squares(n, x, scale); });
  return sum;
}

double max_abs(const Tensor& grad) {
  return on_elements(grad, [](int64_t n, const auto* x) { return kernels::max_abs(n, x); });
}

double norm_of(const std::vector<Gradient>& gradients) {
  const double sum = sum_of_squares(gradients, 1);
  // Squares of doubles leave their range where the norm does not; a power of two brings them back exactly.
  if (std::isnan(sum) || (sum > 1e-280 && std::isfinite(sum))) return std::sqrt(sum);
  double most = 0;
  for (const Gradient& g : gradients) most = std::max(most, max_abs(g.grad));
  if (most == 0 || !std::isfinite(most)) return most;
  const double scale = std::exp2(std::clamp(-std::ilogb(most), -1000, 1000));
  return std::sqrt(sum_of_squares(gradients, scale)) / scale;
}

void check_bound(const char* op, const char* name, double bound) {
  if (!(bound >= 0)) fail<ValueError>("{}: {} must not be negative: it is {}", op, name, bound);
}

[[noreturn]] void fail_non_finite(const std::vector<Gradient>& gradients, double norm) {
  for (const Gradient& g : gradients)
    if (!std::isfinite(max_abs(g.grad)))
      fail<ValueError>(
          "clip_grad_norm_: the gradient norm is {}: the gradient of {} ({}) is the first that is not finite; skip the "
          "step",
          norm, g.name, g.grad.describe());
  fail<ValueError>("clip_grad_norm_: the gradient norm is {}, though every gradient is finite; skip the step", norm);
}

// Writes f's result over the gradient; one that is not dense is replaced, for its elements may share memory.
template <class F>
void rewrite(const Gradient& g, F f) {
  const NoGrad no_grad;
  const Tensor d = dense(g.grad);
  dispatch(d.dtype(), [&]<class T> {
    if constexpr (!std::is_same_v<T, int64_t> && !std::is_same_v<T, bool>) f(d.numel(), d.mutable_data<T>());
  });
  if (!d.is_same(g.grad)) g.parameter.set_grad(d);
}

}  // namespace

double grad_norm(const NamedTensors& parameters) { return norm_of(gradients_of(parameters)); }
double grad_norm(const std::vector<Tensor>& parameters) { return grad_norm(numbered(parameters)); }

double clip_coefficient(double norm, double max_norm) {
  check_bound("clip_coefficient", "max_norm", max_norm);
  detail::check_not_negative("clip_coefficient", "norm", norm);
  return norm > max_norm ? max_norm / (norm + 1e-6) : 1;
}

double clip_grad_norm_(const NamedTensors& parameters, double max_norm, NonFinite non_finite) {
  check_bound("clip_grad_norm_", "max_norm", max_norm);
  const std::vector<Gradient> gradients = gradients_of(parameters);
  const double norm = norm_of(gradients);
  if (!std::isfinite(norm)) {
    if (non_finite == NonFinite::raise) fail_non_finite(gradients, norm);
    return norm;
  }
  const double factor = clip_coefficient(norm, max_norm);
  if (factor == 1) return norm;
  for (const Gradient& g : gradients) rewrite(g, [&](int64_t n, auto* x) { kernels::scale(n, x, factor); });
  return norm;
}

double clip_grad_norm_(const std::vector<Tensor>& parameters, double max_norm, NonFinite non_finite) {
  return clip_grad_norm_(numbered(parameters), max_norm, non_finite);
}

void clip_grad_value_(const NamedTensors& parameters, double bound) {
  check_bound("clip_grad_value_", "bound", bound);
  for (const Gradient& g : gradients_of(parameters))
    rewrite(g, [&](int64_t n, auto* x) { kernels::clamp_abs(n, x, bound); });
}

void clip_grad_value_(const std::vector<Tensor>& parameters, double bound) {
  clip_grad_value_(numbered(parameters), bound);
}

}  // namespace tapestry
