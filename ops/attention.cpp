// Scaled dot-product attention (Vaswani et al. 2017): masks, grouped heads and layouts around the fused kernel, and its definition in plain ops.
// Not the module with its projections (nn/attention.h).
// Next: swiglu.cpp.
#include "kernels/attention.h"

#include <cmath>

#include "../autograd/function.h"
#include "error_text.h"
#include "ops.h"
#include "rows.h"

namespace tapestry {
namespace {

template <class T>
kernels::HeadRows<const T> rows(const Tensor& x) {
  return {x.data<T>(), x.strides()[0], x.strides()[1], x.strides()[2]};
}
template <class T>
kernels::HeadRows<T> fresh_rows(const Tensor& x) {
  if (!x.defined()) return {nullptr, 0, 0, 0};
  return {detail::fresh<T>(x), x.strides()[0], x.strides()[1], x.strides()[2]};
}

/// mask (B or 1, H or 1, Tq or 1, Tk or 1) with stride 0 where it repeats.
kernels::AttentionMask rows_of_mask(const Tensor& mask) {
  if (!mask.defined()) return {};
  const auto stride = [&](int d) { return mask.size(d) == 1 ? 0 : mask.strides()[d]; };
  return {mask.data<bool>(), stride(0), stride(1), stride(2), stride(3)};
}

struct Attention {
  static constexpr std::string_view name = "scaled_dot_product_attention",
                                    formula = "y = p v, p = softmax(scale q kᵀ, masked)",
                                    vjp = "dv = pᵀ g, ds = scale p (g vᵀ − Σ p g vᵀ), dq = ds k, dk = dsᵀ q";
  double scale;
  bool causal;
  int64_t window = 0;   // 0: none
  double soft_cap = 0;  // 0: none

  Tensor composite(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& mask) const {
    return unfused(q, k, v, mask, 0);
  }

  /// The definition, with dropout of the probabilities.
  [[nodiscard]] Tensor unfused(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& mask, double p) const {
    if (q.dtype() == DType::bf16)
      return to(unfused(to(q, DType::f32), to(k, DType::f32), to(v, DType::f32), mask, p), DType::bf16);
    const int64_t groups = k.size(1) == 0 ? 1 : q.size(1) / k.size(1);
    Tensor scores = matmul(q, mT(per_query_head(k, groups))) * scale;
    if (soft_cap != 0) scores = tapestry::soft_cap(scores, soft_cap);
    const Tensor values = per_query_head(v, groups);
    const Tensor allowed = visible(mask, q.size(2), k.size(2));
    if (!allowed.defined()) return matmul(dropout(softmax(scores, -1), p), values);
    // A row that sees nothing is softened unmasked, so that nothing is NaN, and then dropped.
    const Tensor sees = any(allowed, {-1}, true);
    const Tensor soft = softmax(where(logical_or(allowed, logical_not(sees)), scores, -INFINITY), -1);
    return matmul(dropout(where(sees, soft, 0.0), p), values);
  }

  Tensor forward(Context& c, const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& mask) const {
    const Tensor y = detail::empty_heads({q.size(0), q.size(1), q.size(2), v.size(3)}, q.dtype());
    const Tensor lse = empty({q.size(0), q.size(1), q.size(2)}, q.dtype() == DType::f64 ? DType::f64 : DType::f32);
    const Tensor qs = detail::contiguous_rows(q), ks = detail::contiguous_rows(k), vs = detail::contiguous_rows(v);
    detail::dispatch_floating(q.dtype(), [&]<class T> {
      kernels::attention_forward<T>(size(q, k, v), rows<T>(qs), rows<T>(ks), rows<T>(vs), rows_of_mask(mask),
                                    fresh_rows<T>(y), detail::fresh<compute_t<T>>(lse));
    });
    c.save(lse);
    return y;
  }

  Grads backward(Context& c, const Tensor& g) const {
    const Tensor q = c.input(0), k = c.input(1), v = c.input(2), mask = c.input(3), lse = c.saved(0);
    const auto made = [&](int i, const Tensor& x) {
      return c.needs(i) ? detail::empty_heads(x.shape(), x.dtype()) : Tensor{};
    };
    const Tensor dq = made(0, q), dk = made(1, k), dv = made(2, v);
    const Tensor qs = detail::contiguous_rows(q), ks = detail::contiguous_rows(k), vs = detail::contiguous_rows(v),
                 gs = detail::contiguous_rows(g);
    detail::dispatch_floating(q.dtype(), [&]<class T> {
      kernels::attention_backward<T>(size(q, k, v), rows<T>(qs), rows<T>(ks), rows<T>(vs), rows_of_mask(mask),
                                     lse.data<compute_t<T>>(), rows<T>(gs), fresh_rows<T>(dq), fresh_rows<T>(dk),
                                     fresh_rows<T>(dv));
    });
    return {dq, dk, dv, {}};
  }

 private:
  [[nodiscard]] kernels::AttentionSize size(const Tensor& q, const Tensor& k, const Tensor& v) const {
    return {q.size(0), q.size(1), k.size(1), q.size(2), k.size(2), q.size(3),
            v.size(3), scale,     causal,    window,    soft_cap};
  }

  /// Each key or value head once for every query head that reads it.
  static Tensor per_query_head(const Tensor& x, int64_t groups) {
    if (groups == 1) return x;
    const Tensor repeated = expand(unsqueeze(x, 2), {x.size(0), x.size(1), groups, x.size(2), x.size(3)});
    return reshape(repeated, {x.size(0), x.size(1) * groups, x.size(2), x.size(3)});
  }

