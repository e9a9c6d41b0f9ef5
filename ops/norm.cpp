// layer_norm and rms_norm over the last dim: fused kernels that keep one or two numbers a row.
// Not the modules that own the weights (nn/norm.h).
// Next: batch_norm.cpp.
#include "kernels/norm.h"

#include "../autograd/function.h"
#include "error_text.h"
#include "ops.h"
#include "rows.h"

namespace tapestry {
namespace {

using detail::compute_dtype;
using detail::data_or_null;
using detail::dispatch_with_parameters;
using detail::fresh_or_null;
using detail::fresh_rows;
using detail::in_dtype;
using detail::kernel_rows;
using detail::parameter_dtype;

struct RmsNorm {
  static constexpr std::string_view name = "rms_norm", formula = "y = x̂ w, x̂ = x/√(mean(x²) + ε)",
                                    vjp = "dx = (g w − x̂ mean(g w x̂))/√(mean(x²) + ε), dw = Σ_rows g x̂";
  double eps;

  Tensor composite(const Tensor& x, const Tensor& weight) const {
    const DType wide = compute_dtype(x.dtype());
    const Tensor xs = in_dtype(x, wide), n = xs * rsqrt(mean(square(xs), {-1}, true) + eps);
    return in_dtype(weight.defined() ? n * in_dtype(weight, wide) : n, x.dtype());
  }

  Tensor forward(Context& c, const Tensor& x, const Tensor& weight) const {
    Tensor y = empty(x.shape(), x.dtype());
    const detail::RowView xs = detail::rows_of(x);
    const Tensor w = weight.defined() ? dense(weight) : weight;
    const Tensor inv_rms = c.recording() ? empty({xs.rows}, compute_dtype(x.dtype())) : Tensor{};
    dispatch_with_parameters(x.dtype(), w.defined() ? w.dtype() : x.dtype(), [&]<class T, class W> {
      kernels::rms_norm_forward<T, W>(xs.rows, xs.width, eps, kernel_rows<T>(xs), data_or_null<W>(w),
                                      fresh_rows<T>(y, xs.width), fresh_or_null<compute_t<T>>(inv_rms));
    });
    c.save(inv_rms);
    return y;
  }

  Grads backward(Context& c, const Tensor& g) const {
    const Tensor x = c.input(0), weight = c.input(1), inv_rms = c.saved(0);
    const Tensor w = weight.defined() ? dense(weight) : weight;
    const Tensor dx = c.needs(0) ? empty(x.shape(), x.dtype()) : Tensor{};
    const Tensor dw = c.needs(1) ? empty(weight.shape(), weight.dtype()) : Tensor{};
    const detail::RowView xs = detail::rows_of(x), gs = detail::rows_of(g);
    dispatch_with_parameters(x.dtype(), w.defined() ? w.dtype() : x.dtype(), [&]<class T, class W> {
      kernels::rms_norm_backward<T, W>(xs.rows, xs.width, kernel_rows<T>(xs), data_or_null<W>(w),
                                       inv_rms.data<compute_t<T>>(), kernel_rows<T>(gs), fresh_rows<T>(dx, xs.width),
                                       fresh_or_null<W>(dw));
    });
    return {dx, dw};
  }
};

struct LayerNorm {
  static constexpr std::string_view
      name = "layer_norm",
      formula = "y = x̂ w + b, x̂ = (x − mean(x))/√(var(x) + ε)",
      vjp = "dx = (g w − mean(g w) − x̂ mean(g w x̂))/√(var(x) + ε), dw = Σ_rows g x̂, db = Σ_rows g";
  double eps;

  Tensor composite(const Tensor& x, const Tensor& weight, const Tensor& bias) const {
    const DType wide = compute_dtype(x.dtype());
    const Tensor xs = in_dtype(x, wide), centred = xs - mean(xs, {-1}, true);
    Tensor y = centred * rsqrt(mean(square(centred), {-1}, true) + eps);
    if (weight.defined()) y = y * in_dtype(weight, wide);
    if (bias.defined()) y = y + in_dtype(bias, wide);
    return in_dtype(y, x.dtype());
  }

