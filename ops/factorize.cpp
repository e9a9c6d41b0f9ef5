// Factorisations whose factors are the result: cholesky, qr, eigh, svd.
// Not the systems that LU solves (linalg.cpp) nor the loops over a batch (kernels/lapack.h).
// Next: softmax.cpp.
#include <algorithm>
#include <cmath>
#include <limits>

#include "../autograd/function.h"
#include "matrices.h"
#include "rows.h"

namespace tapestry {
namespace {

using detail::finite_columns, detail::fresh, detail::per_column, detail::per_row;

// Note [Repeated values]
// Vectors of values that coincide are an arbitrary basis of a plane, and their derivative, which divides by the values' difference, means nothing.
// Values computed from equal ones differ by roundings: up to 10 ε of the largest for sizes of 4 to 600, while the closest two of a random symmetric
// matrix of 600 are 600 ε apart in f32. The line is drawn at 8·√n·ε. Gradients of the values alone divide by nothing, and pass.
double rounding(int64_t n, DType dtype) {
  const double epsilon =
      dtype == DType::f32 ? std::numeric_limits<float>::epsilon() : std::numeric_limits<double>::epsilon();
  return 8 * std::sqrt(static_cast<double>(n)) * epsilon;
}

/// Which matrices of a batch a gradient says something of. While the walk is recorded all do: a zero may be differentiated.
std::vector<bool> matrices_used(const Tensor& g, const Tensor& h) {
  const auto batch = static_cast<size_t>(detail::batch_of(g.defined() ? g : h));
  std::vector<bool> used(batch, grad_enabled());
  for (const Tensor& x : {g, h}) {
    if (!x.defined() || grad_enabled()) continue;
    const auto some = any(not_equal(x, 0.0), {-2, -1}).to_vector<double>();
    for (size_t i = 0; i < batch; ++i) used[i] = used[i] || some[i] != 0;
  }
  return used;
}

/// AutogradError where values whose vectors are used coincide or, where they must be positive, are 0: Note [Repeated values].
void require_separate(const char* op, const char* what, const Shape& shape, const Tensor& values,
                      const std::vector<bool>& used, bool positive) {
  const auto v = values.to_vector<double>();
  const auto n = static_cast<size_t>(values.size(-1));
  for (size_t b = 0; b < used.size(); ++b) {
    if (!used[b]) continue;
    const double* row = v.data() + b * n;
    double largest = 0;
    for (size_t i = 0; i < n; ++i) largest = std::max(largest, std::abs(row[i]));
    const double bound = rounding(values.size(-1), values.dtype()) * largest;
    for (size_t i = 0; i < n; ++i) {
      if (i + 1 < n && std::abs(row[i + 1] - row[i]) <= bound)
        fail<AutogradError>(
            "{}: in backward: {}s {} and {} of {} ({}) coincide ({} and {}), so their vectors have no derivative; use "
            "functions of the values alone, or separate them",
            op, what, i, i + 1, detail::place_in_batch(shape, static_cast<int64_t>(b)),
            to_string(shape, values.dtype()), row[i], row[i + 1]);
      if (positive && row[i] <= bound)
        fail<AutogradError>(
            "{}: in backward: {} {} of {} ({}) is 0 ({}), so its vectors have no derivative; use functions of the "
            "values alone",
            op, what, i, detail::place_in_batch(shape, static_cast<int64_t>(b)), to_string(shape, values.dtype()),
            row[i]);
    }
  }
}

/// 1/x, 0 where x is 0.
Tensor reciprocal_or_zero(const Tensor& x) {
  const Tensor zero = equal(x, 0.0);
  return where(zero, 0.0, reciprocal(masked_fill(x, zero, 1)));
}

Tensor added(const Tensor& a, const Tensor& b) { return a.defined() ? add(a, b) : b; }

/// Murray 2016: with Φ = the lower triangle, its diagonal halved, da = the symmetric part of L⁻ᵀ Φ(Lᵀ g) L⁻¹.
struct Cholesky {
  static constexpr std::string_view name = "cholesky", formula = "y yᵀ = a, y lower triangular",
                                    vjp = "symmetric part of y⁻ᵀ Φ(yᵀ g) y⁻¹, Φ = tril with half the diagonal";
  Tensor forward(Context& c, const Tensor& a) const {
    Tensor y = finite_columns("cholesky", a, kernels::Part::lower);
    detail::dispatch_real(a.dtype(), [&]<class T> {
      const auto fault = kernels::cholesky<T>(detail::batch_of(a), a.size(-1), fresh<T>(y));
      if (fault)
        fail<ValueError>(
            "cholesky: {} ({}) is not positive definite: its leading minor of size {} is not positive; "
            "add a multiple of eye(n)",
            detail::place_in_batch(a.shape(), fault.matrix), a.describe(), fault.place + 1);
    });
    c.save(y);
    return y;
  }
  Grads backward(Context& c, const Tensor& g) const {
    const Tensor l = c.saved(0), t = mT(l);
    const Tensor phi = mul(tril(matmul(t, g)), sub(1, mul(eye(l.size(-1), l.dtype()), 0.5)));
    const Tensor s = solve_triangular(t, mT(solve_triangular(t, phi, true)), true);
    return {mul(add(s, mT(s)), 0.5)};
  }
};

/// Walter and Lehmann 2010, for m ≥ n: da = (dq + q copyltu(m)) r⁻ᵀ with m = r drᵀ − dqᵀ q, copyltu mirroring the lower triangle.
struct Qr {
  static constexpr std::string_view name = "qr", formula = "q r = a, qᵀ q = 1, r upper triangular with a diagonal ≥ 0",
                                    vjp = "(g₀ + q s) r⁻ᵀ, s = lower triangle of r g₁ᵀ − g₀ᵀ q, mirrored";
  std::array<Tensor, 2> forward(Context& c, const Tensor& a) const {
    const int64_t n = a.size(-1);
    Tensor q = finite_columns("qr", a), r = detail::empty_columns(detail::with_last_two(a.shape(), n, n), a.dtype());
    detail::dispatch_real(
        a.dtype(), [&]<class T> { kernels::qr<T>(detail::batch_of(a), a.size(-2), n, fresh<T>(q), fresh<T>(r)); });
    c.save(q, r);
    return {std::move(q), std::move(r)};
  }
  Grads backward(Context& c, std::span<const Tensor> gs) const {
    const Tensor q = c.saved(0), r = c.saved(1);
    require_full_rank(r);
    Tensor m;
    if (gs[1].defined()) m = matmul(r, mT(gs[1]));
    if (gs[0].defined()) m = added(m, neg(matmul(mT(gs[0]), q)));
    const Tensor s = add(tril(m), mT(tril(m, -1))), qs = matmul(q, s);
    return {mT(solve_triangular(r, mT(gs[0].defined() ? add(gs[0], qs) : qs), true))};
  }

