// How attention and rotary kernels see the rows of many heads.
// Next: attention.h.
#pragma once

#include <cstdint>

namespace tapestry::kernels {

/// (batch, heads, rows, width): element (b, h, t, c) is data[b * batch + h * head + t * row + c]. Inputs may have any
/// strides; outputs need row >= width and no overlap.
template <class T>
struct HeadRows {
  T* data;
  int64_t batch, head, row;

  /// Where row t of head h begins; nothing has no address to count from.
  [[nodiscard]] T* at(int64_t b, int64_t h, int64_t t) const {
    return data == nullptr ? nullptr : data + b * batch + h * head + t * row;
  }
};

}  // namespace tapestry::kernels
