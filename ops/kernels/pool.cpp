#include "pool.h"

#include <algorithm>

#include "../../autograd/parallel.h"
#include "scratch.h"

namespace tapestry::kernels {
namespace {

struct PlaneTag;

int64_t grain(int64_t work) { return std::max<int64_t>(1, 16384 / std::max<int64_t>(work, 1)); }

}  // namespace

template <class T>
void max_pool(int64_t planes, const Windows& rows, const Windows& columns, const T* x, T* y, int64_t* place) {
  using C = compute_t<T>;
  const int64_t height = rows.out(), width = columns.out(), plane = rows.in * columns.in;
  parallel_for(planes, grain(4 * (plane + height * width)), [&](int64_t begin, int64_t end) {
    for (int64_t p = begin; p < end; ++p) {
      const T* from = x + p * plane;
      int64_t at = p * height * width;
      for (size_t i = 0; i < rows.start.size(); ++i)
        for (size_t j = 0; j < columns.start.size(); ++j, ++at) {
          int64_t found = rows.start[i] * columns.in + columns.start[j];
          C best = convert<C>(from[found]);
          for (int64_t r = rows.start[i]; r < rows.stop[i]; r += rows.step)
            for (int64_t c = columns.start[j]; c < columns.stop[j]; c += columns.step) {
              const int64_t here = r * columns.in + c;
              const C v = convert<C>(from[here]);
              if (v > best || (v != v && best == best)) best = v, found = here;
            }
          y[at] = convert<T>(best);
          place[at] = found;
        }
    }
  });
}

template <class T>
void gather_places(int64_t planes, int64_t size, int64_t n, const T* x, const int64_t* place, T* y) {
  parallel_for(planes, grain(n), [&](int64_t begin, int64_t end) {
    for (int64_t p = begin; p < end; ++p)
      for (int64_t i = 0; i < n; ++i) y[p * n + i] = x[p * size + place[p * n + i]];
  });
}

template <class T>
void scatter_places(int64_t planes, int64_t size, int64_t n, const T* x, const int64_t* place, T* y) {
  using C = compute_t<T>;
  parallel_for(planes, grain(n + size), [&](int64_t begin, int64_t end) {
    for (int64_t p = begin; p < end; ++p) {
      C* sums = nullptr;
      if constexpr (std::is_same_v<T, C>)
        sums = y + p * size;
      else
        sums = scratch<C, PlaneTag>(size);
      std::fill_n(sums, size, C(0));
      for (int64_t i = 0; i < n; ++i) sums[place[p * n + i]] += convert<C>(x[p * n + i]);
      if constexpr (!std::is_same_v<T, C>)
        for (int64_t i = 0; i < size; ++i) y[p * size + i] = convert<T>(sums[i]);
    }
  });
}

#define TAPESTRY_POOL(T)                                                                      \
  template void max_pool<T>(int64_t, const Windows&, const Windows&, const T*, T*, int64_t*); \
  template void gather_places<T>(int64_t, int64_t, int64_t, const T*, const int64_t*, T*);    \
  template void scatter_places<T>(int64_t, int64_t, int64_t, const T*, const int64_t*, T*);
TAPESTRY_POOL(float)
TAPESTRY_POOL(double)
TAPESTRY_POOL(bf16)
#undef TAPESTRY_POOL

}  // namespace tapestry::kernels
