// Makes ops of the rows of activation_table.h.
// Not here: softmax (softmax.cpp), swiglu (swiglu.cpp), prelu (pointwise_binary.cpp). Next: pointwise_binary.cpp.
#include <cmath>

#include "activation_table.h"
#include "error_text.h"
#include "kernels/pointwise_lanes.h"

namespace tapestry {
namespace {

template <class Row>
Tensor run(const Row& row, const Tensor& x) {
  return pointwise<kernels::LanesLoop>(row, x);
}

}  // namespace

Tensor logsigmoid(const Tensor& x) { return run(rows::logsigmoid, x); }
Tensor softplus(const Tensor& x) { return run(rows::softplus, x); }
Tensor relu(const Tensor& x) { return run(rows::relu, x); }
Tensor silu(const Tensor& x) { return run(rows::silu, x); }
Tensor gelu(const Tensor& x) { return run(rows::gelu, x); }
Tensor gelu_tanh(const Tensor& x) { return run(rows::gelu_tanh, x); }
Tensor relu_squared(const Tensor& x) { return run(rows::relu_squared, x); }
Tensor selu(const Tensor& x) { return run(rows::selu_, x); }
Tensor hardsigmoid(const Tensor& x) { return run(rows::hardsigmoid_, x); }
Tensor hardswish(const Tensor& x) { return run(rows::hardswish_, x); }
Tensor softsign(const Tensor& x) { return run(rows::softsign_, x); }
Tensor mish(const Tensor& x) { return run(rows::mish_, x); }
Tensor tanhshrink(const Tensor& x) { return run(rows::tanhshrink_, x); }
Tensor leaky_relu(const Tensor& x, double slope) { return run(rows::leaky_relu(slope), x); }
Tensor soft_cap(const Tensor& x, double cap) {
  if (!(cap > 0 && std::isfinite(cap))) fail<ValueError>("soft_cap: cap is {}; it must be positive and finite", cap);
  return run(rows::soft_cap(cap), x);
}

Tensor elu(const Tensor& x, double alpha) { return run(rows::elu(alpha), x); }

Tensor celu(const Tensor& x, double alpha) {
  if (!(alpha > 0)) fail<ValueError>("celu: alpha is {}; it must be positive", alpha);
  return run(rows::celu(alpha), x);
}

Tensor relu6(const Tensor& x) { return run(rows::hardtanh("relu6", 0, 6), x); }
Tensor hardtanh(const Tensor& x, double low, double high) {
  if (!(low <= high)) fail<ValueError>("hardtanh: low {} is not at most high {}", low, high);
  return run(rows::hardtanh("hardtanh", low, high), x);
}

Tensor softshrink(const Tensor& x, double lambda) {
  if (!(lambda >= 0)) fail<ValueError>("softshrink: lambda is {}; it must not be negative", lambda);
  return run(rows::softshrink(lambda), x);
}
Tensor hardshrink(const Tensor& x, double lambda) {
  if (!(lambda >= 0)) fail<ValueError>("hardshrink: lambda is {}; it must not be negative", lambda);
  return run(rows::hardshrink(lambda), x);
}

}  // namespace tapestry
