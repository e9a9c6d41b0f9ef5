// rope.cpp: rope.h, sixteen pairs at a time through local arrays, so that the compiler vectorises both layouts and y
// may be x.
// Next: glu.cpp.
#include "rope.h"

#include <algorithm>
#include <cmath>

#include "../../autograd/parallel.h"

namespace tapestry::kernels {
namespace {

constexpr int64_t chunk = 16;

// Pairs [begin, begin + n) of a row, n <= chunk; inlined with a constant n where it is whole.
template <bool adjacent, class T, class C = compute_t<T>>
inline void rotate(int64_t n, int64_t pairs, int64_t begin, const T* x, const C* cos, const C* sin, C sign, T* y) {
  constexpr int64_t step = adjacent ? 2 : 1;
  const int64_t apart = adjacent ? 1 : pairs;
  const T* in = x + step * begin;
  T* out = y + step * begin;
  C a[chunk], b[chunk], u[chunk], v[chunk];
  for (int64_t i = 0; i < n; ++i) a[i] = convert<C>(in[step * i]);
  for (int64_t i = 0; i < n; ++i) b[i] = convert<C>(in[step * i + apart]);
  for (int64_t i = 0; i < n; ++i) u[i] = a[i] * cos[begin + i] - b[i] * (sign * sin[begin + i]);
  for (int64_t i = 0; i < n; ++i) v[i] = a[i] * (sign * sin[begin + i]) + b[i] * cos[begin + i];
  if constexpr (adjacent) {
    for (int64_t i = 0; i < n; ++i) out[2 * i] = convert<T>(u[i]), out[2 * i + 1] = convert<T>(v[i]);
  } else {
    for (int64_t i = 0; i < n; ++i) out[i] = convert<T>(u[i]);
    for (int64_t i = 0; i < n; ++i) out[i + apart] = convert<T>(v[i]);
  }
}

template <bool adjacent, class T, class C = compute_t<T>>
void rotate_row(const RopeSize& s, const T* x, const C* cos, const C* sin, C sign, T* y) {
  int64_t begin = 0;
  for (; begin + chunk <= s.pairs; begin += chunk) rotate<adjacent>(chunk, s.pairs, begin, x, cos, sin, sign, y);
  if (begin < s.pairs) rotate<adjacent>(s.pairs - begin, s.pairs, begin, x, cos, sin, sign, y);
  if (x != y) std::copy(x + 2 * s.pairs, x + s.width, y + 2 * s.pairs);
}

}  // namespace

template <class T>
void rope_table(int64_t positions, int64_t pairs, const double* frequencies, T* cos, T* sin, double factor) {
  parallel_for(positions, 64, [&](int64_t begin, int64_t end) {
    for (int64_t p = begin; p < end; ++p)
      for (int64_t i = 0; i < pairs; ++i) {
        const double angle = static_cast<double>(p) * frequencies[i];
        cos[p * pairs + i] = static_cast<T>(factor * std::cos(angle));
        sin[p * pairs + i] = static_cast<T>(factor * std::sin(angle));
      }
  });
}

template <class T>
void rope(const RopeSize& s, HeadRows<const T> x, const compute_t<T>* cos, const compute_t<T>* sin,
          const int64_t* positions, int64_t positions_batch, bool inverse, HeadRows<T> y) {
  const compute_t<T> sign = inverse ? -1 : 1;
  const int64_t rows = s.batch * s.len;
  const int64_t grain = std::max<int64_t>(1, 16384 / std::max<int64_t>(s.heads * s.width, 1));
  parallel_for(rows, grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t b = i / s.len, t = i % s.len, at = (positions ? positions[b * positions_batch + t] : t) * s.pairs;
      for (int64_t h = 0; h < s.heads; ++h) {
        const T* from = x.at(b, h, t);
        T* to = y.at(b, h, t);
        if (s.layout == RopePairs::adjacent)
          rotate_row<true>(s, from, cos + at, sin + at, sign, to);
        else
          rotate_row<false>(s, from, cos + at, sin + at, sign, to);
      }
    }
  });
}

template void rope_table<float>(int64_t, int64_t, const double*, float*, float*, double);
template void rope_table<double>(int64_t, int64_t, const double*, double*, double*, double);
#define TAPESTRY_ROPE(T)                                                                                              \
  template void rope<T>(const RopeSize&, HeadRows<const T>, const compute_t<T>*, const compute_t<T>*, const int64_t*, \
                        int64_t, bool, HeadRows<T>);
TAPESTRY_ROPE(float)
TAPESTRY_ROPE(double)
TAPESTRY_ROPE(bf16)
#undef TAPESTRY_ROPE

}  // namespace tapestry::kernels
