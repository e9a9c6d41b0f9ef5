// The product of a layer: x wᵀ + b over the last dim, in one kernel, its weight gradient added where it belongs.
// Not the module that owns the weights (nn/linear.h).
// Next: softmax.cpp.
#include <algorithm>

#include "../autograd/function.h"
#include "../autograd/parallel.h"
#include "error_text.h"
#include "kernels/gemm.h"
#include "ops.h"
#include "rows.h"

namespace tapestry {
namespace {

/// A parameter in the activations' dtype.
Tensor in_dtype(const Tensor& parameter, DType dtype) {
  return !parameter.defined() || parameter.dtype() == dtype ? parameter : to(parameter, dtype);
}

template <class T>
kernels::Matrix<T> matrix(const Tensor& x) {
  return {x.data<T>(), x.strides()[0], x.strides()[1]};
}
template <class T>
kernels::Matrix<T> transposed(const Tensor& x) {
  return {x.data<T>(), x.strides()[1], x.strides()[0]};
}

struct Linear {
  static constexpr std::string_view name = "linear", formula = "y = x wᵀ + b",
                                    vjp = "dx = g w, dw = gᵀ x, db = Σ_rows g";

  Tensor composite(const Tensor& x, const Tensor& weight, const Tensor& bias) const {
    const Tensor y = matmul(x, mT(in_dtype(weight, x.dtype())));
    return bias.defined() ? y + in_dtype(bias, x.dtype()) : y;
  }

  Tensor forward(Context&, const Tensor& x, const Tensor& weight, const Tensor& bias) const {
    Shape shape = x.shape();
    const int64_t in = weight.size(1), out = weight.size(0);
    shape[x.dim() - 1] = out;
    Tensor y = empty(shape, x.dtype());
    const int64_t rows = out == 0 ? 0 : y.numel() / out;
    const detail::RowView input = detail::rows_of(x);
    const Tensor w = in_dtype(weight, x.dtype()), b = bias.defined() ? dense(in_dtype(bias, x.dtype())) : bias;
    detail::dispatch_floating(x.dtype(), [&]<class T> {
      T* to = detail::fresh<T>(y);
      if (b.defined()) fill_rows(to, b.data<T>(), rows, out);
      kernels::gemm<T, T>(rows, out, in, 1, {input.data<T>(), input.stride, 1}, transposed<T>(w), b.defined() ? 1 : 0,
                          to, out);
    });
    return y;
  }

  Grads backward(Context& c, const Tensor& g) const {
    const Tensor x = c.input(0), weight = c.input(1), bias = c.input(2);
    const int64_t in = weight.size(1), out = weight.size(0), rows = out == 0 ? 0 : g.numel() / out;
    const detail::RowView gs = detail::rows_of(g);
    return grads(
        c,
        [&] {
          Tensor dx = empty(x.shape(), x.dtype());
          const Tensor w = in_dtype(weight, x.dtype());
          detail::dispatch_floating(x.dtype(), [&]<class T> {
            kernels::gemm<T, T>(in == 0 ? 0 : dx.numel() / in, in, out, 1, {gs.data<T>(), gs.stride, 1}, matrix<T>(w),
                                0, detail::fresh<T>(dx), in);
          });
          return dx;
        },
        [&] {
          const auto destination = c.grad_destination(1);
          Tensor dw = destination ? destination->grad : empty(weight.shape(), weight.dtype());
          void* to = destination ? dw.mutable_raw_data("linear") : detail::fresh<char>(dw);
          const detail::RowView xs = detail::rows_of(x);
          const auto product = [&]<class T, class W>(T, W* target) {
            kernels::gemm<T, W>(out, in, rows, 1, {gs.data<T>(), 1, gs.stride}, {xs.data<T>(), xs.stride, 1},
                                destination ? 1 : 0, target, in);
          };
          if (x.dtype() == DType::f32)
            product(float{}, static_cast<float*>(to));
          else if (x.dtype() == DType::f64)
            product(double{}, static_cast<double*>(to));
          else if (weight.dtype() == DType::f32)
            product(bf16{}, static_cast<float*>(to));
          else
            product(bf16{}, static_cast<bf16*>(to));
          return dw;
        },
        [&] {
          const Tensor sums = in_dtype(g, bias.dtype());
          return sum(reshape(sums, {rows, out}), {0});
        });
  }

 private:
  template <class T>
  static void fill_rows(T* to, const T* row, int64_t rows, int64_t width) {
    parallel_for(rows, 1 + 32768 / (width + 1), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) std::copy(row, row + width, to + i * width);
    });
  }
};

bool fits(DType parameter, DType x) { return parameter == x || (parameter == DType::f32 && x == DType::bf16); }

}  // namespace

namespace detail {

void require_linear(std::string_view op, const Tensor& x, const Tensor& weight, const Tensor& bias) {
  require_floating(op, x);
  require_defined(op, weight);
  if (x.dim() == 0 || weight.dim() != 2)
    fail<ShapeError>("{}: x is {}, weight is {}; x needs a last dim, weight must be (out, in)", op, x.describe(),
                     weight.describe());
  if (!fits(weight.dtype(), x.dtype()))
    fail<DTypeError>("{}: dtypes differ: x is {}, weight is {}; convert with to(x, DType::{})", op, x.describe(),
                     weight.describe(), name_of(weight.dtype()));
  if (x.size(-1) != weight.size(1))
    fail<ShapeError>("{}: inner dimensions differ: x is {}, weight is {} (x.size(-1) = {}, weight.size(1) = {})", op,
                     x.describe(), weight.describe(), x.size(-1), weight.size(1));
  if (bias.defined()) {
    if (bias.shape() != Shape{weight.size(0)})
      fail<ShapeError>("{}: bias is {}, weight is {}; bias must be [{}]", op, bias.describe(), weight.describe(),
                       weight.size(0));
    if (!fits(bias.dtype(), x.dtype()))
      fail<DTypeError>("{}: dtypes differ: x is {}, bias is {}; convert with to(x, DType::{})", op, x.describe(),
                       bias.describe(), name_of(bias.dtype()));
  }
}

}  // namespace detail

Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias) {
  detail::require_linear("linear", x, weight, bias);
  return apply(Linear{}, x, weight, bias);
}

}  // namespace tapestry
