// One step of SGD. Next: adam.cpp.
#include "sgd.h"

#include "../autograd/grad_mode.h"
#include "../ops/kernels/optimizer.h"
#include "update.h"

namespace tapestry {

void SGD::check(const Options& o) {
  detail::check_not_negative(name, "lr", o.lr);
  detail::check_not_negative(name, "momentum", o.momentum);
  detail::check_not_negative(name, "dampening", o.dampening);
  detail::check_not_negative(name, "weight_decay", o.weight_decay);
  if (o.nesterov && (o.momentum == 0 || o.dampening != 0))
    fail<ValueError>("{}: nesterov needs momentum above 0 and no dampening: momentum = {}, dampening = {}", name,
                     o.momentum, o.dampening);
}

void SGD::update(const Tensor& param, const Tensor& grad, State& state, const Options& o, double grad_scale) {
  check(o);
  detail::check_update(name, param, grad, grad_scale);
  const NoGrad no_grad;
  const bool first = !state.momentum_buffer.defined();
  if (o.momentum != 0) detail::prepare_state(name, "momentum_buffer", state.momentum_buffer, param);
  ++state.step;
  const kernels::SgdStep step{.grad_scale = grad_scale,
                              .l2 = o.weight_decay,
                              .lr = o.lr,
                              .momentum = o.momentum,
                              .dampening = o.dampening,
                              .nesterov = o.nesterov,
                              .first = first};
  detail::update_in_place(param, grad, [&]<class T>(const Tensor& p, const Tensor& g) {
    auto* buffer = o.momentum != 0 ? state.momentum_buffer.mutable_data<compute_t<T>>() : nullptr;
    kernels::sgd_step(p.numel(), p.mutable_data<T>(), g.data<T>(), buffer, step);
  });
}

}  // namespace tapestry
