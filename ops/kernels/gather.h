// Tiles of strided memory to dense buffers of the compute type and back: what lets a kernel be one dense loop per type.
// Not the walk over tiles (pointwise.cpp, reduce.cpp). Next: pointwise.cpp.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>

#include "../../autograd/dtype.h"

namespace tapestry::kernels {

/// Copies a tile from memory of type From with byte strides into a dense buffer of type To.
template <class To, class From>
void gather(char* dense, char* memory, int64_t rows, int64_t columns, int64_t row_step, int64_t column_step) {
  auto* to = reinterpret_cast<To*>(dense);
  if (column_step == static_cast<int64_t>(sizeof(From))) {
    for (int64_t r = 0; r < rows; ++r) {
      const auto* from = reinterpret_cast<const From*>(memory + r * row_step);
      for (int64_t c = 0; c < columns; ++c) to[r * columns + c] = convert<To>(from[c]);
    }
  } else if (column_step == 0) {
    for (int64_t r = 0; r < rows; ++r)
      std::fill_n(to + r * columns, columns, convert<To>(*reinterpret_cast<const From*>(memory + r * row_step)));
  } else if (std::abs(row_step) < std::abs(column_step)) {
    for (int64_t c = 0; c < columns; ++c) {
      const char* from = memory + c * column_step;
      for (int64_t r = 0; r < rows; ++r)
        to[r * columns + c] = convert<To>(*reinterpret_cast<const From*>(from + r * row_step));
    }
  } else {
    for (int64_t r = 0; r < rows; ++r) {
      const char* from = memory + r * row_step;
      for (int64_t c = 0; c < columns; ++c)
        to[r * columns + c] = convert<To>(*reinterpret_cast<const From*>(from + c * column_step));
    }
  }
}

/// The way back, for results.
template <class To, class From>
void scatter(char* dense, char* memory, int64_t rows, int64_t columns, int64_t row_step, int64_t column_step) {
  const auto* from = reinterpret_cast<const From*>(dense);
  for (int64_t r = 0; r < rows; ++r, from += columns, memory += row_step) {
    if (column_step == static_cast<int64_t>(sizeof(To))) {
      auto* to = reinterpret_cast<To*>(memory);
      for (int64_t c = 0; c < columns; ++c) to[c] = convert<To>(from[c]);
    } else {
      for (int64_t c = 0; c < columns; ++c) *reinterpret_cast<To*>(memory + c * column_step) = convert<To>(from[c]);
    }
  }
}

/// A gather (inputs) or a scatter (outputs); `dense` holds rows x columns, steps are in bytes.
using Copy = void (*)(char* dense, char* memory, int64_t rows, int64_t columns, int64_t row_step, int64_t column_step);

/// f.operator()<C, S>() with the compute type C and the stored type S.
template <class F>
Copy copy_for(DType compute, DType stored, F f) {
  return dispatch(stored, [&]<class S>() -> Copy {
    if (compute == DType::f32) return f.template operator()<float, S>();
    if (compute == DType::f64) return f.template operator()<double, S>();
    if (compute == DType::boolean) return f.template operator()<bool, S>();
    return f.template operator()<int64_t, S>();
  });
}

}  // namespace tapestry::kernels
