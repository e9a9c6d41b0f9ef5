// One step of AdamW: Adam's (adam.cpp) with the decay of the parameter beside it. Next: optimizer.h.
#include "adamw.h"

namespace tapestry {
namespace {

Adam::Options as_adam(const AdamW::Options& o) {
  return {.lr = o.lr,
          .beta1 = o.beta1,
          .beta2 = o.beta2,
          .eps = o.eps,
          .weight_decay = o.weight_decay,
          .amsgrad = o.amsgrad};
}

}  // namespace

void AdamW::check(const Options& options) { detail::adam_check(name, as_adam(options)); }

void AdamW::update(const Tensor& param, const Tensor& grad, State& state, const Options& o, double grad_scale) {
  check(o);
  const double keep = 1 - o.lr * o.weight_decay;
  const bool first = o.decay == Decay::first;
  detail::adam_update(name, param, grad, state, as_adam(o),
                      {.keep_before = first ? keep : 1, .keep_after = first ? 1 : keep}, grad_scale);
}

}  // namespace tapestry
