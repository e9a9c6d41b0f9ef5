// AdamW: Adam whose weight decay acts on the parameter, not on the gradient.
// Not here: which parameters decay (decay_matrices_only in optimizer.h). Next: optimizer.h.
#pragma once

#include "adam.h"

namespace tapestry {

/// When a parameter decays: before the update (PyTorch; the paper), or after it. They differ by lr² · weight_decay · m̂ / (√v̂ + eps) a step.
enum class Decay { first, last };

/// Decoupled weight decay (Loshchilov & Hutter 2019); moments, bias correction and amsgrad are Adam's:
///
///     p ← p · (1 − lr · weight_decay)                              decay first
///     p ← p − lr · m / (1 − beta1ᵗ) / (√(v / (1 − beta2ᵗ)) + eps)
///     p ← p · (1 − lr · weight_decay)                              decay last
struct AdamW {
  static constexpr const char* name = "adamw";
  struct Options {
    double lr = 1e-3, beta1 = 0.9, beta2 = 0.999, eps = 1e-8, weight_decay = 0.01;
    Decay decay = Decay::first;
    bool amsgrad = false;
  };
  using State = Adam::State;

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
    f("decay", o.decay);
    f("amsgrad", o.amsgrad);
  }
  /// f(field, tensor, whether it holds something after state.step steps).
  template <class F>
  static void visit_state(State& s, const Options& o, F f) {
    Adam::visit_state(s, o, f);
  }
};

}  // namespace tapestry
