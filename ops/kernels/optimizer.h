// The inner loops of optimizers: one pass over parameter, gradient and state, and the norms and scalings of gradients.
// Not here: which rule is called when, step counts, options (../../optim/). Next: optimizer.cpp.
#pragma once

#include <cstdint>

#include "../../autograd/dtype.h"

namespace tapestry::kernels {

// T is float, double or bf16; state is kept in T's compute type. All arrays are dense. Only additions, multiplications, divisions and
// roots are used, element by element, so that bits depend neither on threads nor on the instruction set.

/// The numbers of one Adam step, the same for all elements.
struct AdamStep {
  double grad_scale;      ///< the gradient counts as g · grad_scale
  double l2;              ///< weight decay inside the gradient: g + l2 · p
  double beta1, beta2;    ///< decay of the two moments
  double step_size;       ///< lr / (1 − β₁ᵗ)
  double inv_sqrt_bias2;  ///< 1 / √(1 − β₂ᵗ)
  double eps;
  double keep_before, keep_after;  ///< decoupled decay: p is multiplied by them before and after the update
};

/// m ← β₁ m + (1 − β₁) g; v ← β₂ v + (1 − β₂) g²; p ← (p · keep_before − step_size · m / (√v · inv_sqrt_bias2 + eps)) · keep_after.
/// With v_max (may be null): v_max ← max(v_max, v), and √v_max in place of √v. An element whose denominator is 0 is not moved.
template <class T>
void adam_step(int64_t n, T* p, const T* g, compute_t<T>* m, compute_t<T>* v, compute_t<T>* v_max, const AdamStep& s);

/// The numbers of one SGD step.
struct SgdStep {
  double grad_scale, l2;  ///< g ← g · grad_scale + l2 · p
  double lr;
  double momentum, dampening;
  bool nesterov;
  bool first;  ///< the buffer holds nothing yet: it becomes g
};

/// buffer ← momentum · buffer + (1 − dampening) · g; p ← p − lr · d with d = buffer, or g + momentum · buffer (nesterov), or g without
/// a buffer (null).
template <class T>
void sgd_step(int64_t n, T* p, const T* g, compute_t<T>* buffer, const SgdStep& s);

/// Σ (x · scale)² in double, over pieces fixed by n and then in pairs: its error does not grow with n, its bits ignore threads.
template <class T>
double sum_of_squares(int64_t n, const T* x, double scale);

/// The largest |x|; NaN if there is one; 0 for n = 0.
template <class T>
double max_abs(int64_t n, const T* x);

/// x ← x · factor.
template <class T>
void scale(int64_t n, T* x, double factor);

/// x ← min(max(x, −bound), bound); NaN stays NaN.
template <class T>
void clamp_abs(int64_t n, T* x, double bound);

}  // namespace tapestry::kernels
