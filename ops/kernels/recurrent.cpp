// recurrent.cpp: recurrent.h as loops over time on gemm() and registers.
// Not a search for parallelism between steps or layers: a step is cut over the batch and the gates.
// Next: ../recurrent.cpp.
#include "recurrent.h"

#include <algorithm>

#include "../../autograd/parallel.h"
#include "gemm.h"
#include "lanes_memory.h"
#include "scratch.h"

namespace tapestry::kernels {
namespace {

// f(row, column, count) for every register of a state (B, H).
template <class T, class F>
void each_register(SequenceSizes n, F f) {
  parallel_for(n.batch, std::max<int64_t>(1, 2048 / std::max<int64_t>(n.hidden, 1)), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) for_lanes<T>(n.hidden, [&](int64_t j, int64_t count) { f(i, j, count); });
  });
}

// sums (B, width) = h (B, H) w_hhᵀ + beta · sums.
template <class T>
void add_recurrent(SequenceSizes n, int64_t width, const T* h, const T* w_hh, double beta, T* sums) {
  gemm<T, T>(n.batch, width, n.hidden, 1, {h, n.hidden, 1}, {w_hh, 1, n.hidden}, beta, sums, width);
}
// dh (B, H) = dsums (B, width) w_hh + beta · dh.
template <class T>
void pull_back(SequenceSizes n, int64_t width, const T* dsums, const T* w_hh, double beta, T* dh) {
  gemm<T, T>(n.batch, n.hidden, width, 1, {dsums, width, 1}, {w_hh, n.hidden, 1}, beta, dh, n.hidden);
}

// What arrives at a state: from the steps after it and from the sequence's own gradient.
template <class T>
Lanes<T> arriving(const T* dh, const T* gy, int64_t at, int64_t count) {
  const Lanes<T> later = load(dh + at, count);
  return gy ? later + load(gy + at, count) : later;
}

template <class T>
const T* at_step(const T* sequence, int64_t step, int64_t size) {
  return sequence ? sequence + step * size : nullptr;
}

}  // namespace

template <class T>
void rnn_forward(SequenceSizes n, bool relu, const T* w_hh, const T* h0, T* h) {
  const int64_t size = n.batch * n.hidden;
  for (int64_t t = 0; t < n.steps; ++t) {
    T* const now = h + t * size;
    add_recurrent(n, n.hidden, t == 0 ? h0 : now - size, w_hh, 1, now);
    each_register<T>(n, [&](int64_t i, int64_t j, int64_t count) {
      T* const p = now + i * n.hidden + j;
      const Lanes<T> s = load(p, count), zero(T(0));
      store(relu ? maximum(s, zero) : tanh(s), p, count);
    });
  }
}

template <class T>
void rnn_backward(SequenceSizes n, bool relu, const T* w_hh, const T* h, const T* gy, T* dh, T* dsums) {
  const int64_t size = n.batch * n.hidden;
  for (int64_t t = n.steps - 1; t >= 0; --t) {
    const T *const now = h + t * size, *const g = at_step(gy, t, size);
    T* const ds = dsums + t * size;
    each_register<T>(n, [&](int64_t i, int64_t j, int64_t count) {
      const int64_t at = i * n.hidden + j;
      const Lanes<T> y = load(now + at, count), d = arriving(dh, g, at, count), zero(T(0));
      store(relu ? where(y > zero, d, zero) : d * (Lanes<T>(T(1)) - y * y), ds + at, count);
    });
    pull_back(n, n.hidden, ds, w_hh, 0, dh);
  }
}

template <class T>
void lstm_forward(SequenceSizes n, const T* w_hh, const T* h0, const T* c0, T* gates, T* h, T* c) {
  const int64_t size = n.batch * n.hidden, width = 4 * n.hidden;
  for (int64_t t = 0; t < n.steps; ++t) {
    const T *const h_last = t == 0 ? h0 : h + (t - 1) * size, *const c_last = t == 0 ? c0 : c + (t - 1) * size;
    T *const h_now = h + t * size, *const c_now = c + t * size, *const step = gates + 4 * t * size;
    add_recurrent(n, width, h_last, w_hh, 1, step);
    each_register<T>(n, [&](int64_t row, int64_t j, int64_t count) {
      const int64_t at = row * n.hidden + j;
      T* const p = step + row * width + j;
      const Lanes<T> i = sigmoid(load(p, count)), f = sigmoid(load(p + n.hidden, count));
      const Lanes<T> g = tanh(load(p + 2 * n.hidden, count)), o = sigmoid(load(p + 3 * n.hidden, count));
      const Lanes<T> cell = f * load(c_last + at, count) + i * g;
      store(i, p, count);
      store(f, p + n.hidden, count);
      store(g, p + 2 * n.hidden, count);
      store(o, p + 3 * n.hidden, count);
      store(cell, c_now + at, count);
      store(o * tanh(cell), h_now + at, count);
    });
  }
}

