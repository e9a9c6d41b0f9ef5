// Largest elements of windows of planes, and the moves along the places they were found at.
// Not averages (interpolate.h), which are linear. Next: pool.cpp.
#pragma once

#include <cstdint>
#include <vector>

#include "../../autograd/dtype.h"

namespace tapestry::kernels {

/// Along one dim: window i holds the elements start[i], start[i] + step, … short of stop[i]; at least one.
struct Windows {
  int64_t in = 0, step = 1;
  std::vector<int64_t> start, stop;
  [[nodiscard]] int64_t out() const { return static_cast<int64_t>(start.size()); }
};

/// For every plane and window the first largest element, or the first NaN, and its place in the plane (row-major).
template <class T>
void max_pool(int64_t planes, const Windows& rows, const Windows& columns, const T* x, T* y, int64_t* place);

/// y (planes, n)[p][i] = x (planes, size)[p][place[p][i]].
template <class T>
void gather_places(int64_t planes, int64_t size, int64_t n, const T* x, const int64_t* place, T* y);

/// y (planes, size) = 0, then y[p][place[p][i]] += x (planes, n)[p][i] in the order of i.
template <class T>
void scatter_places(int64_t planes, int64_t size, int64_t n, const T* x, const int64_t* place, T* y);

}  // namespace tapestry::kernels
