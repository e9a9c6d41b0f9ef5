// The sizes in which the allocator hands out blocks: four per power of two, so that at most a fifth is lost to rounding.
// Next: allocator.cpp.
#pragma once

#include <bit>
#include <cstddef>

namespace tapestry {

struct SizeClass {
  int index;
  size_t bytes;  ///< of a block
};

/// The class of blocks that hold `bytes`. Class 0 is 64 bytes.
inline SizeClass size_class(size_t bytes) {
  if (bytes <= 64) return {0, 64};
  const int log = std::bit_width(bytes - 1);  // 2^(log-1) < bytes <= 2^log
  const size_t half = size_t{1} << (log - 1), step = half / 4;
  const size_t quarter = (bytes - half + step - 1) / step;  // 1..4
  return {(log - 7) * 4 + static_cast<int>(quarter), half + quarter * step};
}

}  // namespace tapestry
