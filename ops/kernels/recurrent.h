// Recurrent layers through time: a product with the last state and a fused gate loop a step, forward and backward.
// Not here: the products that take all steps at once, x w_ihᵀ and the weights' gradients (../recurrent.cpp).
// Next: recurrent.cpp.
#pragma once

#include <cstdint>

namespace tapestry::kernels {

/// Of a layer run over a sequence. All arrays are row-major: states (B, H), their sequences (T, B, H), sequences of
/// gates (T, B, gates·H).
struct SequenceSizes {
  int64_t steps, batch, hidden;
};

// T: float, double. gy, the gradient of the sequence of states, may be null. dh and dc hold the gradients of the last
// state on entry and those of the first on return. Cut by shape alone: the bits do not depend on the threads.

/// hₜ = tanh(sₜ + hₜ₋₁ w_hhᵀ), or relu of it. `h` holds s = x w_ihᵀ + b on entry, the states on return.
template <class T>
void rnn_forward(SequenceSizes n, bool relu, const T* w_hh, const T* h0, T* h);
/// dsums: gradient of s.
template <class T>
void rnn_backward(SequenceSizes n, bool relu, const T* w_hh, const T* h, const T* gy, T* dh, T* dsums);

/// i, f, o = σ(…), g = tanh(…) of sₜ + hₜ₋₁ w_hhᵀ; cₜ = f cₜ₋₁ + i g; hₜ = o tanh(cₜ). `gates` holds s on entry, the gates
/// i, f, g, o on return.
template <class T>
void lstm_forward(SequenceSizes n, const T* w_hh, const T* h0, const T* c0, T* gates, T* h, T* c);
template <class T>
void lstm_backward(SequenceSizes n, const T* w_hh, const T* c0, const T* gates, const T* c, const T* gy, T* dh, T* dc,
                   T* dsums);

/// With u = hₜ₋₁ w_hhᵀ + b_hh: r, z = σ(s + u), n = tanh(s + r u), hₜ = n + z (hₜ₋₁ − n). `gates` holds s on entry, the
/// gates r, z, n on return; `inner` (T, B, H) receives n's u. b_hh may be null.
template <class T>
void gru_forward(SequenceSizes n, const T* w_hh, const T* b_hh, const T* h0, T* gates, T* inner, T* h);
/// dsums: gradient of s; dinner: of u, which differs in n's third.
template <class T>
void gru_backward(SequenceSizes n, const T* w_hh, const T* h0, const T* gates, const T* inner, const T* h, const T* gy,
                  T* dh, T* dsums, T* dinner);

}  // namespace tapestry::kernels
