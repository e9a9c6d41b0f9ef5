// Sparse linear maps along the rows and the columns of planes: averages over windows, resizing, and their adjoints are all of this kind.
// Not maxima (pool.h), which are not linear. Next: interpolate.cpp.
#pragma once

#include <cstdint>
#include <vector>

#include "../../autograd/dtype.h"

namespace tapestry::kernels {

/// A matrix (out, in) whose rows have their nonzeros side by side: row i is weight[begin[i] … begin[i + 1]) in columns start[i], start[i] + 1, …
/// An element's neighbours on a line are near it, so all the maps here, and their transposes, have this form.
struct BandMatrix {
  int64_t in = 0;
  std::vector<int64_t> start, begin = {0};
  std::vector<double> weight;

  [[nodiscard]] int64_t out() const { return static_cast<int64_t>(start.size()); }
  /// Appends a row; `first` never less than the row before.
  void add_row(int64_t first, const std::vector<double>& weights);
  [[nodiscard]] BandMatrix transposed() const;
};

/// y[p] (rows.out(), columns.out()) = rows · x[p] (rows.in, columns.in) · columnsᵀ for every plane p; contiguous, summed in double.
template <class T>
void resample(int64_t planes, const BandMatrix& rows, const BandMatrix& columns, const T* x, T* y);

}  // namespace tapestry::kernels
