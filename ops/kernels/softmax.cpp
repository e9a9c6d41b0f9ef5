// softmax.cpp: softmax.h, once for lines that are contiguous and once for lines side by side, a register of them at a
// time.
// Next: cross_entropy.cpp.
#include "softmax.h"

#include <cmath>

#include "../../autograd/parallel.h"
#include "lanes_memory.h"
#include "scratch.h"

namespace tapestry::kernels {
namespace {

struct RowTag;

template <class C>
constexpr C minus_infinity = -std::numeric_limits<C>::infinity();

// ---- Contiguous lines ----------------------------------------------------------------------------------------------

template <bool log, class T, class C = compute_t<T>>
void forward_row(int64_t n, const T* x, T* y) {
  const Lanes<C> most(max_lanes<C>(n, [&](int64_t j, int64_t count) { return load(x + j, count, minus_infinity<C>); }));
  if constexpr (log) {
    const double sum =
        sum_lanes<C>(n, [&](int64_t j, int64_t count) { return exp(load(x + j, count, minus_infinity<C>) - most); });
    const Lanes<C> log_sum(static_cast<C>(std::log(sum)));
    for_lanes<C>(n, [&](int64_t j, int64_t count) { store(load(x + j, count) - most - log_sum, y + j, count); });
  } else {
    C* e = nullptr;  // bf16 keeps the exponentials wide, so that they are rounded once
    if constexpr (std::is_same_v<T, C>)
      e = y;
    else
      e = scratch<C, RowTag>(n);
    const double sum = sum_lanes<C>(n, [&](int64_t j, int64_t count) {
      const Lanes<C> v = exp(load(x + j, count, minus_infinity<C>) - most);
      store(v, e + j, count);
      return v;
    });
    const Lanes<C> scale(static_cast<C>(1 / sum));
    for_lanes<C>(n, [&](int64_t j, int64_t count) { store(load(e + j, count) * scale, y + j, count); });
  }
}

template <bool log, class T, class C = compute_t<T>>
void backward_row(int64_t n, const T* y, const T* g, T* dx) {
  const Lanes<C> sum(static_cast<C>(sum_lanes<C>(n, [&](int64_t j, int64_t count) {
    const Lanes<C> up = load(g + j, count);
    return log ? up : up * load(y + j, count);
  })));
  for_lanes<C>(n, [&](int64_t j, int64_t count) {
    const Lanes<C> up = load(g + j, count), out = load(y + j, count);
    store(log ? up - exp(out) * sum : out * (up - sum), dx + j, count);
  });
}

// ---- Lines side by side: element k of lane i is x[k * inner + i] ---------------------------------------------------

// Σ_k term(k), in blocks of 64 whose sums are added.
template <class C, class F>
Lanes<C> sum_down(int64_t n, F term) {
  Lanes<C> total(C(0));
  for (int64_t begin = 0; begin < n; begin += 64) {
    Lanes<C> part(C(0));
    for (int64_t k = begin; k < std::min(begin + 64, n); ++k) part += term(k);
    total += part;
  }
  return total;
}

template <bool log, class T, class C = compute_t<T>>
void forward_lanes(int64_t n, int64_t inner, int64_t count, const T* x, T* y) {
  const auto at = [&](int64_t k) { return load(x + k * inner, count); };
  Lanes<C> most(minus_infinity<C>);
  for (int64_t k = 0; k < n; ++k) most = maximum(most, at(k));
  const Lanes<C> sum = sum_down<C>(n, [&](int64_t k) { return exp(at(k) - most); });
  if constexpr (log) {
    const Lanes<C> log_sum = tapestry::log(sum);
    for (int64_t k = 0; k < n; ++k) store(at(k) - most - log_sum, y + k * inner, count);
  } else {
    const Lanes<C> scale = reciprocal(sum);
    for (int64_t k = 0; k < n; ++k) store(exp(at(k) - most) * scale, y + k * inner, count);
  }
}

template <bool log, class T, class C = compute_t<T>>
void backward_lanes(int64_t n, int64_t inner, int64_t count, const T* y, const T* g, T* dx) {
  const auto out = [&](int64_t k) { return load(y + k * inner, count); };
  const auto up = [&](int64_t k) { return load(g + k * inner, count); };
  const Lanes<C> sum = sum_down<C>(n, [&](int64_t k) { return log ? up(k) : up(k) * out(k); });
  for (int64_t k = 0; k < n; ++k)
    store(log ? up(k) - exp(out(k)) * sum : out(k) * (up(k) - sum), dx + k * inner, count);
}

// ---- Pieces: row(offset) for each contiguous line, lanes(offset, count) for each register of lines side by side -----

template <class C, class Row, class Side>
void each_line(int64_t outer, int64_t n, int64_t inner, Row row, Side lanes) {
  if (n == 0 || inner == 0) return;
  if (inner == 1)
    return parallel_for(outer, std::max<int64_t>(1, 4096 / n), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) row(i * n);
    });
  constexpr int64_t size = Lanes<C>::size;
  const int64_t registers = (inner + size - 1) / size;
  parallel_for(outer * registers, std::max<int64_t>(1, 4096 / (n * size)), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t lane = i % registers * size;
      lanes(i / registers * n * inner + lane, std::min(size, inner - lane));
    }
  });
}

template <bool log, class T>
void forward(int64_t outer, int64_t n, int64_t inner, const T* x, T* y) {
  each_line<compute_t<T>>(
      outer, n, inner, [&](int64_t at) { forward_row<log>(n, x + at, y + at); },
      [&](int64_t at, int64_t count) { forward_lanes<log>(n, inner, count, x + at, y + at); });
}

template <bool log, class T>
void backward(int64_t outer, int64_t n, int64_t inner, const T* y, const T* g, T* dx) {
  each_line<compute_t<T>>(
      outer, n, inner, [&](int64_t at) { backward_row<log>(n, y + at, g + at, dx + at); },
      [&](int64_t at, int64_t count) { backward_lanes<log>(n, inner, count, y + at, g + at, dx + at); });
}

}  // namespace

template <class T>
void softmax_forward(int64_t outer, int64_t n, int64_t inner, const T* x, T* y) {
  forward<false>(outer, n, inner, x, y);
}
template <class T>
void log_softmax_forward(int64_t outer, int64_t n, int64_t inner, const T* x, T* y) {
  forward<true>(outer, n, inner, x, y);
}
template <class T>
void softmax_backward(int64_t outer, int64_t n, int64_t inner, const T* y, const T* g, T* dx) {
  backward<false>(outer, n, inner, y, g, dx);
}
template <class T>
void log_softmax_backward(int64_t outer, int64_t n, int64_t inner, const T* y, const T* g, T* dx) {
  backward<true>(outer, n, inner, y, g, dx);
}

#define TAPESTRY_SOFTMAX(T)                                                             \
  template void softmax_forward<T>(int64_t, int64_t, int64_t, const T*, T*);            \
  template void log_softmax_forward<T>(int64_t, int64_t, int64_t, const T*, T*);        \
  template void softmax_backward<T>(int64_t, int64_t, int64_t, const T*, const T*, T*); \
  template void log_softmax_backward<T>(int64_t, int64_t, int64_t, const T*, const T*, T*);
TAPESTRY_SOFTMAX(float)
TAPESTRY_SOFTMAX(double)
TAPESTRY_SOFTMAX(bf16)
#undef TAPESTRY_SOFTMAX

}  // namespace tapestry::kernels
