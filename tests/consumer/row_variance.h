// A fused op of one's own: loops in forward and backward, and the same function in plain ops, which gives the higher orders.
// Next: main.cpp.
#pragma once

#include <tapestry/autograd/function.h>
#include <tapestry/ops/ops.h>

/// y = Σ (x − mean x)²/D over the last dim: (N, D) to (N), f32 or f64.
struct RowVariance {
  static constexpr std::string_view name = "row_variance", formula = "Σ(x − x̄)²/D", vjp = "g·2(x − x̄)/D";
  using Tensor = tapestry::Tensor;

  Tensor composite(const Tensor& x) const {
    const Tensor d = x - mean(x, {-1}, true);
    return mean(d * d, {-1});
  }

  Tensor forward(tapestry::Context&, const Tensor& x) const {
    const Tensor rows = dense(x), y = tapestry::empty({x.size(0)}, x.dtype());
    each_row(x.dtype(), x.size(0), [&]<class T>(T, int64_t i) {
      const int64_t n = x.size(1);
      const T* row = rows.data<T>() + i * n;
      const T centre = mean_of(row, n);
      T sum = 0;
      for (int64_t j = 0; j < n; ++j) sum += (row[j] - centre) * (row[j] - centre);
      y.mutable_data<T>()[i] = sum / static_cast<T>(n);
    });
    return y;
  }

  tapestry::Grads backward(tapestry::Context& c, const Tensor& g) const {
    const Tensor x = dense(c.input(0)), upstream = dense(g), dx = tapestry::empty(x.shape(), x.dtype());
    each_row(x.dtype(), x.size(0), [&]<class T>(T, int64_t i) {
      const int64_t n = x.size(1);
      const T* row = x.data<T>() + i * n;
      const T centre = mean_of(row, n), scale = 2 * upstream.data<T>()[i] / static_cast<T>(n);
      for (int64_t j = 0; j < n; ++j) dx.mutable_data<T>()[i * n + j] = scale * (row[j] - centre);
    });
    return {dx};
  }

 private:
  template <class T>
  static T mean_of(const T* row, int64_t n) {
    T sum = 0;
    for (int64_t j = 0; j < n; ++j) sum += row[j];
    return sum / static_cast<T>(n);
  }
  template <class F>
  static void each_row(tapestry::DType dtype, int64_t rows, const F& f) {
    for (int64_t i = 0; i < rows; ++i) dtype == tapestry::DType::f64 ? f(double{}, i) : f(float{}, i);
  }
};

/// ShapeError unless x has rank 2, DTypeError unless it is f32 or f64.
inline tapestry::Tensor row_variance(const tapestry::Tensor& x) {
  using namespace tapestry;
  if (x.dim() != 2) fail<ShapeError>("row_variance: x is {}; it must be (rows, width)", x.describe());
  if (x.dtype() != DType::f32 && x.dtype() != DType::f64)
    fail<DTypeError>("row_variance: x is {}; convert it with to(x, DType::f32)", x.describe());
  return apply(RowVariance{}, x);
}
