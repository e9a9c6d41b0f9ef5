// Matrix products of every rank combination: the shape rules, and the one recorded op behind them.
// Not the arithmetic (kernels/gemm.h) nor the layer's product (linear.cpp).
// Next: linear.cpp.
#include <algorithm>

#include "../autograd/function.h"
#include "error_text.h"
#include "kernels/gemm.h"
#include "ops.h"
#include "rows.h"

namespace tapestry {
namespace {

/// c (…, M, N) = a b + beta c for equal batch dims; c dense.
void multiply(const Tensor& a, const Tensor& b, double beta, void* c) {
  const int r = a.dim();
  const int64_t m = a.size(-2), k = a.size(-1), n = b.size(-1);
  const Strides &as = a.strides(), &bs = b.strides();
  kernels::GemmBatch batch;
  for (int d = 0; d < r - 2; ++d) {
    batch.shape.push_back(a.shape()[d]);
    batch.a.push_back(as[d]);
    batch.b.push_back(bs[d]);
  }
  batch.c = contiguous_strides(batch.shape);
  for (int64_t& stride : batch.c) stride *= m * n;
  dispatch(a.dtype(), [&]<class T> {
    if constexpr (!std::is_same_v<T, bool>) {
      const kernels::Matrix<T> left{a.data<T>(), as[r - 2], as[r - 1]}, right{b.data<T>(), bs[r - 2], bs[r - 1]};
      if (r == 2)
        kernels::gemm<T, T>(m, n, k, 1, left, right, beta, static_cast<T*>(c), n);
      else
        kernels::gemm_batched<T, T>(batch, m, n, k, 1, left, right, beta, static_cast<T*>(c), n);
    }
  });
}

/// The gradient a·b of input i: added into the leaf's own .grad by the GEMM itself where that is allowed.
Tensor gradient(const Context& c, int i, const Tensor& a, const Tensor& b) {
  if (const auto destination = c.grad_destination(i)) {
    multiply(a, b, 1, destination->grad.mutable_raw_data("matmul"));
    return destination->grad;
  }
  return matmul(a, b);
}

/// Batch dims are equal: broadcasting happened before, as views.
struct Matmul {
  static constexpr std::string_view name = "matmul", formula = "y = a b", vjp = "da = g bᵀ, db = aᵀ g";

  Tensor forward(Context& c, const Tensor& a, const Tensor& b) const {
    c.save(c.needs(1) ? a : Tensor{}, c.needs(0) ? b : Tensor{});
    Shape shape = a.shape();
    shape[a.dim() - 1] = b.size(-1);
    Tensor y = empty(shape, a.dtype());
    multiply(a, b, 0, detail::fresh<char>(y));
    return y;
  }

  Grads backward(Context& c, const Tensor& g) const {
    return grads(
        c, [&] { return gradient(c, 0, g, mT(c.saved(1))); }, [&] { return gradient(c, 1, mT(c.saved(0)), g); });
  }
};

void check(const Tensor& a, const Tensor& b) {
  detail::require_defined("matmul", a);
  detail::require_defined("matmul", b);
  if (a.dtype() != b.dtype())
    fail<DTypeError>("matmul: dtypes differ: a is {}, b is {}; convert with to(x, DType::{})", a.describe(),
                     b.describe(), name_of(a.dtype()));
  if (a.dtype() == DType::boolean)
    fail<DTypeError>("matmul: bool has no product: a is {}, b is {}; convert with to(x, DType::i64)", a.describe(),
                     b.describe());
  if (a.dim() == 0 || b.dim() == 0)
    fail<ShapeError>("matmul: a single number is no matrix: a is {}, b is {}; use a * b", a.describe(), b.describe());
  const int row = b.dim() == 1 ? -1 : -2;
  if (a.size(-1) != b.size(row))
    fail<ShapeError>("matmul: inner dimensions differ: a is {}, b is {} (a.size(-1) = {}, b.size({}) = {})",
                     a.describe(), b.describe(), a.size(-1), row, b.size(row));
}

/// The common batch dims of matrices a and b.
Shape common_batch(const Tensor& a, const Tensor& b) {
  const int rank = std::max(a.dim(), b.dim());
  Shape batch;
  for (int d = -rank; d < -2; ++d) {
    const int64_t na = -d <= a.dim() ? a.size(d) : 1, nb = -d <= b.dim() ? b.size(d) : 1;
    if (na != nb && na != 1 && nb != 1)
      fail<ShapeError>("matmul: batch dimensions do not broadcast: a is {}, b is {} (a.size({}) = {}, b.size({}) = {})",
                       a.describe(), b.describe(), d, na, d, nb);
    batch.push_back(na == 1 ? nb : na);
  }
  return batch;
}

Tensor with_batch(const Tensor& x, const Shape& batch) {
  Shape shape = batch;
  shape.push_back(x.size(-2));
  shape.push_back(x.size(-1));
  return shape == x.shape() ? x : expand(x, shape);
}

}  // namespace

Tensor matmul(const Tensor& a, const Tensor& b) {
  check(a, b);
  if (a.dim() == 1) return squeeze(matmul(unsqueeze(a, 0), b), b.dim() == 1 ? 0 : -2);
  if (b.dim() == 1) return squeeze(matmul(a, unsqueeze(b, 1)), -1);
  if (b.dim() == 2 && a.dim() > 2 &&
      a.size(-1) > 0) {  // x (B, T, D) · W (D, N): one product, one gradient of W without a sum over the batch
    Shape shape = a.shape();
    shape[a.dim() - 1] = b.size(1);
    return reshape(apply(Matmul{}, reshape(a, {a.numel() / a.size(-1), a.size(-1)}), b), shape);
  }
  const Shape batch = common_batch(a, b);
  return apply(Matmul{}, with_batch(a, batch), with_batch(b, batch));
}

}  // namespace tapestry