  /// mask and causality as one bool tensor that broadcasts to (B, H, Tq, Tk), undefined if all may attend all.
  [[nodiscard]] Tensor visible(const Tensor& mask, int64_t queries, int64_t keys) const {
    if (!causal) return mask;
    const Tensor last = unsqueeze(arange(queries) + static_cast<double>(keys - queries), 1);
    const Tensor key = unsqueeze(arange(keys), 0);
    Tensor seen = less_equal(key, last);
    if (window != 0) seen = logical_and(seen, greater(key, last - static_cast<double>(window)));
    return mask.defined() ? logical_and(mask, seen) : seen;
  }
};

constexpr const char* op = "scaled_dot_product_attention";

[[noreturn]] void fail_shapes(const char* what, const Tensor& q, const Tensor& k, const Tensor& v) {
  fail<ShapeError>("{}: {}: q is {}, k is {}, v is {}", op, what, q.describe(), k.describe(), v.describe());
}

void check(const Tensor& q, const Tensor& k, const Tensor& v) {
  detail::require_floating(op, q);
  detail::require_defined(op, k);
  detail::require_defined(op, v);
  if (q.dtype() != k.dtype() || q.dtype() != v.dtype())
    fail<DTypeError>("{}: dtypes differ: q is {}, k is {}, v is {}; convert with to(x, DType::{})", op, q.describe(),
                     k.describe(), v.describe(), name_of(q.dtype()));
  if (q.dim() < 2 || q.dim() > 4 || k.dim() != q.dim() || v.dim() != q.dim())
    fail_shapes("ranks must be equal and 2, 3 or 4, (B, H, T, Dh)", q, k, v);
  if (q.size(-1) != k.size(-1)) fail_shapes("q and k differ in their last dim", q, k, v);
  if (k.size(-2) != v.size(-2)) fail_shapes("k and v differ in length (dim -2)", q, k, v);
  if (q.dim() > 2 && (q.size(0) != k.size(0) || k.size(0) != v.size(0)))
    fail_shapes("batch sizes (dim 0) differ", q, k, v);
  if (q.dim() < 4) return;
  if (k.size(1) != v.size(1)) fail_shapes("k and v differ in heads (dim 1)", q, k, v);
  if (k.size(1) == 0 ? q.size(1) != 0 : q.size(1) % k.size(1) != 0)
    fail_shapes("the heads of k (dim 1) must divide those of q", q, k, v);
}

void check(const AttentionOptions& options) {
  if (!std::isfinite(options.scale)) fail<ValueError>("{}: scale is {}; it must be finite", op, options.scale);
  if (options.window < 0) fail<ValueError>("{}: window is {}; it must be 0 (none) or more", op, options.window);
  if (options.window > 0 && !options.causal)
    fail<ValueError>("{}: window is {}, which counts keys back from the query's own: set causal, too", op,
                     options.window);
  if (!(options.soft_cap >= 0 && std::isfinite(options.soft_cap)))
    fail<ValueError>("{}: soft_cap is {}; it must be 0 (none) or positive and finite", op, options.soft_cap);
  if (!(options.dropout >= 0 && options.dropout <= 1))
    fail<ValueError>("{}: dropout is {}; it must be from 0 to 1", op, options.dropout);
}

/// The mask as (B or 1, H or 1, Tq or 1, Tk or 1).
Tensor mask_of_rank_4(const Tensor& mask, const Tensor& q, const Tensor& k) {
  if (!mask.defined()) return mask;
  if (mask.dtype() != DType::boolean)
    fail<DTypeError>("{}: mask is {}; it must be bool, true where a query may attend", op, mask.describe());
  const int64_t wanted[] = {q.size(0), q.size(1), q.size(2), k.size(2)};
  Tensor m = mask;
  if (m.dim() == 3) m = unsqueeze(m, 1);
  if (m.dim() == 2) m = unsqueeze(unsqueeze(m, 0), 0);
  bool fits = m.dim() == 4;
  for (int d = 0; fits && d < 4; ++d) fits = m.size(d) == 1 || m.size(d) == wanted[d];
  if (!fits)
    fail<ShapeError>(
        "{}: mask is {}, scores are [{}, {}, {}, {}]; it must be (Tq, Tk), (B, Tq, Tk) or (B or 1, H or 1, Tq, Tk)", op,
        mask.describe(), wanted[0], wanted[1], wanted[2], wanted[3]);
  return m;
}

}  // namespace

Tensor scaled_dot_product_attention(const Tensor& q, const Tensor& k, const Tensor& v, AttentionOptions options) {
  check(q, k, v);
  if (q.dim() < 4) {
    const int at = q.dim() == 2 ? 0 : 1;
    return squeeze(
        scaled_dot_product_attention(unsqueeze(q, at), unsqueeze(k, at), unsqueeze(v, at), std::move(options)), at);
  }
  const Tensor mask = mask_of_rank_4(options.mask, q, k);
  check(options);
  const double width = static_cast<double>(std::max<int64_t>(q.size(3), 1));
  const double scale = options.scale == 0 ? 1 / std::sqrt(width) : options.scale;
  const int64_t window = options.window < k.size(2) ? options.window : 0;  // as long as the keys, it hides none
  const Attention attention{scale, options.causal, window, options.soft_cap};
  if (options.dropout > 0) return attention.unfused(q, k, v, mask, options.dropout);
  return apply(attention, q, k, v, mask);
}

}  // namespace tapestry
