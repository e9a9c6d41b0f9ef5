// Gated linear units: activation(gate) · up, fused, forward and backward.
// Not here: the projections around it (nn/feed_forward.h). Next: glu.cpp.
#pragma once

#include <cstdint>

#include "../../autograd/dtype.h"
#include "rows.h"

namespace tapestry::kernels {

/// SwiGLU, GEGLU (exact and tanh), ReGLU and the original GLU; Shazeer 2020.
enum class Gate { silu, gelu, gelu_tanh, relu, sigmoid };

/// y = activation(gate) · up over rows of d, so that gate and up may be two halves of one tensor. y may be either. T:
/// float, double, bf16.
template <class T>
void glu_forward(Gate activation, int64_t rows, int64_t d, Rows<const T> gate, Rows<const T> up, Rows<T> y);

/// dgate = g · up · activation'(gate) and dup = g · activation(gate) in one pass. An output without data is not
/// computed; dgate and dup may be g, gate or up.
template <class T>
void glu_backward(Gate activation, int64_t rows, int64_t d, Rows<const T> gate, Rows<const T> up, Rows<const T> g,
                  Rows<T> dgate, Rows<T> dup);

}  // namespace tapestry::kernels
