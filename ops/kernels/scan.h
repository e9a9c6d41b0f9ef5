// Running sums along one dim.
// Not parallel along that dim: each running sum has one owner and is added up in order.
// Next: scan.cpp.
#pragma once

#include "../../autograd/dtype.h"

namespace tapestry::kernels {

/// y (outer, n, inner)[o][k] = Σ x[o][0 … k], both contiguous. f32 and bf16 are summed in f64 and rounded once per element; i64 and bool give i64.
void cumsum(DType dtype, const void* x, void* y, int64_t outer, int64_t n, int64_t inner);

}  // namespace tapestry::kernels
