// What every reduction needs: which dims go, what stays, and the one call of the kernel.
// Not part of the API: reduce.cpp, statistics.cpp, scan.cpp and sort.cpp include it.
// Next: reduction.cpp.
#pragma once

#include "kernels/reduce.h"
#include "ops.h"

namespace tapestry::detail {

/// What a reduction of x leaves: `kept` has size 1 along the reduced dims, `result` is what the caller gets, of as many elements.
struct Plan {
  Dims dims;
  Shape from, kept, result;
  int64_t count = 1;  ///< elements behind each result

  Plan(const Tensor& x, const Dims& reduced);
  /// A gradient of the result as one of x.
  [[nodiscard]] Tensor spread(const Tensor& g) const { return expand(reshape(g, kept), from); }
};

/// dim of x, from 0; AutogradError where x is undefined, IndexError for a dim that it does not have.
int dim_of(const char* op, const Tensor& x, int64_t dim);
/// dims as the caller named them (none: all). IndexError and ShapeError for dims that x does not have or that are named twice.
Plan plan(const char* op, const Tensor& x, const Dims& dims, bool keepdim);
kernels::Reducible reducible(const Tensor& x, const Plan& p);
/// `what` of x in the result's shape.
Tensor reduced(kernels::Reduce what, const Tensor& x, const Plan& p, DType dtype);
/// ShapeError where nothing is reduced over.
void require_elements(const char* op, const Tensor& x, const Plan& p);

}  // namespace tapestry::detail
