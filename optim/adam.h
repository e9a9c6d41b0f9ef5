// Adam, with weight decay as an L2 term of the loss.
// Not here: decoupled weight decay (adamw.h), groups, skipping, saving (optimizer.h). Next: adamw.h.
#pragma once

#include "../autograd/tensor.h"

namespace tapestry {

/// Adam (Kingma & Ba 2015) with the L2 term in the gradient, as PyTorch does it; t counts the steps of this parameter from 1:
///
///     g ← g + weight_decay · p
///     m ← beta1 · m + (1 − beta1) · g
///     v ← beta2 · v + (1 − beta2) · g²
///     p ← p − lr · m / (1 − beta1ᵗ) / (√(v / (1 − beta2ᵗ)) + eps)
///
/// With amsgrad (Reddi et al. 2018) the largest v so far takes the place of v. Where the divisor is 0 (eps = 0 and no gradient yet) p stays.
struct Adam {
  static constexpr const char* name = "adam";
  struct Options {
    double lr = 1e-3, beta1 = 0.9, beta2 = 0.999, eps = 1e-8, weight_decay = 0;
    bool amsgrad = false;
  };
  struct State {
    int64_t step = 0;
    Tensor exp_avg, exp_avg_sq;  ///< m and v
    Tensor max_exp_avg_sq;       ///< amsgrad only
  };

  /// ValueError unless lr, eps and weight_decay are finite and at least 0 and both betas are in [0, 1).
  static void check(const Options& options);
  /// One step of one parameter in one pass over memory, written in place; the gradient counts as grad · grad_scale. bf16 parameters keep f32
  /// state, and round the parameter once.
  static void update(const Tensor& param, const Tensor& grad, State& state, const Options& options,
                     double grad_scale = 1);

  /// f(field, value) for every option.
  template <class O, class F>
  static void visit_options(O& o, F f) {
    f("lr", o.lr);
    f("beta1", o.beta1);
    f("beta2", o.beta2);
    f("eps", o.eps);
    f("weight_decay", o.weight_decay);
    f("amsgrad", o.amsgrad);
  }
  /// f(field, tensor, whether it holds something after state.step steps).
  template <class O, class F>
  static void visit_state(State& s, const O& o, F f) {
    f("exp_avg", s.exp_avg, s.step > 0);
    f("exp_avg_sq", s.exp_avg_sq, s.step > 0);
    f("max_exp_avg_sq", s.max_exp_avg_sq, s.step > 0 && o.amsgrad);
  }
};

namespace detail {

/// How weight decay enters a step of the Adam family.
struct AdamDecay {
  double l2 = 0;                           ///< g + l2 · p
  double keep_before = 1, keep_after = 1;  ///< p times them, before and after the update
};
/// The step Adam and AdamW share. `rule` names it in errors.
void adam_update(const char* rule, const Tensor& param, const Tensor& grad, Adam::State& state,
                 const Adam::Options& options, const AdamDecay& decay, double grad_scale);
void adam_check(const char* rule, const Adam::Options& options);

}  // namespace detail
}  // namespace tapestry
