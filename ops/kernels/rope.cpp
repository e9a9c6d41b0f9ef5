// rope.cpp: rope.h, sixteen pairs at a time through local arrays, so that the compiler vectorises both layouts and y may be x.
// Next: glu.cpp.
#include "rope.h"

#include <algorithm>
#include <cmath>

#include "../../autograd/parallel.h"

namespace tapestry::kernels {
namespace {

template <class T, class C = compute_t<T>>
void rotate_row(const RopeSize& s, const T* x, const C* cos, const C* sin, C sign, T* y) {
  constexpr int64_t chunk = 16;
  const bool adjacent = s.layout == RopePairs::adjacent;
  const int64_t step = adjacent ? 2 : 1, apart = adjacent ? 1 : s.pairs;
  for (int64_t begin = 0; begin < s.pairs; begin += chunk) {
    const int64_t n = std::min(chunk, s.pairs - begin);
    const T* in = x + step * begin;
    T* out = y + step * begin;
    C a[chunk], b[chunk];
    for (int64_t i = 0; i < n; ++i) a[i] = convert<C>(in[step * i]), b[i] = convert<C>(in[step * i + apart]);
    for (int64_t i = 0; i < n; ++i) {
      const C c = cos[begin + i], d = sign * sin[begin + i];
      const C turned = a[i] * c - b[i] * d;
      b[i] = a[i] * d + b[i] * c;
      a[i] = turned;
    }
    for (int64_t i = 0; i < n; ++i) out[step * i] = convert<T>(a[i]), out[step * i + apart] = convert<T>(b[i]);
  }
  if (x != y) std::copy(x + 2 * s.pairs, x + s.width, y + 2 * s.pairs);
}

}  // namespace

template <class T>
void rope_table(int64_t positions, int64_t pairs, const double* frequencies, T* cos, T* sin) {
  parallel_for(positions, 64, [&](int64_t begin, int64_t end) {
    for (int64_t p = begin; p < end; ++p)
      for (int64_t i = 0; i < pairs; ++i) {
        const double angle = static_cast<double>(p) * frequencies[i];
        cos[p * pairs + i] = static_cast<T>(std::cos(angle));
        sin[p * pairs + i] = static_cast<T>(std::sin(angle));
      }
  });
}

template <class T>
void rope(const RopeSize& s, HeadRows<const T> x, const compute_t<T>* cos, const compute_t<T>* sin,
          const int64_t* positions, int64_t positions_batch, bool inverse, HeadRows<T> y) {
  const int64_t rows = s.batch * s.len;
  const int64_t grain = std::max<int64_t>(1, 16384 / std::max<int64_t>(s.heads * s.width, 1));
  parallel_for(rows, grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t b = i / s.len, t = i % s.len, at = (positions ? positions[b * positions_batch + t] : t) * s.pairs;
      for (int64_t h = 0; h < s.heads; ++h)
        rotate_row<T>(s, x.data + b * x.batch + h * x.head + t * x.row, cos + at, sin + at,
                      inverse ? compute_t<T>(-1) : compute_t<T>(1), y.data + b * y.batch + h * y.head + t * y.row);
    }
  });
}

template void rope_table<float>(int64_t, int64_t, const double*, float*, float*);
template void rope_table<double>(int64_t, int64_t, const double*, double*, double*);
#define TAPESTRY_ROPE(T)                                                                                              \
  template void rope<T>(const RopeSize&, HeadRows<const T>, const compute_t<T>*, const compute_t<T>*, const int64_t*, \
                        int64_t, bool, HeadRows<T>);
TAPESTRY_ROPE(float)
TAPESTRY_ROPE(double)
TAPESTRY_ROPE(bf16)
#undef TAPESTRY_ROPE

}  // namespace tapestry::kernels
