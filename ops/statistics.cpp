// Variance, standard deviation and norms over any set of dims.
// Not the order statistics median and quantile (sort.cpp).
// Next: scan.cpp.
#include <cmath>
#include <limits>

#include "../autograd/function.h"
#include "error_text.h"
#include "reduction.h"

namespace tapestry {
namespace {

using namespace detail;  // reduction.h
using kernels::Reduce;

/// Σ(x − mean)²/(n − correction), and its derivative.
struct Spread {
  Plan p;
  double divisor;  ///< NaN where n ≤ correction

  Spread(const Plan& plan, double correction) : p(plan), divisor(static_cast<double>(plan.count) - correction) {
    if (!(divisor > 0)) divisor = std::numeric_limits<double>::quiet_NaN();
  }
  /// In f64, to be rounded once.
  [[nodiscard]] Tensor variance(const Tensor& x) const {
    return div(reduced(Reduce::deviation, x, p, DType::f64), divisor);
  }
  [[nodiscard]] Tensor slope(const Tensor& x, double factor) const {
    return mul(sub(x, mean(x, p.dims, true)), factor / divisor);
  }
};

struct Var {
  static constexpr std::string_view name = "var", formula = "y = Σ(x − mean)²/(n − correction) over dims",
                                    vjp = "g·2(x − mean)/(n − correction)";
  Spread s;
  Tensor forward(Context& c, const Tensor& x) const {
    c.save(x);
    return to(s.variance(x.detach()), x.dtype());
  }
  Grads backward(Context& c, const Tensor& g) const {
    return grads(c, [&] { return mul0(s.p.spread(g), s.slope(c.saved(0), 2)); });
  }
};

struct StdDev {
  static constexpr std::string_view name = "stddev", formula = "y = √(Σ(x − mean)²/(n − correction)) over dims",
                                    vjp = "g·(x − mean)/((n − correction)·y), 0 where y = 0";
  Spread s;
  Tensor forward(Context& c, const Tensor& x) const {
    const Tensor y = to(sqrt(s.variance(x.detach())), x.dtype());
    c.save(x, y);
    return y;
  }
  Grads backward(Context& c, const Tensor& g) const {
    return grads(c, [&] {
      const Tensor y = c.saved(1), zero = equal(y, 0.0);
      const Tensor by_y = div(masked_fill(g, zero, 0), masked_fill(y, zero, 1));
      return mul0(s.p.spread(by_y), s.slope(c.saved(0), 1));
    });
  }
};

struct Norm {
  static constexpr std::string_view name = "norm", formula = "y = √(Σ x²) over dims", vjp = "g·x/y, 0 where y = 0";
  Plan p;
  Tensor forward(Context& c, const Tensor& x) const {
    const Tensor y = reduced(Reduce::norm, x, p, x.dtype());
    c.save(x, y);
    return y;
  }
  Grads backward(Context& c, const Tensor& g) const {
    return grads(c, [&] {
      const Tensor x = c.saved(0), y = reshape(c.saved(1), p.kept), zero = equal(y, 0.0);
      return mul0(masked_fill(reshape(g, p.kept), zero, 0), div(x, masked_fill(y, zero, 1)));
    });
  }
};

struct PowerNorm {
  static constexpr std::string_view name = "vector_norm", formula = "y = (Σ|x|ᵖ)^(1/p) over dims",
                                    vjp = "g·sign(x)·(|x|/y)^(p − 1), 0 where x = 0";
  Plan p;
  double power;
  Tensor forward(Context& c, const Tensor& x) const {
    const Tensor wide = to(x.detach(), x.dtype() == DType::bf16 ? DType::f32 : x.dtype());
    const Tensor y = p.count == 0 ? zeros(p.result, x.dtype()) : to(scaled(wide), x.dtype());
    c.save(x, y);
    return y;
  }
  /// max·(Σ(|x|/max)ᵖ)^(1/p): neither overflows nor vanishes before the root.
  [[nodiscard]] Tensor scaled(const Tensor& x) const {
    const Tensor size = abs(x), largest = amax(size, p.dims, true);
    const Tensor unit = where(logical_and(greater(largest, 0), isfinite(largest)), largest, 1);
    return reshape(mul(unit, pow(sum(pow(div(size, unit), power), p.dims, true), 1 / power)), p.result);
  }
  Grads backward(Context& c, const Tensor& g) const {
    return grads(c, [&] {
      const Tensor x = c.saved(0), y = reshape(c.saved(1), p.kept), zero = equal(x, 0.0);
      const Tensor ratio = div(masked_fill(abs(x), zero, 1), masked_fill(y, equal(y, 0.0), 1));
      return mul0(masked_fill(p.spread(g), zero, 0), mul(sign(x), pow(ratio, power - 1)));
    });
  }
};

Spread spread(const char* op, const Tensor& x, const Dims& dims, bool keepdim, double correction) {
  require_floating(op, x);
  if (!std::isfinite(correction))
    fail<ValueError>("{}: correction is {}; use a number, 1 for a sample and 0 for a whole population", op, correction);
  return {plan(op, x, dims, keepdim), correction};
}

}  // namespace

Tensor var(const Tensor& x, const Dims& dims, bool keepdim, double correction) {
  return apply(Var{spread("var", x, dims, keepdim, correction)}, x);
}
Tensor stddev(const Tensor& x, const Dims& dims, bool keepdim, double correction) {
  return apply(StdDev{spread("stddev", x, dims, keepdim, correction)}, x);
}

Tensor norm(const Tensor& x, const Dims& dims, bool keepdim) {
  require_floating("norm", x);
  return apply(Norm{plan("norm", x, dims, keepdim)}, x);
}

Tensor vector_norm(const Tensor& x, double p, const Dims& dims, bool keepdim) {
  require_floating("vector_norm", x);
  if (!(p >= 0) && p != -INFINITY) fail<ValueError>("vector_norm: p is {}; use p ≥ 0, inf or -inf", p);
  const Plan by = plan("vector_norm", x, dims, keepdim);
  if (std::isinf(p)) {
    require_elements("vector_norm", x, by);
    return p > 0 ? amax(abs(x), dims, keepdim) : amin(abs(x), dims, keepdim);
  }
  if (p == 0) return sum(abs(sign(x)), dims, keepdim);
  if (p == 1) return sum(abs(x), dims, keepdim);
  return p == 2 ? norm(x, dims, keepdim) : apply(PowerNorm{by, p}, x);
}

Tensor normalize(const Tensor& x, double p, int64_t dim, double eps) {
  require_floating("normalize", x);
  if (!(p >= 0) && p != -INFINITY) fail<ValueError>("normalize: p is {}; use p ≥ 0, inf or -inf", p);
  if (!(eps >= 0)) fail<ValueError>("normalize: eps is {}; it must be 0 or more", eps);
  const int d = dim_of("normalize", x, dim);
  if (x.dtype() == DType::bf16) return to(normalize(to(x, DType::f32), p, d, eps), DType::bf16);
  return div(x, maximum(vector_norm(x, p, {d}, true), eps));
}

}  // namespace tapestry
