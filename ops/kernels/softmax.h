// softmax and log_softmax along one dim, forward and backward.
// Not here: masks (attention.h) and the loss (cross_entropy.h). Next: softmax.cpp.
#pragma once

#include <cstdint>

#include "../../autograd/dtype.h"

namespace tapestry::kernels {

/// All tensors are dense (outer, n, inner); the dim of n elements is normalised. y may be x. T: float, double, bf16.
///
/// y = exp(x − max) / Σ exp(x − max). A line of −inf alone is NaN, as is one with NaN or +inf.
template <class T>
void softmax_forward(int64_t outer, int64_t n, int64_t inner, const T* x, T* y);
/// y = x − max − log Σ exp(x − max).
template <class T>
void log_softmax_forward(int64_t outer, int64_t n, int64_t inner, const T* x, T* y);

/// dx = y · (g − Σ g y) from g = dL/dy. dx may be g or y.
template <class T>
void softmax_backward(int64_t outer, int64_t n, int64_t inner, const T* y, const T* g, T* dx);
/// dx = g − exp(y) · Σ g.
template <class T>
void log_softmax_backward(int64_t outer, int64_t n, int64_t inner, const T* y, const T* g, T* dx);

}  // namespace tapestry::kernels
