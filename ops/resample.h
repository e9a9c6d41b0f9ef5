// Linear maps of planes that act along rows and along columns, as one op that is its own derivative: average pooling and interpolation.
// Not part of the API: pool.cpp and interpolate.cpp include it.
#pragma once

#include "../autograd/function.h"
#include "kernels/interpolate.h"
#include "rows.h"

namespace tapestry::detail {

/// y = rows · x · columnsᵀ on every plane of x (B, C, H, W), or (B, C, L), where rows is the 1 × 1 identity.
struct Resample {
  std::string_view name, formula, vjp;
  kernels::BandMatrix rows, columns;

  Tensor forward(Context&, const Tensor& x) const {
    Shape shape = x.shape();
    shape[x.dim() - 1] = columns.out();
    if (x.dim() == 4) shape[2] = rows.out();
    const Tensor y = empty(shape, x.dtype()), xs = dense(x);
    dispatch_floating(x.dtype(), [&]<class T> {
      kernels::resample<T>(x.size(0) * x.size(1), rows, columns, xs.data<T>(), fresh<T>(y));
    });
    return y;
  }
  Grads backward(Context& c, const Tensor& g) const {
    return grads(c, [&] {
      return apply(Resample{"resample", "y = R x Cᵀ", "Rᵀ g C", rows.transposed(), columns.transposed()}, g);
    });
  }
};

/// The rows of a tensor that has none.
inline kernels::BandMatrix single_row() {
  kernels::BandMatrix one;
  one.in = 1;
  one.add_row(0, {1});
  return one;
}

}  // namespace tapestry::detail
