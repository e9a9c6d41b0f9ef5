// distance.cpp: distance.h, one row of the result after the other. Next: ../distance.cpp.
#include "distance.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "../../autograd/parallel.h"

namespace tapestry::kernels {
namespace {

// Sums run in this many lanes, so that a compiler may use vectors without changing an order of additions.
constexpr int64_t lanes = 16;

/// Σ f(a[k] − b[k]).
template <class T, class F>
T lane_sum(int64_t d, const T* a, const T* b, F&& f) {
  T part[lanes] = {};
  int64_t k = 0;
  for (; k + lanes <= d; k += lanes)
    for (int64_t l = 0; l < lanes; ++l) part[l] += f(a[k + l] - b[k + l]);
  for (int64_t l = 0; k < d; ++k, ++l) part[l] += f(a[k] - b[k]);
  for (int64_t half = lanes / 2; half > 0; half /= 2)
    for (int64_t l = 0; l < half; ++l) part[l] += part[l + half];
  return part[0];
}

/// √Σ (a − b)². Where the squares leave the normal range they are taken of differences divided by the largest.
template <class T>
T euclidean(int64_t d, const T* a, const T* b) {
  const T sum = lane_sum(d, a, b, [](T x) { return x * x; });
  constexpr T tiny = std::numeric_limits<T>::min() / std::numeric_limits<T>::epsilon();
  if (sum >= tiny && sum <= std::numeric_limits<T>::max()) return std::sqrt(sum);
  T largest = 0;
  for (int64_t k = 0; k < d; ++k) {
    const T x = std::abs(a[k] - b[k]);
    if (!(x <= largest)) largest = x;
    if (x != x) return x;
  }
  if (largest == 0 || std::isinf(largest)) return largest;
  return largest * std::sqrt(lane_sum(d, a, b, [&](T x) { return (x / largest) * (x / largest); }));
}

template <class F>
void for_rows(RowPairs size, F&& f) {
  const int64_t work = std::max<int64_t>(1, size.m * size.d);
  parallel_for(size.count * size.n, std::max<int64_t>(1, 32768 / work), [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) f(row / size.n, row % size.n);
  });
}

}  // namespace

template <class T>
void cdist(RowPairs size, int p, const T* a, const T* b, T* y) {
  for_rows(size, [&](int64_t batch, int64_t i) {
    const int64_t row = batch * size.n + i, d = size.d;
    for (int64_t j = 0; j < size.m; ++j) {
      const T *from = a + row * d, *to = b + (batch * size.m + j) * d;
      y[row * size.m + j] = p == 2 ? euclidean(d, from, to) : lane_sum(d, from, to, [](T x) { return std::abs(x); });
    }
  });
}

template <class T>
void cdist_backward(RowPairs size, int p, const T* a, const T* b, const T* y, const T* g, int64_t step_i,
                    int64_t step_j, T* da) {
  for_rows(size, [&](int64_t batch, int64_t i) {
    const int64_t row = batch * size.n + i, d = size.d;
    const T* from = a + row * d;
    T* to = da + row * d;
    std::fill(to, to + d, T(0));
    for (int64_t j = 0; j < size.m; ++j) {
      const T* other = b + (batch * size.m + j) * d;
      const int64_t at = batch * size.n * size.m + i * step_i + j * step_j;
      const T upstream = g[at], factor = upstream / y[at];
      if (y[at] == 0 || upstream == 0) continue;
      if (p == 1)
        for (int64_t k = 0; k < d; ++k) to[k] += from[k] > other[k] ? upstream : from[k] < other[k] ? -upstream : T(0);
      else if (std::isfinite(factor))
        for (int64_t k = 0; k < d; ++k) to[k] += factor * (from[k] - other[k]);
      else
        for (int64_t k = 0; k < d; ++k) to[k] += upstream * ((from[k] - other[k]) / y[at]);
    }
  });
}

#define TAPESTRY_DISTANCE(T)                                     \
  template void cdist<T>(RowPairs, int, const T*, const T*, T*); \
  template void cdist_backward<T>(RowPairs, int, const T*, const T*, const T*, const T*, int64_t, int64_t, T*);
TAPESTRY_DISTANCE(float)
TAPESTRY_DISTANCE(double)
#undef TAPESTRY_DISTANCE

}  // namespace tapestry::kernels
