// Scaled dot-product attention, forward and backward, without storing the probabilities of more than a block of
// queries.
// Not here: broadcasting of masks, dropout, the differentiable definition (../attention.cpp). Next: attention.cpp.
#pragma once

#include <cstdint>

#include "../../autograd/dtype.h"
#include "heads.h"

namespace tapestry::kernels {

/// True = may attend; element (b, h, i, j) is data[b * batch + h * head + i * row + j * col], strides 0 where it is
/// broadcast. No data: no mask.
struct AttentionMask {
  const bool* data = nullptr;
  int64_t batch = 0, head = 0, row = 0, col = 0;
};

struct AttentionSize {
  int64_t batch, heads, kv_heads;  ///< query head h reads key and value head h / (heads / kv_heads)
  int64_t q_len, kv_len;           ///< Tq, Tk
  int64_t head_dim, value_dim;     ///< width of q and k; of v and o
  double scale;                    ///< usually 1/√head_dim
  bool causal;                     ///< query i sees keys j <= i + (Tk − Tq)
  int64_t window = 0;              ///< W > 0, with causal: only the last W of them
  double soft_cap = 0;             ///< c > 0: scores s become c·tanh(s/c) before they are masked
};

/// o = softmax(scale · q kᵀ, masked) v (Vaswani et al. 2017); lse (batch, heads, Tq), dense: log Σ exp of a row's
/// visible scores. A row that may attend to nothing gives o = 0 and lse = −inf. Keys no query of a block of 64 may see
/// for causality and window are skipped, so a window costs (W + 64)·Tq. T: float, double, bf16.
template <class T>
void attention_forward(const AttentionSize& size, HeadRows<const T> q, HeadRows<const T> k, HeadRows<const T> v,
                       const AttentionMask& mask, HeadRows<T> o, compute_t<T>* lse);

/// dq, dk, dv from g = dL/do and lse, the probabilities p recomputed; ds = scale · p · (g vᵀ − Σ_j p g vᵀ), times
/// 1 − (s/c)² for a capped score s, dq = ds k, dk = dsᵀ q, dv = pᵀ g (Dao et al. 2022). Outputs without data are not computed. A row that may attend to nothing
/// contributes 0. All of a key head's gradient is summed by one piece of work, so its bits do not depend on the
/// threads.
template <class T>
void attention_backward(const AttentionSize& size, HeadRows<const T> q, HeadRows<const T> k, HeadRows<const T> v,
                        const AttentionMask& mask, const compute_t<T>* lse, HeadRows<const T> g, HeadRows<T> dq,
                        HeadRows<T> dk, HeadRows<T> dv);

}  // namespace tapestry::kernels
