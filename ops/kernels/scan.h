// Running sums, products and extremes along one dim of strided memory, and linear recurrences.
// Not their gradients (../scan.cpp) nor reductions, which keep the last value only (reduce.h). Next: scan.cpp.
#pragma once

#include <cstdint>

#include "../../autograd/dtype.h"
#include "../../autograd/shape.h"

namespace tapestry::kernels {

/// An operand: its first element and its strides in elements.
struct ScanOperand {
  const void* data;
  Strides strides;
};

enum class Scan : uint8_t { sum, prod, logsumexp };

/// out[..., i, ...] = Σ (or Π, or ln Σ exp) of x[..., j, ...] over j ≤ i along `dim`, or over j ≥ i when `reverse`. Carried in f64 (i64 for i64, which
/// wraps); out has x's dtype. logsumexp takes floating dtypes.
void scan(Scan what, const Shape& shape, int dim, DType dtype, const ScanOperand& x, const ScanOperand& out,
          bool reverse);

/// The largest (or smallest) x[..., j, ...] over j ≤ i and its j: the latest of equal ones; once there is a NaN, the latest NaN.
void scan_extreme(bool largest, const Shape& shape, int dim, DType dtype, const ScanOperand& x,
                  const ScanOperand& values, const ScanOperand& indices);

/// h_i = b_i + a_i·h_{i-1} along `dim` with h_{-1} = 0, or h_i = b_i + a_i·h_{i+1} when `reverse`; floating dtypes, carried in f64.
void linear_scan(const Shape& shape, int dim, DType dtype, const ScanOperand& a, const ScanOperand& b,
                 const ScanOperand& h, bool reverse);

}  // namespace tapestry::kernels
