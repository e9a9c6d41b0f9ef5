// Stochastic gradient descent with momentum.
// Not here: groups, skipping, saving (optimizer.h). Next: adam.h.
#pragma once

#include "../autograd/tensor.h"

namespace tapestry {

/// Stochastic gradient descent (Robbins & Monro 1951), with momentum (Polyak 1964) or Nesterov's (Sutskever et al. 2013), as PyTorch does it:
///
///     g ← g + weight_decay · p
///     b ← g at the first step, momentum · b + (1 − dampening) · g after it
///     p ← p − lr · (g + momentum · b   if nesterov, else b)
///
/// The rate multiplies the momentum, not its sum: a change of lr acts at once. Without momentum p ← p − lr · g and nothing is kept.
struct SGD {
  static constexpr const char* name = "sgd";
  struct Options {
    double lr = 1e-3, momentum = 0, dampening = 0, weight_decay = 0;
    bool nesterov = false;
  };
  struct State {
    int64_t step = 0;
    Tensor momentum_buffer;
  };

  /// ValueError for a negative or non-finite option, and for nesterov without momentum or with dampening.
  static void check(const Options& options);
  /// One step of one parameter, written in place; the gradient counts as grad · grad_scale. bf16 parameters keep f32 state.
  static void update(const Tensor& param, const Tensor& grad, State& state, const Options& options,
                     double grad_scale = 1);

  /// f(field, value) for every option.
  template <class O, class F>
  static void visit_options(O& o, F f) {
    f("lr", o.lr);
    f("momentum", o.momentum);
    f("dampening", o.dampening);
    f("weight_decay", o.weight_decay);
    f("nesterov", o.nesterov);
  }
  /// f(field, tensor, whether it holds something after state.step steps).
  template <class F>
  static void visit_state(State& s, const Options& o, F f) {
    f("momentum_buffer", s.momentum_buffer, s.step > 0 && o.momentum != 0);
  }
};

}  // namespace tapestry
