// How rows in memory become Lanes and back: whole registers, tails padded with a value, bf16 widened and rounded; and
// sums of a row.
// Not the mathematics (formula_lanes.h). Next: norm.cpp, its simplest user.
#pragma once

#include <algorithm>
#include <cstdint>

#include "../../autograd/dtype.h"
#include "formula_lanes.h"

namespace tapestry::kernels {

/// The register a kernel on T computes with.
template <class T>
using LanesOf = Lanes<compute_t<T>>;

/// The lanes of p[0 .. count) with count in 1 .. size; the lanes past it hold `padding`.
template <class T>
LanesOf<T> load(const T* p, int64_t count, compute_t<T> padding = 0) {
  using C = compute_t<T>;
  constexpr int64_t n = Lanes<C>::size;
  if constexpr (std::is_same_v<T, C>)
    if (count == n) return Lanes<C>::load(p);
  alignas(64) C buffer[n];
  if (count == n) {
    for (int64_t i = 0; i < n; ++i) buffer[i] = convert<C>(p[i]);
  } else {
    for (int64_t i = 0; i < n; ++i) buffer[i] = padding;
    for (int64_t i = 0; i < count; ++i) buffer[i] = convert<C>(p[i]);
  }
  return Lanes<C>::load_aligned(buffer);
}

/// The first `count` lanes to p.
template <class T>
void store(const LanesOf<T>& x, T* p, int64_t count) {
  using C = compute_t<T>;
  constexpr int64_t n = Lanes<C>::size;
  if constexpr (std::is_same_v<T, C>)
    if (count == n) return x.store(p);
  alignas(64) C buffer[n];
  x.store_aligned(buffer);
  if (count == n)
    for (int64_t i = 0; i < n; ++i) p[i] = convert<T>(buffer[i]);
  else
    for (int64_t i = 0; i < count; ++i) p[i] = convert<T>(buffer[i]);
}

/// f(j, count) for the registers of a row of n: j = 0, size, 2 size, …, count < size only in the last.
template <class C, class F>
void for_lanes(int64_t n, F f) {
  constexpr int64_t size = Lanes<C>::size;
  int64_t j = 0;
  for (; j + size <= n; j += size) f(j, size);
  if (j < n) f(j, n - j);
}

/// The lanes of x added in pairs, in double.
template <class C>
double lane_sum(const Lanes<C>& x) {
  constexpr int64_t n = Lanes<C>::size;
  alignas(64) C lanes[n];
  double wide[n];
  x.store_aligned(lanes);
  for (int64_t i = 0; i < n; ++i) wide[i] = static_cast<double>(lanes[i]);
  for (int64_t width = n / 2; width > 0; width /= 2)
    for (int64_t i = 0; i < width; ++i) wide[i] += wide[i + width];
  return wide[0];
}

/// The largest lane; NaN if there is one.
template <class C>
C lane_max(const Lanes<C>& x) {
  alignas(64) C lanes[Lanes<C>::size];
  x.store_aligned(lanes);
  C most = lanes[0];
  for (const C lane : lanes) most = maximum(most, lane);
  return most;
}

/// The sum over a row of n of term(j, count), a register whose lanes past `count` are 0. Registers are added in C over
/// blocks of 64, blocks in double: the error does not grow with n.
template <class C, class F>
double sum_lanes(int64_t n, F term) {
  constexpr int64_t size = Lanes<C>::size, block = 64 * size;
  double total = 0;
  for (int64_t begin = 0; begin < n; begin += block) {
    const int64_t end = std::min(begin + block, n);
    const Lanes<C> zero(C(0));
    Lanes<C> s0 = zero, s1 = zero, s2 = zero, s3 = zero;
    int64_t j = begin;
    for (; j + 4 * size <= end; j += 4 * size) {
      s0 += term(j, size);
      s1 += term(j + size, size);
      s2 += term(j + 2 * size, size);
      s3 += term(j + 3 * size, size);
    }
    for (; j + size <= end; j += size) s0 += term(j, size);
    if (j < end) s1 += term(j, end - j);
    total += lane_sum((s0 + s1) + (s2 + s3));
  }
  return total;
}

/// The largest of term(j, count) over a row of n, -inf for n = 0; pad with -inf. NaN if there is one.
template <class C, class F>
C max_lanes(int64_t n, F term) {
  constexpr int64_t size = Lanes<C>::size;
  const Lanes<C> low(-std::numeric_limits<C>::infinity());
  Lanes<C> m0 = low, m1 = low, m2 = low, m3 = low;
  int64_t j = 0;
  for (; j + 4 * size <= n; j += 4 * size) {
    m0 = maximum(m0, term(j, size));
    m1 = maximum(m1, term(j + size, size));
    m2 = maximum(m2, term(j + 2 * size, size));
    m3 = maximum(m3, term(j + 3 * size, size));
  }
  for (; j + size <= n; j += size) m0 = maximum(m0, term(j, size));
  if (j < n) m1 = maximum(m1, term(j, n - j));
  return lane_max(maximum(maximum(m0, m1), maximum(m2, m3)));
}

}  // namespace tapestry::kernels