template <class T>
void lstm_backward(SequenceSizes n, const T* w_hh, const T* c0, const T* gates, const T* c, const T* gy, T* dh, T* dc,
                   T* dsums) {
  const int64_t size = n.batch * n.hidden, width = 4 * n.hidden;
  const Lanes<T> one(T(1));
  for (int64_t t = n.steps - 1; t >= 0; --t) {
    const T *const c_last = t == 0 ? c0 : c + (t - 1) * size, *const c_now = c + t * size;
    const T *const step = gates + 4 * t * size, *const above = at_step(gy, t, size);
    T* const dstep = dsums + 4 * t * size;
    each_register<T>(n, [&](int64_t row, int64_t j, int64_t count) {
      const int64_t at = row * n.hidden + j;
      const T* const p = step + row * width + j;
      T* const q = dstep + row * width + j;
      const Lanes<T> i = load(p, count), f = load(p + n.hidden, count);
      const Lanes<T> g = load(p + 2 * n.hidden, count), o = load(p + 3 * n.hidden, count);
      const Lanes<T> squashed = tanh(load(c_now + at, count)), d = arriving(dh, above, at, count);
      const Lanes<T> d_cell = load(dc + at, count) + d * o * (one - squashed * squashed);
      store(d_cell * g * i * (one - i), q, count);
      store(d_cell * load(c_last + at, count) * f * (one - f), q + n.hidden, count);
      store(d_cell * i * (one - g * g), q + 2 * n.hidden, count);
      store(d * squashed * o * (one - o), q + 3 * n.hidden, count);
      store(d_cell * f, dc + at, count);
    });
    pull_back(n, width, dstep, w_hh, 0, dh);
  }
}

struct InnerTag;

template <class T>
void gru_forward(SequenceSizes n, const T* w_hh, const T* b_hh, const T* h0, T* gates, T* inner, T* h) {
  const int64_t size = n.batch * n.hidden, width = 3 * n.hidden;
  T* const u = scratch<T, InnerTag>(3 * size);
  for (int64_t t = 0; t < n.steps; ++t) {
    const T* const last = t == 0 ? h0 : h + (t - 1) * size;
    T *const now = h + t * size, *const step = gates + 3 * t * size, *const kept = inner + t * size;
    add_recurrent(n, width, last, w_hh, 0, u);
    each_register<T>(n, [&](int64_t row, int64_t j, int64_t count) {
      const int64_t at = row * n.hidden + j;
      T* const p = step + row * width + j;
      const auto from_last = [&](int64_t gate) {
        const Lanes<T> product = load(u + row * width + gate * n.hidden + j, count);
        return b_hh ? product + load(b_hh + gate * n.hidden + j, count) : product;
      };
      const Lanes<T> r = sigmoid(load(p, count) + from_last(0)), z = sigmoid(load(p + n.hidden, count) + from_last(1));
      const Lanes<T> q = from_last(2), fresh = tanh(load(p + 2 * n.hidden, count) + r * q);
      store(r, p, count);
      store(z, p + n.hidden, count);
      store(fresh, p + 2 * n.hidden, count);
      store(q, kept + at, count);
      store(fresh + z * (load(last + at, count) - fresh), now + at, count);
    });
  }
}

template <class T>
void gru_backward(SequenceSizes n, const T* w_hh, const T* h0, const T* gates, const T* inner, const T* h, const T* gy,
                  T* dh, T* dsums, T* dinner) {
  const int64_t size = n.batch * n.hidden, width = 3 * n.hidden;
  const Lanes<T> one(T(1));
  for (int64_t t = n.steps - 1; t >= 0; --t) {
    const T *const last = t == 0 ? h0 : h + (t - 1) * size, *const kept = inner + t * size;
    const T *const step = gates + 3 * t * size, *const above = at_step(gy, t, size);
    T *const dstep = dsums + 3 * t * size, *const du = dinner + 3 * t * size;
    each_register<T>(n, [&](int64_t row, int64_t j, int64_t count) {
      const int64_t at = row * n.hidden + j, column = row * width + j;
      const T* const p = step + column;
      const Lanes<T> r = load(p, count), z = load(p + n.hidden, count), fresh = load(p + 2 * n.hidden, count);
      const Lanes<T> d = arriving(dh, above, at, count);
      const Lanes<T> d_fresh = d * (one - z) * (one - fresh * fresh);
      const Lanes<T> dr = d_fresh * load(kept + at, count) * r * (one - r);
      const Lanes<T> dz = d * (load(last + at, count) - fresh) * z * (one - z);
      for (T* const q : {dstep + column, du + column}) {
        store(dr, q, count);
        store(dz, q + n.hidden, count);
      }
      store(d_fresh, dstep + column + 2 * n.hidden, count);
      store(d_fresh * r, du + column + 2 * n.hidden, count);
      store(d * z, dh + at, count);
    });
    pull_back(n, width, du, w_hh, 1, dh);
  }
}

#define TAPESTRY_RECURRENT(T)                                                                                  \
  template void rnn_forward<T>(SequenceSizes, bool, const T*, const T*, T*);                                   \
  template void rnn_backward<T>(SequenceSizes, bool, const T*, const T*, const T*, T*, T*);                    \
  template void lstm_forward<T>(SequenceSizes, const T*, const T*, const T*, T*, T*, T*);                      \
  template void lstm_backward<T>(SequenceSizes, const T*, const T*, const T*, const T*, const T*, T*, T*, T*); \
  template void gru_forward<T>(SequenceSizes, const T*, const T*, const T*, T*, T*, T*);                       \
  template void gru_backward<T>(SequenceSizes, const T*, const T*, const T*, const T*, const T*, const T*, T*, T*, T*);
TAPESTRY_RECURRENT(float)
TAPESTRY_RECURRENT(double)
#undef TAPESTRY_RECURRENT

}  // namespace tapestry::kernels
