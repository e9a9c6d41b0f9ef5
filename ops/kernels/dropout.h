// Inverted dropout whose mask is a pure function of a ticket and never stored.
// Not here: drawing the ticket (ops/dropout.cpp). Next: dropout.cpp.
#pragma once

#include <cstdint>

#include "../../autograd/dtype.h"
#include "../../autograd/random.h"

namespace tapestry::kernels {

/// y[i] = x[i] / (1 − p) where uniform_f32(ticket.word(i)) >= p, else 0; the backward pass is the same on g. n dense
/// elements, y may be x; p in [0, 1], p = 1 gives zeros. T: float, double, bf16.
template <class T>
void dropout(int64_t n, double p, const Ticket& ticket, const T* x, T* y);

/// The factors dropout() multiplies by: 0 or 1 / (1 − p), for a definition in plain operations.
template <class T>
void dropout_mask(int64_t n, double p, const Ticket& ticket, T* mask);

/// words[i] = ticket.word(first + i) for i in [0, n); first is a multiple of 4.
void random_words(const Ticket& ticket, uint64_t first, int64_t n, uint32_t* words);

}  // namespace tapestry::kernels
