// silu(gate)·up in one pass, forward and backward: the heart of SwiGLU (Shazeer 2020).
// Not here: the projections around it (nn/feed_forward.h).
// Next: dropout.cpp.
#include "../autograd/function.h"
#include "error_text.h"
#include "kernels/glu.h"
#include "ops.h"
#include "rows.h"

namespace tapestry {
namespace {

using detail::fresh_rows;
using detail::kernel_rows;

struct Swiglu {
  static constexpr std::string_view name = "swiglu", formula = "y = a σ(a) b",
                                    vjp = "da = g b σ(a) (1 + a (1 − σ(a))), db = g a σ(a)";

  Tensor composite(const Tensor& gate, const Tensor& up) const {
    if (gate.dtype() != DType::bf16) return silu(gate) * up;
    return to(silu(to(gate, DType::f32)) * to(up, DType::f32), DType::bf16);
  }

  Tensor forward(Context&, const Tensor& gate, const Tensor& up) const {
    const Tensor y = empty(gate.shape(), gate.dtype());
    const detail::RowView a = detail::rows_of(gate), b = detail::rows_of(up);
    detail::dispatch_floating(gate.dtype(), [&]<class T> {
      kernels::glu_forward<T>(kernels::Gate::silu, a.rows, a.width, kernel_rows<T>(a), kernel_rows<T>(b),
                              fresh_rows<T>(y, a.width));
    });
    return y;
  }

  Grads backward(Context& c, const Tensor& g) const {
    const detail::RowView a = detail::rows_of(c.input(0)), b = detail::rows_of(c.input(1)), gs = detail::rows_of(g);
    const Tensor da = c.needs(0) ? empty(g.shape(), g.dtype()) : Tensor{},
                 db = c.needs(1) ? empty(g.shape(), g.dtype()) : Tensor{};
    detail::dispatch_floating(g.dtype(), [&]<class T> {
      kernels::glu_backward<T>(kernels::Gate::silu, a.rows, a.width, kernel_rows<T>(a), kernel_rows<T>(b),
                               kernel_rows<T>(gs), fresh_rows<T>(da, a.width), fresh_rows<T>(db, a.width));
    });
    return {da, db};
  }
};

}  // namespace

Tensor swiglu(const Tensor& gate, const Tensor& up) {
  detail::require_floating("swiglu", gate);
  detail::require_same_dtype("swiglu", gate, up);
  if (gate.shape() != up.shape())
    fail<ShapeError>("swiglu: gate is {}, up is {}; the shapes must be equal", gate.describe(), up.describe());
  if (gate.dim() == 0) return squeeze(swiglu(unsqueeze(gate, 0), unsqueeze(up, 0)), 0);
  return apply(Swiglu{}, gate, up);
}

}  // namespace tapestry
