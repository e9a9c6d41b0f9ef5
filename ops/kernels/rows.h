// A matrix as kernels on rows see it.
// Next: norm.h.
#pragma once

#include <cstdint>

namespace tapestry::kernels {

/// rows × d elements, each row contiguous, row i at data + i * stride.
template <class T>
struct Rows {
  T* data;
  int64_t stride;
};

}  // namespace tapestry::kernels
