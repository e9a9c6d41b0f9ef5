// Systems of linear equations and what comes from the same LU factorisation: solve, solve_triangular, inverse, det, slogdet.
// Not the factorisations whose factors are the result (factorize.cpp) nor the loops over a batch (kernels/lapack.h).
// Next: factorize.cpp.
#include <algorithm>

#include "../autograd/function.h"
#include "error_text.h"
#include "matrices.h"
#include "rows.h"

namespace tapestry {
namespace {

using detail::column_major, detail::finite_columns, detail::fresh;

[[noreturn]] void fail_singular(const char* op, const Tensor& a, const kernels::Fault& fault) {
  fail<ValueError>("{}: {} ({}) is singular: pivot {} is 0; use svd, or add a multiple of eye(n)", op,
                   detail::place_in_batch(a.shape(), fault.matrix), a.describe(), fault.place);
}

/// a⁻¹b for equal batch dims.
Tensor solved(const char* op, const Tensor& a, const Tensor& b) {
  const Tensor factors = finite_columns(op, a);
  Tensor y = column_major(b);
  detail::dispatch_real(a.dtype(), [&]<class T> {
    const auto fault = kernels::solve<T>(detail::batch_of(a), a.size(-1), b.size(-1), fresh<T>(factors), fresh<T>(y));
    if (fault) fail_singular(op, a, fault);
  });
  return y;
}

struct Solve {
  static constexpr std::string_view name = "solve", formula = "y = a⁻¹ b", vjp = "db = a⁻ᵀ g, da = −db yᵀ";
  Tensor forward(Context& c, const Tensor& a, const Tensor& b) const {
    Tensor y = solved("solve", a, b);
    c.save(a, c.needs(0) ? y : Tensor{});
    return y;
  }
  Grads backward(Context& c, const Tensor& g) const {
    const Tensor db = solve(mT(c.saved(0)), g);
    return grads(
        c, [&] { return neg(matmul(db, mT(c.saved(1)))); }, [&] { return db; });
  }
};

struct SolveTriangular {
  static constexpr std::string_view name = "solve_triangular", formula = "y = a⁻¹ b for triangular a",
                                    vjp = "db = a⁻ᵀ g, da = the triangle of −db yᵀ";
  bool upper, unit_diagonal;
  Tensor forward(Context& c, const Tensor& a, const Tensor& b) const {
    const Tensor triangle = finite_columns("solve_triangular", a, upper ? kernels::Part::upper : kernels::Part::lower);
    Tensor y = column_major(b);
    detail::dispatch_real(a.dtype(), [&]<class T> {
      const auto fault = kernels::solve_triangular<T>(detail::batch_of(a), a.size(-1), b.size(-1), upper, unit_diagonal,
                                                      fresh<T>(triangle), fresh<T>(y));
      if (fault)
        fail<ValueError>(
            "solve_triangular: {} ({}) is singular: element {} of its diagonal is 0; add a multiple of eye(n)",
            detail::place_in_batch(a.shape(), fault.matrix), a.describe(), fault.place);
    });
    c.save(a, c.needs(0) ? y : Tensor{});
    return y;
  }
  Grads backward(Context& c, const Tensor& g) const {
    const Tensor db = solve_triangular(mT(c.saved(0)), g, !upper, unit_diagonal);
    const int64_t above = unit_diagonal ? 1 : 0;
    return grads(
        c,
        [&] {
          const Tensor da = neg(matmul(db, mT(c.saved(1))));
          return upper ? triu(da, above) : tril(da, -above);
        },
        [&] { return db; });
  }
};

struct Inverse {
  static constexpr std::string_view name = "inverse", formula = "y = a⁻¹", vjp = "−yᵀ g yᵀ";
  Tensor forward(Context& c, const Tensor& a) const {
    Tensor y = solved("inverse", a, expand(eye(a.size(-1), a.dtype()), a.shape()));
    c.save(y);
    return y;
  }
  Grads backward(Context& c, const Tensor& g) const {
    const Tensor t = mT(c.saved(0));
    return {neg(matmul(t, matmul(g, t)))};
  }
};

/// adj(a) = (−1)ⁿ⁻¹ Mₙ with M₁ = 1, Mₖ₊₁ = a Mₖ − tr(a Mₖ)/k (Faddeev and LeVerrier): a polynomial, so that every derivative exists everywhere.
Tensor adjugate(const Tensor& a) {
  const int64_t n = a.size(-1);
  const Tensor one = eye(n, a.dtype());
  Tensor m = expand(one, a.shape());
  for (int64_t k = 1; k < n; ++k) {
    const Tensor am = matmul(a, m);
    m = am - mul(detail::per_matrix(div(sum(mul(am, one), {-2, -1}), static_cast<double>(k))), one);
  }
  return n % 2 == 0 ? neg(m) : m;
}

/// ∂det a/∂a. Higher derivatives go through the adjugate where the matrix is small, else through det(a)·a⁻ᵀ.
struct Cofactors {
  static constexpr std::string_view name = "cofactors", formula = "y = adj(a)ᵀ", vjp = "through adj(a) or det(a)·a⁻ᵀ";
  static constexpr int64_t small = 8;

