// Reductions over any set of dims: sum, sum_to, mean, amax, amin, max, min, argmax, argmin, any, all, count_nonzero, logsumexp.
// Each is one kernel call (kernels/reduce.h); the derivative of a sum is expand, so that nothing is copied.
// Next: statistics.cpp.
#include <limits>

#include "../autograd/function.h"
#include "error_text.h"
#include "reduction.h"

namespace tapestry {
namespace {

using namespace detail;  // reduction.h
using kernels::Reduce;

struct Sum {
  static constexpr std::string_view name = "sum", formula = "y = Σ x over dims", vjp = "expand(g, x.shape)";
  Plan p;
  Tensor forward(Context&, const Tensor& x) const {
    return reduced(Reduce::sum, x, p, is_floating(x.dtype()) ? x.dtype() : DType::i64);
  }
  Grads backward(Context& c, const Tensor& g) const {
    return grads(c, [&] { return p.spread(g); });
  }
};

struct Mean {
  static constexpr std::string_view name = "mean", formula = "y = Σ x/n over dims", vjp = "expand(g/n, x.shape)";
  Plan p;
  Tensor forward(Context&, const Tensor& x) const { return reduced(Reduce::mean, x, p, x.dtype()); }
  Grads backward(Context& c, const Tensor& g) const {
    return grads(c, [&] { return p.spread(div(g, static_cast<double>(p.count))); });
  }
};

template <bool largest>
struct Extreme {
  static constexpr std::string_view name = largest ? "amax" : "amin",
                                    formula = largest ? "y = largest x over dims" : "y = smallest x over dims",
                                    vjp = "g/(number of ties) where x = y, else 0";
  Plan p;
  Tensor forward(Context& c, const Tensor& x) const {
    const Tensor y = reduced(largest ? Reduce::max : Reduce::min, x, p, x.dtype());
    c.save(x, y);
    return y;
  }
  Grads backward(Context& c, const Tensor& g) const {
    return grads(c, [&] {
      const Tensor x = c.saved(0), y = reshape(c.saved(1), p.kept);
      const Tensor is_best = logical_or(equal(x, y), isnan(x));  // a NaN is the result wherever there is one
      const Tensor ties = to(sum(is_best, p.dims, true), g.dtype());
      return where(is_best, div(reshape(g, p.kept), ties), 0.0);
    });
  }
};

template <bool largest>
struct ExtremeAlong {
  static constexpr std::string_view name = largest ? "max" : "min",
                                    formula = largest ? "y = largest x along dim, i = its first index"
                                                      : "y = smallest x along dim, i = its first index",
                                    vjp = "g at i, else 0";
  Plan p;
  std::array<Tensor, 2> forward(Context& c, const Tensor& x) const {
    Tensor y = empty(p.result, x.dtype()), index = empty(p.result, DType::i64);
    kernels::reduce_index(largest ? Reduce::max : Reduce::min, reducible(x, p), y.body()->storage->data,
                          static_cast<int64_t*>(index.body()->storage->data));
    c.save(index.detach());
    return {std::move(y), std::move(index)};
  }
  Grads backward(Context& c, std::span<const Tensor> gs) const {
    if (!gs[0].defined()) return {Tensor{}};
    return grads(c, [&] {
      return scatter_add(expand(scalar(0, gs[0].dtype()), p.from), p.dims[0], reshape(c.saved(0), p.kept),
                         reshape(gs[0], p.kept));
    });
  }
};

struct LogSumExp {
  static constexpr std::string_view name = "logsumexp", formula = "y = ln Σ eˣ over dims",
                                    vjp = "g·e^(x − y), 0 where y = −inf";
  Plan p;
  Tensor forward(Context& c, const Tensor& x) const {
    const Tensor y = reduced(Reduce::logsumexp, x, p, x.dtype());
    c.save(x, y);
    return y;
  }
  Grads backward(Context& c, const Tensor& g) const {
    return grads(c, [&] {
      const Tensor x = c.saved(0), y = reshape(c.saved(1), p.kept);
      const Tensor finite =
          masked_fill(y, equal(y, -std::numeric_limits<double>::infinity()), 0);  // e^(−inf − 0) is the 0 we want
      const Tensor e = exp(sub(x, finite)), total = sum(e, p.dims, true);
      // y was rounded, by up to |y|·2⁻²⁴ in f32: all of e is off by one factor, which the sum takes out again.
      return mul0(reshape(g, p.kept), div(e, where(greater(total, 0), total, 1)));
    });
  }
};

template <bool largest>
Tensor extreme(const char* op, const Tensor& x, const Dims& dims, bool keepdim) {
  const Plan p = plan(op, x, dims, keepdim);
  require_elements(op, x, p);
  return apply(Extreme<largest>{p}, x);
}

template <bool largest>
std::array<Tensor, 2> extreme_along(const char* op, const Tensor& x, int64_t dim, bool keepdim) {
  const Plan p = plan(op, x, {dim}, keepdim);
  require_elements(op, x, p);
  return apply(ExtremeAlong<largest>{p}, x);
}

Tensor index_of(const char* op, Reduce what, const Tensor& x, std::optional<int64_t> dim, bool keepdim) {
  const Plan p = plan(op, x, dim ? Dims{*dim} : Dims{}, keepdim);
  require_elements(op, x, p);
  const Tensor index = empty(p.result, DType::i64);
  kernels::reduce_index(what, reducible(x, p), nullptr, static_cast<int64_t*>(index.body()->storage->data));
  return index;
}

}  // namespace

Tensor sum(const Tensor& x, const Dims& dims, bool keepdim) { return apply(Sum{plan("sum", x, dims, keepdim)}, x); }

Tensor sum_to(const Tensor& x, const Shape& shape) {
  detail::require_defined("sum_to", x);
  if (shape == x.shape()) return x;
  const int lead = x.dim() - shape.rank();
  if (lead < 0)
    fail<ShapeError>("sum_to: {} cannot be summed to the higher rank of {}; expand() adds dims", x.describe(),
                     to_string(shape));
  Dims dims;
  for (int d = 0; d < x.dim(); ++d) {
    const int64_t to = d < lead ? 1 : shape[d - lead];
    if (to != 1 && to != x.shape()[d])
      fail<ShapeError>("sum_to: {} cannot be summed to {} (dim {}: {} vs {}); a size stays or becomes 1", x.describe(),
                       to_string(shape), d - x.dim(), x.shape()[d], to);
    if (d < lead || to != x.shape()[d]) dims.push_back(d);
  }
  Plan p(x, dims);
  p.result = shape;
  return apply(Sum{p}, x);
}

Tensor mean(const Tensor& x, const Dims& dims, bool keepdim) {
  detail::require_floating("mean", x);
  return apply(Mean{plan("mean", x, dims, keepdim)}, x);
}

Tensor amax(const Tensor& x, const Dims& dims, bool keepdim) { return extreme<true>("amax", x, dims, keepdim); }
Tensor amin(const Tensor& x, const Dims& dims, bool keepdim) { return extreme<false>("amin", x, dims, keepdim); }
Tensor max(const Tensor& x) { return extreme<true>("max", x, {}, false); }
Tensor min(const Tensor& x) { return extreme<false>("min", x, {}, false); }
std::array<Tensor, 2> max(const Tensor& x, int64_t dim, bool keepdim) {
  return extreme_along<true>("max", x, dim, keepdim);
}
std::array<Tensor, 2> min(const Tensor& x, int64_t dim, bool keepdim) {
  return extreme_along<false>("min", x, dim, keepdim);
}
Tensor argmax(const Tensor& x, std::optional<int64_t> dim, bool keepdim) {
  return index_of("argmax", Reduce::max, x, dim, keepdim);
}
Tensor argmin(const Tensor& x, std::optional<int64_t> dim, bool keepdim) {
  return index_of("argmin", Reduce::min, x, dim, keepdim);
}

Tensor any(const Tensor& x, const Dims& dims, bool keepdim) {
  return reduced(Reduce::any, x, plan("any", x, dims, keepdim), DType::boolean);
}
Tensor all(const Tensor& x, const Dims& dims, bool keepdim) {
  return reduced(Reduce::all, x, plan("all", x, dims, keepdim), DType::boolean);
}

Tensor logsumexp(const Tensor& x, const Dims& dims, bool keepdim) {
  detail::require_floating("logsumexp", x);
  return apply(LogSumExp{plan("logsumexp", x, dims, keepdim)}, x);
}

Tensor count_nonzero(const Tensor& x, const Dims& dims) {
  return reduced(Reduce::count, x, plan("count_nonzero", x, dims, false), DType::i64);
}

}  // namespace tapestry
