// Inverted dropout (Srivastava et al. 2014): the mask is a function of a ticket, so that backward draws the same one and nothing is stored.
// Not the module that knows train() and eval() (nn/dropout.h).
// Next: ops.h.
#include "kernels/dropout.h"

#include "../autograd/function.h"
#include "error_text.h"
#include "ops.h"
#include "rows.h"

namespace tapestry {
namespace {

struct Dropout {
  static constexpr std::string_view name = "dropout", formula = "y = x m/(1 − p), m = [u ≥ p] from a ticket",
                                    vjp = "dx = g m/(1 − p)";
  double p;
  Ticket ticket;

  Tensor forward(Context&, const Tensor& x) const {
    const Tensor from = dense(x), y = empty(x.shape(), x.dtype());
    detail::dispatch_floating(
        x.dtype(), [&]<class T> { kernels::dropout<T>(x.numel(), p, ticket, from.data<T>(), detail::fresh<T>(y)); });
    return y;
  }
  Grads backward(Context&, const Tensor& g) const { return {apply(*this, g)}; }
};

}  // namespace

Tensor dropout(const Tensor& x, double p) {
  detail::require_floating("dropout", x);
  if (!(p >= 0 && p <= 1)) fail<ValueError>("dropout: p is {}; it must be from 0 to 1", p);
  if (p == 0) return x;
  return apply(Dropout{p, draw_ticket()}, x);
}

}  // namespace tapestry