 private:
  static void require_full_rank(const Tensor& r) {
    const int64_t n = r.size(-1);
    if (r.numel() == 0) return;
    const auto values = r.detach().to_vector<double>();
    for (int64_t b = 0; b < detail::batch_of(r); ++b) {
      const double* matrix = values.data() + b * n * n;
      double largest = 0;
      for (int64_t i = 0; i < n; ++i) largest = std::max(largest, matrix[i * n + i]);
      for (int64_t i = 0; i < n; ++i)
        if (matrix[i * n + i] <= rounding(n, r.dtype()) * largest)
          fail<AutogradError>(
              "qr: in backward: {} of R ({}) has {} in place {} of its diagonal: the columns are dependent, and Q has "
              "no "
              "derivative; use independent columns",
              detail::place_in_batch(r.shape(), b), r.describe(), matrix[i * n + i], i);
    }
  }
};

struct Eigh {
  static constexpr std::string_view name = "eigh", formula = "a = v diag(λ) vᵀ, λ ascending",
                                    vjp = "v (diag(g₀) + symmetric part of F∘(vᵀ g₁)) vᵀ, Fᵢⱼ = 1/(λⱼ − λᵢ)";
  std::array<Tensor, 2> forward(Context& c, const Tensor& a) const {
    Tensor vectors = finite_columns("eigh", a, kernels::Part::lower),
           values = empty(detail::without_last(a.shape(), 1), a.dtype());
    if (a.numel() > 0)
      detail::dispatch_real(a.dtype(), [&]<class T> {
        if (const auto fault = kernels::eigh<T>(detail::batch_of(a), a.size(-1), fresh<T>(vectors), fresh<T>(values)))
          fail<ValueError>("eigh: {} ({}) did not converge; rescale it",
                           detail::place_in_batch(a.shape(), fault.matrix), a.describe());
      });
    c.save(values, vectors);
    return {std::move(values), std::move(vectors)};
  }
  Grads backward(Context& c, std::span<const Tensor> gs) const {
    const Tensor values = c.saved(0), v = c.saved(1);
    Tensor inner;
    if (gs[0].defined()) inner = mul(per_column(gs[0]), eye(values.size(-1), values.dtype()));
    if (gs[1].defined()) {
      require_separate("eigh", "eigenvalue", v.shape(), values, matrices_used(gs[1], {}), false);
      const Tensor s = mul(reciprocal_or_zero(sub(per_column(values), per_row(values))), matmul(mT(v), gs[1]));
      inner = added(inner, mul(add(s, mT(s)), 0.5));
    }
    return {matmul(matmul(v, inner), mT(v))};
  }
};

/// Townsend 2016.
struct Svd {
  static constexpr std::string_view name = "svd", formula = "a = u diag(s) vᵀ, s descending",
                                    vjp =
                                        "u (F∘skew(uᵀ g₀) s + diag(g₁) + s F∘skew(vᵀ g₂ᵀ)) vᵀ + (1 − u uᵀ) g₀ s⁻¹ vᵀ + "
                                        "u s⁻¹ g₂ (1 − v vᵀ), Fᵢⱼ = 1/(sⱼ² − sᵢ²)";
  std::array<Tensor, 3> forward(Context& c, const Tensor& a) const {
    const int64_t m = a.size(-2), n = a.size(-1), k = std::min(m, n);
    Shape values = detail::without_last(a.shape(), 1);
    values[a.dim() - 2] = k;
    const Tensor copy = finite_columns("svd", a);
    Tensor u = detail::empty_columns(detail::with_last_two(a.shape(), m, k), a.dtype()), s = empty(values, a.dtype()),
           vt = detail::empty_columns(detail::with_last_two(a.shape(), k, n), a.dtype());
    if (a.numel() > 0)
      detail::dispatch_real(a.dtype(), [&]<class T> {
        if (const auto fault =
                kernels::svd<T>(detail::batch_of(a), m, n, fresh<T>(copy), fresh<T>(u), fresh<T>(s), fresh<T>(vt)))
          fail<ValueError>("svd: {} ({}) did not converge; rescale it", detail::place_in_batch(a.shape(), fault.matrix),
                           a.describe());
      });
    c.save(u, s, vt);
    return {std::move(u), std::move(s), std::move(vt)};
  }
  Grads backward(Context& c, std::span<const Tensor> gs) const {
    const Tensor u = c.saved(0), s = c.saved(1), vt = c.saved(2);
    const Tensor &gu = gs[0], &gvt = gs[2];
    Tensor inner, rest;
    if (gs[1].defined()) inner = mul(per_column(gs[1]), eye(s.size(-1), s.dtype()));
    if (gu.defined() || gvt.defined()) {
      require_separate("svd", "singular value", detail::with_last_two(u.shape(), u.size(-2), vt.size(-1)), s,
                       matrices_used(gu, gvt), true);
      const Tensor f =
          reciprocal_or_zero(mul(sub(per_column(s), per_row(s)), add(per_column(s), per_row(s))));  // 1/(sⱼ² − sᵢ²)
      const auto rotation = [&](const Tensor& p) { return mul(f, sub(p, mT(p))); };
      if (gu.defined()) {
        inner = added(inner, mul(rotation(matmul(mT(u), gu)), per_column(s)));
        const Tensor t = mul(gu, reciprocal_or_zero(per_column(s)));
        if (u.size(-2) > u.size(-1)) rest = matmul(sub(t, matmul(u, matmul(mT(u), t))), vt);
      }
      if (gvt.defined()) {
        inner = added(inner, mul(per_row(s), rotation(matmul(vt, mT(gvt)))));
        const Tensor t = mul(reciprocal_or_zero(per_row(s)), gvt);
        if (vt.size(-1) > vt.size(-2)) rest = added(rest, matmul(u, sub(t, matmul(matmul(t, mT(vt)), vt))));
      }
    }
    return {added(rest, matmul(matmul(u, inner), vt))};
  }
};

}  // namespace

Tensor cholesky(const Tensor& a) {
  detail::require_square("cholesky", a);
  return apply(Cholesky{}, a);
}

std::array<Tensor, 2> qr(const Tensor& a) {
  detail::require_matrices("qr", a);
  const int64_t m = a.size(-2), n = a.size(-1);
  if (m >= n) return apply(Qr{}, a);
  // A wide matrix (x | y) has q r = x and the rest of R is qᵀ y.
  auto [q, r] = apply(Qr{}, slice(a, -1, 0, m));
  return {q, cat({r, matmul(mT(q), slice(a, -1, m, n))}, -1)};
}

std::array<Tensor, 2> eigh(const Tensor& a) {
  detail::require_square("eigh", a);
  return apply(Eigh{}, a);
}

std::array<Tensor, 3> svd(const Tensor& a) {
  detail::require_matrices("svd", a);
  return apply(Svd{}, a);
}

}  // namespace tapestry
