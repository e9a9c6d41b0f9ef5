// Running sums, products, largest and smallest elements along a dim; and the product over dims, whose gradient is made of running products.
// The derivatives of running products are linear recurrences, which are exact with any number of zeros and are each other's derivatives.
// Next: sort.cpp.
#include <algorithm>
#include <limits>

#include "../autograd/function.h"
#include "error_text.h"
#include "kernels/scan.h"
#include "reduction.h"

namespace tapestry {
namespace {

using namespace detail;  // reduction.h
using kernels::Scan;

constexpr double inf = std::numeric_limits<double>::infinity();

kernels::ScanOperand operand(const Tensor& x) { return {x.raw_data(), x.strides()}; }

Tensor scanned(Scan what, const Tensor& x, int dim, bool reverse) {
  const Tensor y = empty(x.shape(), x.dtype());
  kernels::scan(what, x.shape(), dim, x.dtype(), operand(x), operand(y), reverse);
  return y;
}

/// y with y[i] = x[i − 1] (x[i + 1] when `reverse`) along dim, `value` where that is outside: what is there before x[i] is taken in.
Tensor before(const Tensor& x, int dim, bool reverse, double value) {
  if (x.numel() == 0) return x;
  return reverse ? pad(x, dim, -1, 1, value) : pad(x, dim, 1, -1, value);
}

struct Cumsum {
  static constexpr std::string_view name = "cumsum", formula = "y[i] = Σ x[j] over j ≤ i", vjp = "Σ g[j] over j ≥ i";
  int dim;
  bool reverse;
  Tensor forward(Context&, const Tensor& x) const { return scanned(Scan::sum, x, dim, reverse); }
  Grads backward(Context& c, const Tensor& g) const {
    return grads(c, [&] { return apply(Cumsum{dim, !reverse}, g); });
  }
};

struct LinearScan {
  static constexpr std::string_view name = "linear_scan", formula = "h[i] = b[i] + a[i]·h[i − 1]",
                                    vjp = "b: s[i] = g[i] + a[i + 1]·s[i + 1]; a: s[i]·h[i − 1]";
  int dim;
  bool reverse;
  Tensor forward(Context& c, const Tensor& a, const Tensor& b) const {
    const Tensor h = empty(b.shape(), b.dtype());
    kernels::linear_scan(b.shape(), dim, b.dtype(), operand(a), operand(b), operand(h), reverse);
    c.save(a, h);
    return h;
  }
  Grads backward(Context& c, const Tensor& g) const {
    const Tensor s = apply(LinearScan{dim, !reverse}, before(c.saved(0), dim, !reverse, 0), g);
    return grads(
        c, [&] { return mul0(s, before(c.saved(1), dim, reverse, 0)); }, [&] { return s; });
  }
};

struct Cumprod {
  static constexpr std::string_view name = "cumprod", formula = "y[i] = Π x[j] over j ≤ i",
                                    vjp = "y[i − 1]·s[i], s[i] = g[i] + x[i + 1]·s[i + 1]";
  int dim;
  bool reverse = false;
  Tensor forward(Context& c, const Tensor& x) const {
    const Tensor y = scanned(Scan::prod, x, dim, reverse);
    c.save(x, y);
    return y;
  }
  Grads backward(Context& c, const Tensor& g) const {
    return grads(c, [&] {
      const Tensor s = apply(LinearScan{dim, !reverse}, before(c.saved(0), dim, !reverse, 0), g);
      return mul0(s, before(c.saved(1), dim, reverse, 1));
    });
  }
};

/// The dims that p keeps, then those it reduces.
Dims kept_first(const Plan& p) {
  Dims order;
  for (int d = 0; d < p.from.rank(); ++d)
    if (std::find(p.dims.begin(), p.dims.end(), d) == p.dims.end()) order.push_back(d);
  for (const int64_t d : p.dims) order.push_back(d);
  return order;
}

/// x with the dims that p reduces as one, last.
Tensor reduced_last(const Tensor& x, const Plan& p) {
  const Tensor y = permute(x, kept_first(p));
  Shape shape = y.shape();
  while (shape.rank() > p.from.rank() - p.dims.rank()) shape.erase(shape.rank() - 1);
  shape.push_back(p.count);
  return reshape(y, shape);
}

/// The way back.
Tensor reduced_in_place(const Tensor& y, const Plan& p) {
  const Dims order = kept_first(p);
  Shape shape;
  Dims back = order;
  for (int i = 0; i < order.rank(); ++i) {
    shape.push_back(p.from[static_cast<int>(order[i])]);
    back[static_cast<int>(order[i])] = i;
  }
  return permute(reshape(y, shape), back);
}

struct Prod {
  static constexpr std::string_view name = "prod", formula = "y = Π x over dims",
                                    vjp = "g·(product of the others: of those before times of those behind)";
  Plan p;
  Tensor forward(Context& c, const Tensor& x) const {
    c.save(x);
    return reduced(kernels::Reduce::prod, x, p, is_floating(x.dtype()) ? x.dtype() : DType::i64);
  }
  Grads backward(Context& c, const Tensor& g) const {
    return grads(c, [&] {
      if (p.count == 0) return p.spread(g);
      const Tensor x = reduced_last(c.saved(0), p);
      const int last = x.dim() - 1;
      const auto up_to = [&](bool reverse) { return before(apply(Cumprod{last, reverse}, x), last, reverse, 1); };
      return mul0(p.spread(g), reduced_in_place(mul(up_to(false), up_to(true)), p));
    });
  }
};

struct LogCumSumExp {
  static constexpr std::string_view name = "logcumsumexp", formula = "y[i] = ln Σ e^x[j] over j ≤ i",
                                    vjp = "e^(x[i] − y[i])·s[i], s[i] = g[i] + e^(y[i] − y[i + 1])·s[i + 1]";
  int dim;
  Tensor forward(Context& c, const Tensor& x) const {
    c.save(x);
    return scanned(Scan::logsumexp, x, dim, false);
  }
  // In f64: a y rounded to f32 is off by up to |y|·2⁻²⁴, and so is its exponential. No factor is above 1, as y does not fall.
  Grads backward(Context& c, const Tensor& g) const {
    return grads(c, [&] {
      const Tensor x = to(c.saved(0), DType::f64), y = logcumsumexp(x, dim);
      const Tensor finite = masked_fill(y, equal(y, -inf), 0);  // e^(−inf − 0) is 0
      const Tensor step = sub(finite, before(finite, dim, true, inf));
      const Tensor keep = exp(masked_fill(step, isinf(y), -inf));
      const Tensor s = apply(LinearScan{dim, true}, keep, to(g, DType::f64));
      return to(mul0(s, exp(sub(x, finite))), g.dtype());
    });
  }
};

template <bool largest>
struct CumExtreme {
  static constexpr std::string_view name = largest ? "cummax" : "cummin",
                                    formula = largest ? "y[i] = largest x[j] over j ≤ i, and the latest such j"
                                                      : "y[i] = smallest x[j] over j ≤ i, and the latest such j",
                                    vjp = "g[i] added up at j";
  int dim;
  std::array<Tensor, 2> forward(Context& c, const Tensor& x) const {
    Tensor y = empty(x.shape(), x.dtype()), index = empty(x.shape(), DType::i64);
    kernels::scan_extreme(largest, x.shape(), dim, x.dtype(), operand(x), operand(y), operand(index));
    c.save(index.detach());
    return {std::move(y), std::move(index)};
  }
  Grads backward(Context& c, std::span<const Tensor> gs) const {
    if (!gs[0].defined()) return {Tensor{}};
    return grads(c, [&] {
      const Tensor index = c.saved(0);
      return scatter_add(expand(scalar(0, gs[0].dtype()), index.shape()), dim, index, gs[0]);
    });
  }
};

/// Sums and products of bools are whole numbers.
Tensor counted(const Tensor& x) { return x.dtype() == DType::boolean ? to(x, DType::i64) : x; }

}  // namespace

Tensor cumsum(const Tensor& x, int64_t dim) {
  const int d = dim_of("cumsum", x, dim);
  return apply(Cumsum{d, false}, counted(x));
}
Tensor diff(const Tensor& x, int64_t dim) {
  const int d = dim_of("diff", x, dim);
  return sub(slice(x, d, 1, {}), slice(x, d, 0, -1));
}
Tensor cumprod(const Tensor& x, int64_t dim) {
  const int d = dim_of("cumprod", x, dim);
  return apply(Cumprod{d}, counted(x));
}
Tensor logcumsumexp(const Tensor& x, int64_t dim) {
  require_floating("logcumsumexp", x);
  return apply(LogCumSumExp{dim_of("logcumsumexp", x, dim)}, x);
}
std::array<Tensor, 2> cummax(const Tensor& x, int64_t dim) {
  return apply(CumExtreme<true>{dim_of("cummax", x, dim)}, x);
}
std::array<Tensor, 2> cummin(const Tensor& x, int64_t dim) {
  return apply(CumExtreme<false>{dim_of("cummin", x, dim)}, x);
}

Tensor prod(const Tensor& x, const Dims& dims, bool keepdim) { return apply(Prod{plan("prod", x, dims, keepdim)}, x); }

}  // namespace tapestry
