// Reductions of strided memory over any set of dims.
// Not their gradients (../reduce.cpp) nor softmax and norms, which have fused kernels. Next: reduce.cpp, then reduce_ops.h.
#pragma once

#include <cstdint>
#include <span>

#include "../../autograd/dtype.h"
#include "../../autograd/shape.h"

namespace tapestry::kernels {

/// A strided array seen as kept x reduced dims, strides in elements. The result has one element per kept index, dense in row-major order.
struct Reducible {
  const void* data;
  DType dtype;
  Shape kept, reduced;
  Strides kept_strides, reduced_strides;
};

/// Splits `shape` into the dims to reduce (in 0 .. rank-1, each once; none means all of them) and the rest, both in their order.
Reducible split(const void* data, DType dtype, const Shape& shape, const Strides& strides,
                std::span<const int64_t> dims);

/// What to compute over the reduced dims. Sums of f32 and bf16 are carried in f64, sums of f64 pairwise, sums of i64 and bool in i64. norm is
/// √Σx² without overflow before the root. max and min return NaN if there is one. any, all and count take x != 0 as true. deviation is
/// Σ(x - mean)² without cancellation. Over nothing: sum 0, mean NaN, norm 0, max -inf, min +inf (the limits of i64), prod 1, any 0, all 1, count 0,
/// deviation 0, logsumexp -inf.
enum class Reduce : uint8_t { sum, mean, norm, max, min, prod, any, all, count, deviation, logsumexp };

/// out[kept index] = `what` over the reduced dims, rounded once to `out_dtype`. Bits depend on the shape and strides, never on the thread count:
/// more than 65,536 elements are cut into fixed pieces whose partial results are combined as a fixed tree. DTypeError: logsumexp and
/// deviation of i64 or bool.
void reduce(Reduce what, const Reducible& x, void* out, DType out_dtype);

/// The first index (row-major over the reduced dims) of the largest or, for Reduce::min, smallest element; of the first NaN if there is one.
/// `values`, of x's dtype, may be null. IndexError if nothing is reduced over.
void reduce_index(Reduce what, const Reducible& x, void* values, int64_t* indices);

}  // namespace tapestry::kernels
