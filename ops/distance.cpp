// Distances and angles between rows: cdist, fused, and cosine_similarity in plain ops.
// Not norms of one tensor (statistics.cpp).
// Next: linalg.cpp.
#include "kernels/distance.h"
#include "../autograd/function.h"
#include "error_text.h"
#include "matrices.h"
#include "ops.h"
#include "rows.h"

namespace tapestry {
namespace {

/// bf16 is computed in f32 and rounded once.
Tensor widened(const Tensor& x) { return x.dtype() == DType::bf16 ? to(x, DType::f32) : x; }

/// Differences first, then their norm: a² + b² − 2ab would be faster by one GEMM, and loses all digits for rows that lie close together.
struct Cdist {
  static constexpr std::string_view name = "cdist", formula = "y[i][j] = ‖a[i] − b[j]‖ₚ",
                                    vjp =
                                        "Σⱼ g (a[i] − b[j])/y (p = 2) or Σⱼ g sign(a[i] − b[j]) (p = 1), −Σᵢ of the "
                                        "same; 0 at distance 0";
  int p;

  Tensor composite(const Tensor& a, const Tensor& b) const {
    const Tensor difference = sub(unsqueeze(a, -2), unsqueeze(b, -3));
    return p == 2 ? norm(difference, {-1}) : sum(abs(difference), {-1});
  }

  Tensor forward(Context& c, const Tensor& a, const Tensor& b) const {
    Tensor y = empty(detail::with_last_two(a.shape(), a.size(-2), b.size(-2)), a.dtype());
    const Tensor x = dense(a), z = dense(b);
    detail::dispatch_real(a.dtype(), [&]<class T> {
      kernels::cdist<T>(size_of(x, z), p, x.data<T>(), z.data<T>(), detail::fresh<T>(y));
    });
    c.save(y);
    return y;
  }

  Grads backward(Context& c, const Tensor& given) const {
    const Tensor a = dense(c.input(0)), b = dense(c.input(1)), y = c.saved(0), g = dense(given);
    return grads(
        c, [&] { return side(a, b, y, g, b.size(-2), 1); }, [&] { return side(b, a, y, g, 1, b.size(-2)); });
  }

 private:
  static kernels::RowPairs size_of(const Tensor& a, const Tensor& b) {
    return {detail::batch_of(a), a.size(-2), b.size(-2), a.size(-1)};
  }
  /// The gradient of the first of two lists.
  [[nodiscard]] Tensor side(const Tensor& a, const Tensor& b, const Tensor& y, const Tensor& g, int64_t step_a,
                            int64_t step_b) const {
    Tensor da = empty(a.shape(), a.dtype());
    detail::dispatch_real(a.dtype(), [&]<class T> {
      kernels::cdist_backward<T>(size_of(a, b), p, a.data<T>(), b.data<T>(), y.data<T>(), g.data<T>(), step_a, step_b,
                                 detail::fresh<T>(da));
    });
    return da;
  }
};

}  // namespace

Tensor cdist(const Tensor& a, const Tensor& b, double p) {
  detail::require_same_dtype("cdist", a, b);
  detail::require_floating("cdist", a);
  if (p != 1 && p != 2) fail<ValueError>("cdist: p is {}; it must be 1 or 2", p);
  if (a.dim() < 2 || b.dim() < 2 || a.size(-1) != b.size(-1))
    fail<ShapeError>("cdist: a is {}, b is {}; they must be (…, n, d) and (…, m, d)", a.describe(), b.describe());
  const Shape batch = broadcast_shapes("cdist", detail::without_last(a.shape(), 2), detail::without_last(b.shape(), 2));
  const auto in_batch = [&](const Tensor& x) {
    Shape shape = batch;
    shape.push_back(x.size(-2));
    shape.push_back(x.size(-1));
    return expand(widened(x), shape);
  };
  return to(apply(Cdist{p == 2 ? 2 : 1}, in_batch(a), in_batch(b)), a.dtype());
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
