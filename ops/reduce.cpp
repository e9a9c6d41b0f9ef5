// Reductions over any set of dims: sum, sum_to, mean, amax, amin, max, min, argmax, argmin, any, all, norm, logsumexp; and cumsum.
// Each is one kernel call (kernels/reduce.h); the derivative of a sum is expand, so that nothing is copied.
// Next: index.cpp.
#include <limits>

#include "../autograd/function.h"
#include "error_text.h"
#include "kernels/reduce.h"
#include "ops.h"

namespace tapestry {
namespace {

using kernels::Reduce;

/// What a reduction of x leaves: `kept` has size 1 along the reduced dims, `result` is what the caller gets, of as many elements.
struct Plan {
  Dims dims;
  Shape from, kept, result;
  int64_t count = 1;  ///< elements behind each result

  Plan(const Tensor& x, const Dims& reduced) : dims(reduced), from(x.shape()), kept(x.shape()) {
    for (const int64_t d : dims) {
      count *= from[static_cast<int>(d)];
      kept[static_cast<int>(d)] = 1;
    }
  }
  /// A gradient of the result as one of x.
  [[nodiscard]] Tensor spread(const Tensor& g) const { return expand(reshape(g, kept), from); }
};

Plan plan(const char* op, const Tensor& x, const Dims& dims, bool keepdim) {
  bool chosen[max_rank] = {};
  for (const int64_t dim : dims) {
    const int d = normalize_dim(op, dim, x.dim());
    if (chosen[d])
      fail<ShapeError>("{}: dim {} is named twice in {} for {}; name each dim once", op, d, to_string(dims),
                       x.describe());
    chosen[d] = true;
  }
  Dims reduced;
  for (int d = 0; d < x.dim(); ++d)
    if (dims.empty() || chosen[d]) reduced.push_back(d);
  Plan p(x, reduced);
  for (int d = 0; d < x.dim(); ++d)
    if (keepdim || !(dims.empty() || chosen[d])) p.result.push_back(p.kept[d]);
  return p;
}

kernels::Reducible reducible(const Tensor& x, const Plan& p) {
  return kernels::split(x.raw_data(), x.dtype(), x.shape(), x.strides(), p.dims);
}

Tensor reduced(Reduce what, const Tensor& x, const Plan& p, DType dtype) {
  const Tensor y = empty(p.result, dtype);
  kernels::reduce(what, reducible(x, p), y.body()->storage->data, dtype);
  return y;
}

void require_elements(const char* op, const Tensor& x, const Plan& p) {
  if (p.count == 0)
    fail<ShapeError>("{}: {} has no elements along dims {}; there is no {} of nothing", op, x.describe(),
                     to_string(p.dims), op);
}

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

struct Cumsum {
  static constexpr std::string_view name = "cumsum", formula = "y[i] = Σ x[j] over j ≤ i", vjp = "Σ g[j] over j ≥ i";
  int dim;
  bool reverse;
  Tensor forward(Context&, const Tensor& x) const {
    const Tensor y = empty(x.shape(), x.dtype());
    kernels::cumsum(x.shape(), dim, x.dtype(), x.raw_data(), x.strides(), y.body()->storage->data, y.strides(),
                    reverse);
    return y;
  }
  Grads backward(Context& c, const Tensor& g) const {
    return grads(c, [&] { return apply(Cumsum{dim, !reverse}, g); });
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

Tensor norm(const Tensor& x, const Dims& dims, bool keepdim) {
  detail::require_floating("norm", x);
  return apply(Norm{plan("norm", x, dims, keepdim)}, x);
}

Tensor logsumexp(const Tensor& x, const Dims& dims, bool keepdim) {
  detail::require_floating("logsumexp", x);
  return apply(LogSumExp{plan("logsumexp", x, dims, keepdim)}, x);
}

Tensor cumsum(const Tensor& x, int64_t dim) {
  const int d = normalize_dim("cumsum", dim, x.dim());
  return x.dtype() == DType::boolean ? cumsum(to(x, DType::i64), d) : apply(Cumsum{d, false}, x);
}

}  // namespace tapestry
