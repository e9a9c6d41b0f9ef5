// interpolate.cpp: rows are combined first, then columns, so that no plane between them is stored.
// Next: channel_norm.h.
#include "interpolate.h"

#include <algorithm>

#include "../../autograd/parallel.h"
#include "scratch.h"

namespace tapestry::kernels {
namespace {
struct LineTag;
}

void BandMatrix::add_row(int64_t first, const std::vector<double>& weights) {
  start.push_back(first);
  weight.insert(weight.end(), weights.begin(), weights.end());
  begin.push_back(static_cast<int64_t>(weight.size()));
}

BandMatrix BandMatrix::transposed() const {
  BandMatrix t;
  t.in = out();
  int64_t low = 0, high = 0;  // rows that can reach column j: starts and ends never fall
  std::vector<double> row;
  const auto end_of = [&](int64_t i) {
    const auto k = static_cast<size_t>(i);
    return start[k] + begin[k + 1] - begin[k];
  };
  for (int64_t j = 0; j < in; ++j) {
    while (low < out() && end_of(low) <= j) ++low;
    while (high < out() && start[static_cast<size_t>(high)] <= j) ++high;
    row.clear();
    for (int64_t i = low; i < high; ++i) {
      const auto k = static_cast<size_t>(i);
      row.push_back(weight[static_cast<size_t>(begin[k] + j - start[k])]);
    }
    t.add_row(low, row);
  }
  return t;
}

template <class T>
void resample(int64_t planes, const BandMatrix& rows, const BandMatrix& columns, const T* x, T* y) {
  const int64_t height = rows.out(), width = columns.out(), in_width = columns.in, plane = rows.in * in_width;
  if (planes == 0 || height == 0 || width == 0) return;
  const auto taps = [](const BandMatrix& m) { return static_cast<int64_t>(m.weight.size()); };
  const int64_t work = taps(rows) / height * in_width + taps(columns) + width;
  parallel_for(planes * height, std::max<int64_t>(1, 16384 / work), [&](int64_t first, int64_t last) {
    double* line = scratch<double, LineTag>(in_width);
    for (int64_t item = first; item < last; ++item) {
      const auto i = static_cast<size_t>(item % height);
      const T* from = x + item / height * plane + rows.start[i] * in_width;
      std::fill_n(line, in_width, 0.0);
      for (int64_t k = rows.begin[i]; k < rows.begin[i + 1]; ++k, from += in_width) {
        const double w = rows.weight[static_cast<size_t>(k)];
        for (int64_t j = 0; j < in_width; ++j) line[j] += w * convert<double>(from[j]);
      }
      T* to = y + item * width;
      for (int64_t j = 0; j < width; ++j) {
        const auto c = static_cast<size_t>(j);
        const double* near = line + columns.start[c];
        const double* w = columns.weight.data() + columns.begin[c];
        double sum = 0;
        for (int64_t k = 0; k < columns.begin[c + 1] - columns.begin[c]; ++k) sum += w[k] * near[k];
        to[j] = convert<T>(static_cast<compute_t<T>>(sum));
      }
    }
  });
}

template void resample<float>(int64_t, const BandMatrix&, const BandMatrix&, const float*, float*);
template void resample<double>(int64_t, const BandMatrix&, const BandMatrix&, const double*, double*);
template void resample<bf16>(int64_t, const BandMatrix&, const BandMatrix&, const bf16*, bf16*);

}  // namespace tapestry::kernels
