// Dims normalised and checked once for every reduction. Next: reduce.cpp.
#include "reduction.h"

#include "error_text.h"

namespace tapestry::detail {

Plan::Plan(const Tensor& x, const Dims& reduced) : dims(reduced), from(x.shape()), kept(x.shape()) {
  for (const int64_t d : dims) {
    count *= from[static_cast<int>(d)];
    kept[static_cast<int>(d)] = 1;
  }
}

int dim_of(const char* op, const Tensor& x, int64_t dim) {
  require_defined(op, x);
  return normalize_dim(op, dim, x.dim());
}

Plan plan(const char* op, const Tensor& x, const Dims& dims, bool keepdim) {
  require_defined(op, x);
  bool chosen[max_rank] = {};
  for (const int64_t dim : dims) {
    const int d = normalize_dim(op, dim, x.dim());
    if (chosen[d])
      fail<ShapeError>("{}: dim {} is named twice in {} for {}; name each dim once", op, d, to_string(dims),
                       x.describe());
    chosen[d] = true;
  }
  Dims list;
  for (int d = 0; d < x.dim(); ++d)
    if (dims.empty() || chosen[d]) list.push_back(d);
  Plan p(x, list);
  for (int d = 0; d < x.dim(); ++d)
    if (keepdim || !(dims.empty() || chosen[d])) p.result.push_back(p.kept[d]);
  return p;
}

kernels::Reducible reducible(const Tensor& x, const Plan& p) {
  return kernels::split(x.raw_data(), x.dtype(), x.shape(), x.strides(), p.dims);
}

Tensor reduced(kernels::Reduce what, const Tensor& x, const Plan& p, DType dtype) {
  const Tensor y = empty(p.result, dtype);
  kernels::reduce(what, reducible(x, p), y.body()->storage->data, dtype);
  return y;
}

void require_elements(const char* op, const Tensor& x, const Plan& p) {
  if (p.count == 0)
    fail<ShapeError>("{}: {} has no elements along dims {}; there is no {} of nothing", op, x.describe(),
                     to_string(p.dims), op);
}

}  // namespace tapestry::detail
