// Distances and angles between rows: cdist and cosine_similarity, in plain ops.
// Not norms of one tensor (reduce.cpp).
// Next: linalg.cpp.
#include "../autograd/error.h"
#include "error_text.h"
#include "ops.h"

namespace tapestry {
namespace {

/// bf16 is computed in f32 and rounded once.
Tensor widened(const Tensor& x) { return x.dtype() == DType::bf16 ? to(x, DType::f32) : x; }

}  // namespace

// Differences first, then their norm: a² + b² − 2ab would be faster by one GEMM, and loses all digits for rows that lie close together.
Tensor cdist(const Tensor& a, const Tensor& b, double p) {
  detail::require_same_dtype("cdist", a, b);
  detail::require_floating("cdist", a);
  if (p != 1 && p != 2) fail<ValueError>("cdist: p is {}; it must be 1 or 2", p);
  if (a.dim() < 2 || b.dim() < 2 || a.size(-1) != b.size(-1))
    fail<ShapeError>("cdist: a is {}, b is {}; they must be (…, n, d) and (…, m, d)", a.describe(), b.describe());
  const Tensor difference = sub(unsqueeze(widened(a), -2), unsqueeze(widened(b), -3));
  const Tensor y = p == 2 ? norm(difference, {-1}) : sum(abs(difference), {-1});
  return to(y, a.dtype());
}

Tensor cosine_similarity(const Tensor& a, const Tensor& b, int64_t dim, double eps) {
  detail::require_same_dtype("cosine_similarity", a, b);
  detail::require_floating("cosine_similarity", a);
  if (!(eps > 0)) fail<ValueError>("cosine_similarity: eps is {}; it must be more than 0", eps);
  Tensor x = widened(a), y = widened(b);
  detail::expand_together("cosine_similarity", x, y);
  const Dims dims = {normalize_dim("cosine_similarity", dim, x.dim())};
  // Unit vectors first: the product of two large rows could overflow before it is divided.
  const Tensor u = div(x, maximum(norm(x, dims, true), eps)), v = div(y, maximum(norm(y, dims, true), eps));
  return to(sum(mul(u, v), dims), a.dtype());
}

}  // namespace tapestry
