// softmax and log_softmax along one dim.
// Not here: attention's masked softmax (attention.cpp) and the loss (cross_entropy.cpp), which never store probabilities.
// Next: norm.cpp.
#include "kernels/softmax.h"

#include "../autograd/function.h"
#include "error_text.h"
#include "ops.h"
#include "rows.h"

namespace tapestry {
namespace {

/// Calls f.operator()<T>(outer, n, inner) for a tensor cut at `dim`.
template <class F>
void along(const Tensor& x, int dim, F&& f) {
  const std::span<const int64_t> sizes = x.shape();
  const auto at = static_cast<size_t>(dim);
  const int64_t outer = numel(sizes.first(at)), n = sizes[at], inner = numel(sizes.subspan(at + 1));
  detail::dispatch_floating(x.dtype(), [&]<class T> { f.template operator()<T>(outer, n, inner); });
}

// Note [Backward as an op]: the rule is a kernel of its own, recorded by a walk that records, with its definition for what comes after. So the
// forward keeps y alone, not its input too.
struct SoftmaxBackward {
  static constexpr std::string_view name = "softmax_backward", formula = "dx = y (g − Σ g y)",
                                    vjp = "by its definition";
  int dim;
  Tensor composite(const Tensor& y, const Tensor& g) const { return y * (g - sum(g * y, {dim}, true)); }
  Tensor forward(Context&, const Tensor& y, const Tensor& g) const {
    Tensor dx = empty(y.shape(), y.dtype());
    const Tensor yd = dense(y), gd = dense(g);
    along(y, dim, [&]<class T>(int64_t outer, int64_t n, int64_t inner) {
      kernels::softmax_backward(outer, n, inner, yd.data<T>(), gd.data<T>(), detail::fresh<T>(dx));
    });
    return dx;
  }
};

struct Softmax {
  static constexpr std::string_view name = "softmax", formula = "y = e^(x − max)/Σ e^(x − max)",
                                    vjp = "dx = y (g − Σ g y)";
  int dim;
  Tensor forward(Context& c, const Tensor& x) const {
    Tensor y = empty(x.shape(), x.dtype());
    const Tensor xd = dense(x);
    along(x, dim, [&]<class T>(int64_t outer, int64_t n, int64_t inner) {
      kernels::softmax_forward(outer, n, inner, xd.data<T>(), detail::fresh<T>(y));
    });
    c.save(y);
    return y;
  }
  Grads backward(Context& c, const Tensor& g) const { return {apply(SoftmaxBackward{dim}, c.saved(0), g)}; }
};

struct LogSoftmaxBackward {
  static constexpr std::string_view name = "log_softmax_backward", formula = "dx = g − e^y Σ g",
                                    vjp = "by its definition";
  int dim;
  Tensor composite(const Tensor& y, const Tensor& g) const { return g - exp(y) * sum(g, {dim}, true); }
  Tensor forward(Context&, const Tensor& y, const Tensor& g) const {
    Tensor dx = empty(y.shape(), y.dtype());
    const Tensor yd = dense(y), gd = dense(g);
    along(y, dim, [&]<class T>(int64_t outer, int64_t n, int64_t inner) {
      kernels::log_softmax_backward(outer, n, inner, yd.data<T>(), gd.data<T>(), detail::fresh<T>(dx));
    });
    return dx;
  }
};

struct LogSoftmax {
  static constexpr std::string_view name = "log_softmax", formula = "y = x − max − ln Σ e^(x − max)",
                                    vjp = "dx = g − e^y Σ g";
  int dim;
  Tensor forward(Context& c, const Tensor& x) const {
    Tensor y = empty(x.shape(), x.dtype());
    const Tensor xd = dense(x);
    along(x, dim, [&]<class T>(int64_t outer, int64_t n, int64_t inner) {
      kernels::log_softmax_forward(outer, n, inner, xd.data<T>(), detail::fresh<T>(y));
    });
    c.save(y);
    return y;
  }
  Grads backward(Context& c, const Tensor& g) const { return {apply(LogSoftmaxBackward{dim}, c.saved(0), g)}; }
};

}  // namespace

Tensor softmax(const Tensor& x, int64_t dim) {
  detail::require_floating("softmax", x);
  return apply(Softmax{normalize_dim("softmax", dim, x.dim())}, x);
}

Tensor log_softmax(const Tensor& x, int64_t dim) {
  detail::require_floating("log_softmax", x);
  return apply(LogSoftmax{normalize_dim("log_softmax", dim, x.dim())}, x);
}

}  // namespace tapestry
