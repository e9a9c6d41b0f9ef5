// Strided memory for tests of kernels: arrays of any element type in five layouts, read by logical index.
// Not tensors. Next: test_pointwise_kernel.cpp.
#pragma once

#include <algorithm>
#include <cstdint>
#include <random>
#include <utility>
#include <vector>

#include "../autograd/dtype.h"
#include "../autograd/shape.h"

namespace strided_arrays {

using namespace tapestry;

/// Memory with a view of it: what an operand of a kernel is.
struct Array {
  std::vector<char> bytes;
  DType dtype;
  Strides strides;
  int64_t offset = 0;  // elements

  [[nodiscard]] char* data() { return bytes.data() + offset * size_of(dtype); }
};

inline int64_t position(const Shape& shape, const Strides& strides, int64_t index) {
  int64_t at = 0;
  for (int d = shape.rank() - 1; d >= 0; --d) {
    at += index % shape[d] * strides[d];
    index /= shape[d];
  }
  return at;
}

inline double get(Array& a, const Shape& shape, int64_t index) {
  return dispatch(a.dtype, [&]<class T> {
    return convert<double>(reinterpret_cast<T*>(a.data())[position(shape, a.strides, index)]);
  });
}

inline void fill(Array& a, uint64_t seed) {
  std::mt19937_64 bits(seed);
  std::uniform_real_distribution<double> unit(-3, 3);
  dispatch(a.dtype, [&]<class T> {
    auto* p = reinterpret_cast<T*>(a.bytes.data());
    for (size_t i = 0; i < a.bytes.size() / sizeof(T); ++i)
      p[i] = convert<T>(std::is_same_v<T, bool> ? double(bits() % 2) : unit(bits));
  });
}

enum class Layout { dense, transposed, stepped, expanded, reversed };
inline const Layout layouts[] = {Layout::dense, Layout::transposed, Layout::stepped, Layout::expanded,
                                 Layout::reversed};

inline Array make(const Shape& shape, DType dtype, Layout layout, uint64_t seed) {
  Array a{{}, dtype, contiguous_strides(shape), 0};
  int64_t count = std::max<int64_t>(numel(shape), 1);
  const int last = shape.rank() - 1;
  if (layout == Layout::transposed && last > 0) {
    Shape swapped = shape;
    std::swap(swapped[last], swapped[last - 1]);
    a.strides = contiguous_strides(swapped);
    std::swap(a.strides[last], a.strides[last - 1]);
  } else if (layout == Layout::stepped && last >= 0) {
    for (int64_t& s : a.strides) s *= 2;
    count *= 2;
    a.offset = 1;
  } else if (layout == Layout::expanded && last >= 0) {
    a.strides[last > 1 ? 1 : 0] = 0;
  } else if (layout == Layout::reversed && last >= 0 && shape[last] > 0) {
    a.offset = shape[last] - 1;
    a.strides[last] = -1;
  }
  a.bytes.resize(static_cast<size_t>((count + a.offset) * size_of(dtype)));
  fill(a, seed);
  return a;
}

}  // namespace strided_arrays
