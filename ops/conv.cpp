// Convolutions of one and two dims and their transposes. A convolution is linear in x and in the weight, so three maps (y, the gradient of x, the
// gradient of the weight) are each other's derivatives, and every order is one of them again.
// Not pooling (pool.cpp) nor the layers that own the weights (nn/conv.h).
// Next: pool.cpp.
#include "kernels/conv.h"

#include <algorithm>

#include "../autograd/function.h"
#include "error_text.h"
#include "ops.h"
#include "rows.h"

namespace tapestry {
namespace {

using detail::data_or_null;
using kernels::ConvShape;

/// (a, b, h, w), without h for one spatial dim.
template <int rank>
Shape planes(int64_t a, int64_t b, int64_t h, int64_t w) {
  return rank == 1 ? Shape{a, b, w} : Shape{a, b, h, w};
}

template <int rank>
Tensor bias_gradient(const Tensor& g) {
  return sum(g, rank == 1 ? Dims{0, 2} : Dims{0, 2, 3});
}

template <int rank>
Tensor convolve(const ConvShape& s, const Tensor& x, const Tensor& weight, const Tensor& bias = {});
template <int rank>
Tensor input_gradient(const ConvShape& s, const Tensor& g, const Tensor& weight, const Tensor& bias = {});
template <int rank>
Tensor weight_gradient(const ConvShape& s, const Tensor& x, const Tensor& g);

template <int rank>
struct Convolution {
  static constexpr std::string_view name = rank == 1 ? "conv1d" : "conv2d", formula = "y = x ⋆ w + b",
                                    vjp = "dx = conv_transpose(g, w), dw = Σ_batch x ⋆ g, db = Σ g";
  ConvShape s;
  Tensor forward(Context& c, const Tensor& x, const Tensor& weight, const Tensor& bias) const {
    c.save(c.needs(1) ? x : Tensor{}, c.needs(0) ? weight : Tensor{});
    const Tensor y = empty(planes<rank>(s.batch, s.groups * s.out, s.out_h, s.out_w), x.dtype());
    const Tensor xs = dense(x), ws = dense(weight), bs = bias.defined() ? dense(bias) : bias;
    detail::dispatch_floating(x.dtype(), [&]<class T> {
      kernels::conv_forward<T>(s, xs.data<T>(), ws.data<T>(), data_or_null<T>(bs), detail::fresh<T>(y));
    });
    return y;
  }
  Grads backward(Context& c, const Tensor& g) const {
    return grads(
        c, [&] { return input_gradient<rank>(s, g, c.saved(1)); },
        [&] { return weight_gradient<rank>(s, c.saved(0), g); }, [&] { return bias_gradient<rank>(g); });
  }
};

/// The gradient of a convolution by its input, which is the transposed convolution: s are the sizes of the convolution.
template <int rank>
struct TransposedConvolution {
  static constexpr std::string_view name = rank == 1 ? "conv_transpose1d" : "conv_transpose2d",
                                    formula = "y = Σ over the places of x of x · w, + b",
                                    vjp = "dx = conv(g, w), dw = Σ_batch g ⋆ x, db = Σ g";
  ConvShape s;
  Tensor forward(Context& c, const Tensor& g, const Tensor& weight, const Tensor& bias) const {
    c.save(c.needs(1) ? g : Tensor{}, c.needs(0) ? weight : Tensor{});
    const Tensor dx = empty(planes<rank>(s.batch, s.groups * s.in, s.h, s.w), g.dtype());
    const Tensor gs = dense(g), ws = dense(weight), bs = bias.defined() ? dense(bias) : bias;
    detail::dispatch_floating(g.dtype(), [&]<class T> {
      kernels::conv_input_gradient<T>(s, gs.data<T>(), ws.data<T>(), data_or_null<T>(bs), detail::fresh<T>(dx));
    });
    return dx;
  }
  Grads backward(Context& c, const Tensor& u) const {
    return grads(
        c, [&] { return convolve<rank>(s, u, c.saved(1)); }, [&] { return weight_gradient<rank>(s, u, c.saved(0)); },
        [&] { return bias_gradient<rank>(u); });
  }
};

template <int rank>
struct WeightGradient {
  static constexpr std::string_view name = rank == 1 ? "conv1d_weight_gradient" : "conv2d_weight_gradient",
                                    formula = "dw = Σ_batch x ⋆ g", vjp = "dx = conv_transpose(g, u), dg = conv(x, u)";
  ConvShape s;
  Tensor forward(Context& c, const Tensor& x, const Tensor& g) const {
    c.save(c.needs(1) ? x : Tensor{}, c.needs(0) ? g : Tensor{});
    const Tensor dw = empty(planes<rank>(s.groups * s.out, s.in, s.kh, s.kw), x.dtype());
    const Tensor xs = dense(x), gs = dense(g);
    detail::dispatch_floating(x.dtype(), [&]<class T> {
      kernels::conv_weight_gradient<T>(s, xs.data<T>(), gs.data<T>(), detail::fresh<T>(dw));
    });
    return dw;
  }
  Grads backward(Context& c, const Tensor& u) const {
    return grads(
        c, [&] { return input_gradient<rank>(s, c.saved(1), u); }, [&] { return convolve<rank>(s, c.saved(0), u); });
  }
};

template <int rank>
Tensor convolve(const ConvShape& s, const Tensor& x, const Tensor& weight, const Tensor& bias) {
  return apply(Convolution<rank>{s}, x, weight, bias);
}
template <int rank>
Tensor input_gradient(const ConvShape& s, const Tensor& g, const Tensor& weight, const Tensor& bias) {
  return apply(TransposedConvolution<rank>{s}, g, weight, bias);
}
template <int rank>
Tensor weight_gradient(const ConvShape& s, const Tensor& x, const Tensor& g) {
  return apply(WeightGradient<rank>{s}, x, g);
}

/// What the public functions know of a call.
struct Call {
  const char* op;
  int rank;  // spatial dims
  bool transposed;
  const Tensor& x;
  ConvOptions options;
};

/// A parameter in x's dtype: f32 ones go with bf16 x.
Tensor matching(const Call& call, const char* name, const Tensor& p) {
  if (!p.defined() || p.dtype() == call.x.dtype()) return p;
  if (p.dtype() == DType::f32 && call.x.dtype() == DType::bf16) return to(p, DType::bf16);
  fail<DTypeError>("{}: dtypes differ: x is {}, {} is {}; convert with to(x, DType::f32)", call.op, call.x.describe(),
                   name, p.describe());
}

void check_options(const Call& call) {
  const auto check = [&](const char* name, Pair p, int64_t least) {
    constexpr int64_t most = int64_t{1} << 31;
    if (p.h < least || p.h > most || (call.rank == 2 && (p.w < least || p.w > most)))
      fail<ValueError>("{}: {} is {}; it must be at least {}", call.op, name,
                       call.rank == 1 ? std::to_string(p.h) : fmt::format("({}, {})", p.h, p.w), least);
  };
  const ConvOptions& o = call.options;
  check("stride", o.stride, 1);
  check("padding", o.padding, 0);
  check("dilation", o.dilation, 1);
  check("groups", o.groups, 1);
  check("output_padding", o.output_padding, 0);
  for (int d = 0; d < call.rank; ++d) {
    const auto of = [d](Pair p) { return d == 0 ? p.h : p.w; };
    if (!call.transposed && of(o.output_padding) != 0)
      fail<ValueError>("{}: output_padding is for conv_transpose{}d; leave it 0", call.op, call.rank);
    if (call.transposed && of(o.output_padding) >= std::max(of(o.stride), of(o.dilation)))
      fail<ValueError>("{}: output_padding {} must be less than stride {} or dilation {}", call.op,
                       of(o.output_padding), of(o.stride), of(o.dilation));
  }
}

void check_channels(const Call& call, const Tensor& weight, const Tensor& bias) {
  const int64_t groups = call.options.groups, channels = call.x.size(1);
  if (weight.size(0) % groups != 0)
    fail<ShapeError>("{}: weight {} does not fall into {} groups ({} channels)", call.op, to_string(weight.shape()),
                     groups, weight.size(0));
  const int64_t wanted = call.transposed ? weight.size(0) : weight.size(1) * groups;
  if (channels != wanted)
    fail<ShapeError>("{}: x has {} channels, weight {} with groups {} wants {}; x is {}", call.op, channels,
                     to_string(weight.shape()), groups, wanted, call.x.describe());
  const int64_t out = call.transposed ? weight.size(1) * groups : weight.size(0);
  if (bias.defined() && bias.shape() != Shape{out})
    fail<ShapeError>("{}: bias is {}, weight {} with groups {} gives {} channels; bias must be [{}]", call.op,
                     bias.describe(), to_string(weight.shape()), groups, out, out);
}

/// The size of the result along spatial dim d.
int64_t result_size(const Call& call, const Tensor& weight, int d) {
  const auto of = [d](Pair p) { return d == 0 ? p.h : p.w; };
  const ConvOptions& o = call.options;
  const int64_t size = call.x.size(2 + d), window = weight.size(2 + d), pad = of(o.padding), stride = of(o.stride);
  if (window < 1)
    fail<ShapeError>("{}: weight {} has an empty window; it must be at least 1", call.op, to_string(weight.shape()));
  const int64_t reach = of(o.dilation) * (window - 1) + 1;
  const int64_t result = call.transposed ? (size - 1) * stride - 2 * pad + reach + of(o.output_padding)
                                         : (size + 2 * pad - reach + stride) / stride;
  if (call.transposed ? result < 1 : size + 2 * pad < reach)
    fail<ShapeError>("{}: nothing is left along dim {}: x is {}, weight {} spans {} there, padding {}, stride {}",
                     call.op, 2 + d, call.x.describe(), to_string(weight.shape()), reach, pad, stride);
  return result;
}

template <int rank, bool transposed>
Tensor run(const char* op, const Tensor& x, const Tensor& weight, const Tensor& bias, const ConvOptions& options) {
  const Call call{op, rank, transposed, x, options};
  detail::require_floating(op, x);
  if (!weight.defined() || x.dim() != rank + 2 || weight.dim() != rank + 2)
    fail<ShapeError>("{}: x is {}, weight is {}; both must have rank {}: x (B, C, {}), weight ({}, {})", op,
                     x.describe(), weight.describe(), rank + 2, rank == 1 ? "L" : "H, W",
                     transposed ? "C, out/groups" : "out, C/groups", rank == 1 ? "K" : "Kh, Kw");
  check_options(call);
  check_channels(call, weight, bias);
  const Tensor w = matching(call, "weight", weight), b = matching(call, "bias", bias);
  ConvShape s;
  s.batch = x.size(0);
  s.groups = options.groups;
  s.out = weight.size(0) / s.groups;
  s.in = weight.size(1);
  s.kw = weight.size(-1);
  s.w = x.size(-1);
  s.out_w = result_size(call, weight, rank - 1);
  const auto last = [](Pair p) { return rank == 1 ? p.h : p.w; };
  s.stride_w = last(options.stride);
  s.pad_w = last(options.padding);
  s.dilation_w = last(options.dilation);
  if constexpr (rank == 2) {
    s.kh = weight.size(2);
    s.h = x.size(2);
    s.out_h = result_size(call, weight, 0);
    s.stride_h = options.stride.h;
    s.pad_h = options.padding.h;
    s.dilation_h = options.dilation.h;
  }
  if constexpr (!transposed) return convolve<rank>(s, x, w, b);
  // The sizes of the convolution whose output has x's shape.
  std::swap(s.h, s.out_h);
  std::swap(s.w, s.out_w);
  return input_gradient<rank>(s, x, w, b);
}

}  // namespace

Tensor conv1d(const Tensor& x, const Tensor& weight, const Tensor& bias, ConvOptions options) {
  return run<1, false>("conv1d", x, weight, bias, options);
}
Tensor conv2d(const Tensor& x, const Tensor& weight, const Tensor& bias, ConvOptions options) {
  return run<2, false>("conv2d", x, weight, bias, options);
}
Tensor conv_transpose1d(const Tensor& x, const Tensor& weight, const Tensor& bias, ConvOptions options) {
  return run<1, true>("conv_transpose1d", x, weight, bias, options);
}
Tensor conv_transpose2d(const Tensor& x, const Tensor& weight, const Tensor& bias, ConvOptions options) {
  return run<2, true>("conv_transpose2d", x, weight, bias, options);
}

}  // namespace tapestry
