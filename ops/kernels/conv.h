// The three maps of a convolution y = x ⋆ weight, each linear in both of its operands, and so each other's derivatives:
// y from x and weight, the gradient of x from g and weight (a transposed convolution), that of weight from x and g.
// Not here: which sizes fit (ops/conv.cpp). Next: conv.cpp.
#pragma once

#include "im2col.h"

namespace tapestry::kernels {

// T: float, double, bf16 (products summed in f32, rounded once). Results do not depend on the thread count.

/// y = x ⋆ weight + bias; bias (groups·out) may be null.
template <class T>
void conv_forward(const ConvShape& s, const T* x, const T* weight, const T* bias, T* y);

/// dx[n, c, …] = Σ of weight · g over the places of y that read it, + bias[c]; bias (groups·in) may be null.
template <class T>
void conv_input_gradient(const ConvShape& s, const T* g, const T* weight, const T* bias, T* dx);

/// dweight[o, c, k, l] = Σ over n, i, j of g[n, o, i, j] · x[n, c, …].
template <class T>
void conv_weight_gradient(const ConvShape& s, const T* x, const T* g, T* dweight);

}  // namespace tapestry::kernels
