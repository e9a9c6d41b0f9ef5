// One step of the Adam family. Next: adamw.cpp.
#include "adam.h"

#include <cmath>

#include "../autograd/grad_mode.h"
#include "../ops/kernels/optimizer.h"
#include "update.h"

namespace tapestry {

void detail::adam_check(const char* rule, const Adam::Options& o) {
  check_not_negative(rule, "lr", o.lr);
  check_fraction(rule, "beta1", o.beta1);
  check_fraction(rule, "beta2", o.beta2);
  check_not_negative(rule, "eps", o.eps);
  check_not_negative(rule, "weight_decay", o.weight_decay);
}

void detail::adam_update(const char* rule, const Tensor& param, const Tensor& grad, Adam::State& state,
                         const Adam::Options& o, const AdamDecay& decay, double grad_scale) {
  check_update(rule, param, grad, grad_scale);
  const NoGrad no_grad;
  prepare_state(rule, "exp_avg", state.exp_avg, param);
  prepare_state(rule, "exp_avg_sq", state.exp_avg_sq, param);
  if (o.amsgrad) prepare_state(rule, "max_exp_avg_sq", state.max_exp_avg_sq, param);
  const auto t = static_cast<double>(++state.step);
  const kernels::AdamStep step{.grad_scale = grad_scale,
                               .l2 = decay.l2,
                               .beta1 = o.beta1,
                               .beta2 = o.beta2,
                               .step_size = o.lr / (1 - std::pow(o.beta1, t)),
                               .inv_sqrt_bias2 = 1 / std::sqrt(1 - std::pow(o.beta2, t)),
                               .eps = o.eps,
                               .keep_before = decay.keep_before,
                               .keep_after = decay.keep_after};
  update_in_place(param, grad, [&]<class T>(const Tensor& p, const Tensor& g) {
    using C = compute_t<T>;
    kernels::adam_step(p.numel(), p.mutable_data<T>(), g.data<T>(), state.exp_avg.mutable_data<C>(),
                       state.exp_avg_sq.mutable_data<C>(), o.amsgrad ? state.max_exp_avg_sq.mutable_data<C>() : nullptr,
                       step);
  });
}

void Adam::check(const Options& options) { detail::adam_check(name, options); }

void Adam::update(const Tensor& param, const Tensor& grad, State& state, const Options& o, double grad_scale) {
  check(o);
  detail::adam_update(name, param, grad, state, o, {.l2 = o.weight_decay}, grad_scale);
}

}  // namespace tapestry
