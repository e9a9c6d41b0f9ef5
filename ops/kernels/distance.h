// Distances between all rows of two lists, and their gradient, without the list of all differences.
// Not for one tensor's norms (reduce.h).
// Next: distance.cpp.
#pragma once

#include <cstdint>

namespace tapestry::kernels {

/// `count` pairs of lists of n and m dense rows of d numbers.
struct RowPairs {
  int64_t count, n, m, d;
};

/// y (count, n, m): y[i][j] = Σ |a[i] − b[j]| for p = 1, √Σ (a[i] − b[j])² without overflow for p = 2. T is float or double.
template <class T>
void cdist(RowPairs size, int p, const T* a, const T* b, T* y);

/// da[i] = Σⱼ g[i][j] ∂y[i][j]/∂a[i], 0 where y or a difference is 0. Element (i, j) of y and g is at i·step_i + j·step_j, so that the gradient of b
/// is the same call with the lists, their lengths and the steps exchanged.
template <class T>
void cdist_backward(RowPairs size, int p, const T* a, const T* b, const T* y, const T* g, int64_t step_i,
                    int64_t step_j, T* da);

}  // namespace tapestry::kernels
