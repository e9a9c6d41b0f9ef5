// pool.cpp: pool.h, a row of windows at a time.
// Next: interpolate.cpp.
#include "pool.h"

#include <algorithm>

#include "../../autograd/parallel.h"
#include "scratch.h"

namespace tapestry::kernels {
namespace {

struct LineTag;
struct PlaneTag;

int64_t grain(int64_t work) { return std::max<int64_t>(1, 16384 / std::max<int64_t>(work, 1)); }

// The windows of a row take their next tap together and without a branch, for which element wins is hard to predict. A
// window that has no tap left looks at its last one again, which changes nothing.
template <class T, class C>
void take(const T* __restrict from, int64_t line, int64_t tap, int64_t width, const int64_t* __restrict start,
          const int64_t* __restrict last, C* __restrict best, int64_t* __restrict found) {
  for (int64_t j = 0; j < width; ++j) {
    const int64_t here = line + std::min(start[j] + tap, last[j]);
    const C v = convert<C>(from[here]);
    const bool wins = !(v <= best[j]) & (best[j] == best[j]);  // larger, or the first NaN
    best[j] = wins ? v : best[j];
    found[j] = wins ? here : found[j];
  }
}

}  // namespace

template <class T>
void max_pool(int64_t planes, const Windows& rows, const Windows& columns, const T* x, T* y, int64_t* place) {
  using C = compute_t<T>;
  const int64_t height = rows.out(), width = columns.out(), plane = rows.in * columns.in;
  std::vector<int64_t> last;  // column of each window
  int64_t reach = 0;
  for (size_t j = 0; j < columns.start.size(); ++j) {
    const int64_t span = (columns.stop[j] - 1 - columns.start[j]) / columns.step * columns.step;
    last.push_back(columns.start[j] + span);
    reach = std::max(reach, span);
  }
  parallel_for(planes, grain(4 * (plane + height * width)), [&](int64_t begin, int64_t end) {
    C* const best = scratch<C, LineTag>(width);
    const int64_t *const start = columns.start.data(), *const stop = last.data();
    for (int64_t p = begin; p < end; ++p) {
      const T* const from = x + p * plane;
      for (int64_t i = 0; i < height; ++i) {
        const auto row = static_cast<size_t>(i);
        int64_t* const found = place + (p * height + i) * width;
        for (int64_t j = 0; j < width; ++j) {
          found[j] = rows.start[row] * columns.in + start[j];
          best[j] = convert<C>(from[found[j]]);
        }
        for (int64_t r = rows.start[row]; r < rows.stop[row]; r += rows.step)
          for (int64_t tap = 0; tap <= reach; tap += columns.step)
            take(from, r * columns.in, tap, width, start, stop, best, found);
        for (int64_t j = 0; j < width; ++j) y[(p * height + i) * width + j] = convert<T>(best[j]);
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