  Tensor forward(Context& c, const Tensor& x, const Tensor& weight, const Tensor& bias) const {
    Tensor y = empty(x.shape(), x.dtype());
    const detail::RowView xs = detail::rows_of(x);
    const Tensor w = weight.defined() ? dense(weight) : weight, b = bias.defined() ? dense(bias) : bias;
    const DType wide = compute_dtype(x.dtype());
    const Tensor mean = c.recording() ? empty({xs.rows}, wide) : Tensor{};
    const Tensor inv_std = c.recording() ? empty({xs.rows}, wide) : Tensor{};
    dispatch_with_parameters(x.dtype(), parameter_dtype(x, w, b), [&]<class T, class W> {
      kernels::layer_norm_forward<T, W>(xs.rows, xs.width, eps, kernel_rows<T>(xs), data_or_null<W>(w),
                                        data_or_null<W>(b), fresh_rows<T>(y, xs.width),
                                        fresh_or_null<compute_t<T>>(mean), fresh_or_null<compute_t<T>>(inv_std));
    });
    c.save(mean, inv_std);
    return y;
  }

  Grads backward(Context& c, const Tensor& g) const {
    const Tensor x = c.input(0), weight = c.input(1), bias = c.input(2), mean = c.saved(0), inv_std = c.saved(1);
    const Tensor w = weight.defined() ? dense(weight) : weight;
    const Tensor dx = c.needs(0) ? empty(x.shape(), x.dtype()) : Tensor{};
    const Tensor dw = c.needs(1) ? empty(weight.shape(), weight.dtype()) : Tensor{};
    const Tensor db = c.needs(2) ? empty(bias.shape(), bias.dtype()) : Tensor{};
    const detail::RowView xs = detail::rows_of(x), gs = detail::rows_of(g);
    dispatch_with_parameters(x.dtype(), parameter_dtype(x, w, bias), [&]<class T, class W> {
      kernels::layer_norm_backward<T, W>(xs.rows, xs.width, kernel_rows<T>(xs), data_or_null<W>(w),
                                         mean.data<compute_t<T>>(), inv_std.data<compute_t<T>>(), kernel_rows<T>(gs),
                                         fresh_rows<T>(dx, xs.width), fresh_or_null<W>(dw), fresh_or_null<W>(db));
    });
    return {dx, dw, db};
  }
};

void check_parameter(const char* op, const char* name, const Tensor& x, const Tensor& p) {
  if (!p.defined()) return;
  if (p.shape() != Shape{x.size(-1)})
    fail<ShapeError>("{}: {} is {}, x is {}; {} must be [{}]", op, name, p.describe(), x.describe(), name, x.size(-1));
  if (p.dtype() != x.dtype() && !(p.dtype() == DType::f32 && x.dtype() == DType::bf16))
    fail<DTypeError>("{}: dtypes differ: x is {}, {} is {}; convert with to(x, DType::{})", op, x.describe(), name,
                     p.describe(), name_of(p.dtype()));
}

void check_input(const char* op, const Tensor& x, double eps) {
  detail::require_floating(op, x);
  if (x.dim() == 0) fail<ShapeError>("{}: x is {}; it needs a last dim to normalise over", op, x.describe());
  if (!(eps >= 0)) fail<ValueError>("{}: eps is {}; it must be 0 or more", op, eps);
}

}  // namespace

Tensor rms_norm(const Tensor& x, const Tensor& weight, double eps) {
  check_input("rms_norm", x, eps);
  check_parameter("rms_norm", "weight", x, weight);
  return apply(RmsNorm{eps}, x, weight);
}

Tensor layer_norm(const Tensor& x, const Tensor& weight, const Tensor& bias, double eps) {
  check_input("layer_norm", x, eps);
  check_parameter("layer_norm", "weight", x, weight);
  check_parameter("layer_norm", "bias", x, bias);
  if (weight.defined() && bias.defined() && weight.dtype() != bias.dtype())
    fail<DTypeError>("layer_norm: dtypes differ: weight is {}, bias is {}; convert with to(x, DType::f32)",
                     weight.describe(), bias.describe());
  return apply(LayerNorm{eps}, x, weight, bias);
}

}  // namespace tapestry
