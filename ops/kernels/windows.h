// Sums overlapping windows back into the dim they were cut from.
// Not the cutting, which is a view (../windows.cpp).
#pragma once

#include "../../autograd/shape.h"

namespace tapestry::kernels {

/// y (outer, length, inner)[o][l][j] = Σ over windows c of w (outer, count, inner, size)[o][c][j][l − c·step], in the order of the windows; contiguous;
/// f32, f64, bf16 (summed in f32) or i64.
void fold_windows(DType dtype, const void* w, void* y, int64_t outer, int64_t length, int64_t inner, int64_t count,
                  int64_t size, int64_t step);

}  // namespace tapestry::kernels
