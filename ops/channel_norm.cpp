// What batch_norm and group_norm share: the checks of their parameters, and the kernels on tensors.
// Not the statistics each of them normalises by (batch_norm.cpp, group_norm.cpp).
// Next: batch_norm.cpp.
#include "channel_norm.h"

#include <cmath>

namespace tapestry::detail {
namespace {

Tensor dense_or_none(const Tensor& x) { return x.defined() ? dense(x) : x; }

void check_parameter(const char* op, const char* name, const Tensor& x, const Tensor& p) {
  if (!p.defined()) return;
  if (p.shape() != Shape{x.size(1)})
    fail<ShapeError>("{}: {} is {}, x is {}; {} must be [{}]", op, name, p.describe(), x.describe(), name, x.size(1));
  if (p.dtype() != x.dtype() && !(p.dtype() == DType::f32 && x.dtype() == DType::bf16))
    fail<DTypeError>("{}: dtypes differ: x is {}, {} is {}; convert with to(x, DType::f32)", op, x.describe(), name,
                     p.describe());
}

}  // namespace

void check_channel_norm(const char* op, const Tensor& x, const Tensor& weight, const Tensor& bias, double eps) {
  require_floating(op, x);
  if (x.dim() < 2) fail<ShapeError>("{}: x is {}; it must be (B, C, ...)", op, x.describe());
  if (!(eps >= 0)) fail<ValueError>("{}: eps is {}; it must be 0 or more", op, eps);
  check_parameter(op, "weight", x, weight);
  check_parameter(op, "bias", x, bias);
  if (weight.defined() && bias.defined() && weight.dtype() != bias.dtype())
    fail<DTypeError>("{}: dtypes differ: weight is {}, bias is {}; convert with to(x, DType::f32)", op,
                     weight.describe(), bias.describe());
}

std::array<Tensor, 2> Moments::tensors(DType dtype, double eps) const {
  std::vector<double> inverse;
  for (const double v : variance) inverse.push_back(1 / std::sqrt(v + eps));
  const DType wide = compute_dtype(dtype);
  return {in_dtype(from(mean), wide), in_dtype(from(inverse), wide)};
}

Moments channel_moments(int64_t groups, const Tensor& x) {
  const kernels::ChannelSets sets = channel_sets(x, groups);
  Moments m;
  m.mean.resize(static_cast<size_t>(sets.count()));
  m.variance.resize(static_cast<size_t>(sets.count()));
  const Tensor xs = dense(x);
  dispatch_floating(
      x.dtype(), [&]<class T> { kernels::channel_moments<T>(sets, xs.data<T>(), m.mean.data(), m.variance.data()); });
  return m;
}

Tensor channel_norm(int64_t groups, const Tensor& x, const Tensor& mean, const Tensor& inv_std, const Tensor& weight,
                    const Tensor& bias) {
  const Tensor y = empty(x.shape(), x.dtype()), xs = dense(x), w = dense_or_none(weight), b = dense_or_none(bias);
  dispatch_with_parameters(x.dtype(), parameter_dtype(x, w, b), [&]<class T, class W> {
    using C = compute_t<T>;
    kernels::channel_norm_forward<T, W>(channel_sets(x, groups), xs.data<T>(), mean.data<C>(), inv_std.data<C>(),
                                        data_or_null<W>(w), data_or_null<W>(b), fresh<T>(y));
  });
  return y;
}

Grads channel_norm_backward(const Context& c, int64_t groups, bool fixed, const Tensor& mean, const Tensor& inv_std,
                            const Tensor& g) {
  const Tensor x = c.input(0), weight = c.input(1), bias = c.input(2);
  const Tensor xs = dense(x), gs = dense(g), w = dense_or_none(weight);
  const Tensor dx = c.needs(0) ? empty(x.shape(), x.dtype()) : Tensor{};
  const Tensor dw = c.needs(1) ? empty(weight.shape(), weight.dtype()) : Tensor{};
  const Tensor db = c.needs(2) ? empty(bias.shape(), bias.dtype()) : Tensor{};
  dispatch_with_parameters(x.dtype(), parameter_dtype(x, w, bias), [&]<class T, class W> {
    using C = compute_t<T>;
    kernels::channel_norm_backward<T, W>(channel_sets(x, groups), xs.data<T>(), mean.data<C>(), inv_std.data<C>(),
                                         data_or_null<W>(w), gs.data<T>(), fixed, fresh_or_null<T>(dx),
                                         fresh_or_null<W>(dw), fresh_or_null<W>(db));
  });
  return {dx, dw, db};
}

}  // namespace tapestry::detail