  Tensor composite(const Tensor& a) const {
    if (a.size(-1) <= small) return mT(adjugate(a));
    const Tensor sign = slogdet(a.detach())[0];
    if (any(equal(sign, 0.0)).item<bool>())
      fail<AutogradError>(
          "det: its second derivative at a singular matrix ({}) is known up to size {}; add a multiple of eye(n)",
          a.describe(), small);
    return mul(detail::per_matrix(det(a)), mT(inverse(a)));
  }
  Tensor forward(Context&, const Tensor& a) const {
    Tensor y = column_major(a);
    if (y.numel() == 0) return y;
    detail::dispatch_real(a.dtype(), [&]<class T> {
      if (const auto fault = kernels::cofactors<T>(detail::batch_of(a), a.size(-1), fresh<T>(y)))
        fail<ValueError>("det: the singular values of {} ({}), which its gradient needs, did not converge",
                         detail::place_in_batch(a.shape(), fault.matrix), a.describe());
    });
    return y;
  }
};

struct Det {
  static constexpr std::string_view name = "det", formula = "y = det a", vjp = "g·adj(a)ᵀ, singular or not";
  Tensor forward(Context& c, const Tensor& a) const {
    const Tensor lu = finite_columns("det", a);
    Tensor y = empty(detail::without_last(a.shape(), 2), a.dtype());
    detail::dispatch_real(a.dtype(), [&]<class T> {
      kernels::determinant<T>(detail::batch_of(a), a.size(-1), fresh<T>(lu), fresh<T>(y), nullptr, nullptr);
    });
    c.save(a);
    return y;
  }
  Grads backward(Context& c, const Tensor& g) const {
    return {mul(detail::per_matrix(g), apply(Cofactors{}, c.saved(0)))};
  }
};

struct SLogDet {
  static constexpr std::string_view name = "slogdet", formula = "sign and ln of |det a|", vjp = "g₁·a⁻ᵀ";
  std::array<Tensor, 2> forward(Context& c, const Tensor& a) const {
    const Tensor lu = finite_columns("slogdet", a);
    const Shape shape = detail::without_last(a.shape(), 2);
    Tensor sign = empty(shape, a.dtype()), log_abs = empty(shape, a.dtype());
    detail::dispatch_real(a.dtype(), [&]<class T> {
      kernels::determinant<T>(detail::batch_of(a), a.size(-1), fresh<T>(lu), nullptr, fresh<T>(sign),
                              fresh<T>(log_abs));
    });
    c.save(a, sign);
    return {std::move(sign), std::move(log_abs)};
  }
  Grads backward(Context& c, std::span<const Tensor> gs) const {
    const Tensor& g = gs[1];
    if (!g.defined()) return {Tensor{}};
    const Tensor a = c.saved(0), singular = equal(c.saved(1), 0.0);
    // While the walk is recorded an upstream 0 may be differentiated, too.
    const auto wanted = (grad_enabled() ? singular : logical_and(singular, not_equal(g, 0.0))).to_vector<double>();
    if (const auto at = std::find(wanted.begin(), wanted.end(), 1.0); at != wanted.end())
      fail<AutogradError>(
          "slogdet: in backward: {} ({}) is singular, where ln|det| has no derivative; leave it out of the loss",
          detail::place_in_batch(a.shape(), at - wanted.begin()), a.describe());
    const Tensor regular = where(detail::per_matrix(singular), eye(a.size(-1), a.dtype()), a);
    return {mul(detail::per_matrix(g), mT(inverse(regular)))};
  }
};

/// Checks a and b, gives them one batch and hands them to `solve`.
template <class F>
Tensor with_one_batch(const char* op, const Tensor& a, const Tensor& b, const F& solve) {
  detail::require_square(op, a);
  detail::require_same_dtype(op, a, b);
  if (b.dim() == 0)
    fail<ShapeError>("{}: a is {}, b is {}; b must be a vector (n) or a matrix (…, n, k)", op, a.describe(),
                     b.describe());
  const bool vector = b.dim() == 1;
  const Tensor right = vector ? unsqueeze(b, 1) : b;
  if (right.size(-2) != a.size(-1))
    fail<ShapeError>("{}: sizes differ: a is {}, b is {} (a.size(-1) = {}, b.size({}) = {})", op, a.describe(),
                     b.describe(), a.size(-1), vector ? -1 : -2, right.size(-2));
  if (vector) return squeeze(with_one_batch(op, a, right, solve), -1);
  if (a.dim() == 2 && right.dim() > 2) {  // one factorisation for all: the batch becomes more columns
    Dims there = {right.dim() - 2}, back;
    for (int d = 0; d + 2 < right.dim(); ++d) {
      there.push_back(d);
      back.push_back(d + 1);
    }
    there.push_back(right.dim() - 1);
    back.push_back(0);
    back.push_back(right.dim() - 1);
    const Tensor rows_first = permute(right, there);
    const int64_t n = a.size(-1), k = n == 0 ? 0 : rows_first.numel() / n;
    return permute(reshape(solve(a, reshape(rows_first, {n, k})), rows_first.shape()), back);
  }
  const Shape batch = broadcast_shapes(op, detail::without_last(a.shape(), 2), detail::without_last(right.shape(), 2));
  const auto in_batch = [&](const Tensor& x) {
    Shape shape = batch;
    shape.push_back(x.size(-2));
    shape.push_back(x.size(-1));
    return expand(x, shape);
  };
  return solve(in_batch(a), in_batch(right));
}

}  // namespace

Tensor solve(const Tensor& a, const Tensor& b) {
  return with_one_batch("solve", a, b, [](const Tensor& x, const Tensor& y) { return apply(Solve{}, x, y); });
}

Tensor solve_triangular(const Tensor& a, const Tensor& b, bool upper, bool unit_diagonal) {
  return with_one_batch("solve_triangular", a, b, [&](const Tensor& x, const Tensor& y) {
    return apply(SolveTriangular{upper, unit_diagonal}, x, y);
  });
}

Tensor inverse(const Tensor& a) {
  detail::require_square("inverse", a);
  return apply(Inverse{}, a);
}

Tensor det(const Tensor& a) {
  detail::require_square("det", a);
  return apply(Det{}, a);
}

std::array<Tensor, 2> slogdet(const Tensor& a) {
  detail::require_square("slogdet", a);
  return apply(SLogDet{}, a);
}

}  // namespace tapestry
