// Activations: chosen by name (feed_forward.h), or as layers (containers.h).
// Not here: their formulas (ops/pointwise.cpp).
// Next: feed_forward.h.
#pragma once

#include <string_view>

#include "../ops/ops.h"
#include "module.h"

namespace tapestry {

enum class Activation { identity, relu, relu_squared, leaky_relu, gelu, gelu_tanh, silu, tanh, sigmoid, softplus };

Tensor activate(Activation activation, const Tensor& x);
/// "gelu_tanh" and so on, as in configs.
std::string_view name_of(Activation activation);
/// ValueError, listing the names, for one that is not among them.
Activation activation_named(std::string_view name);

struct ReLU : Layer<ReLU> {
  [[nodiscard]] Tensor forward(const Tensor& x) const { return relu(x); }
};
struct LeakyReLU : Layer<LeakyReLU> {
  double slope;
  explicit LeakyReLU(double negative_slope = 0.01) : slope(negative_slope) {}
  [[nodiscard]] Tensor forward(const Tensor& x) const { return leaky_relu(x, slope); }
};
struct ELU : Layer<ELU> {
  double alpha;
  explicit ELU(double a = 1) : alpha(a) {}
  [[nodiscard]] Tensor forward(const Tensor& x) const { return elu(x, alpha); }
};
struct Softplus : Layer<Softplus> {
  [[nodiscard]] Tensor forward(const Tensor& x) const { return softplus(x); }
};
struct Softmax : Layer<Softmax> {
  int64_t dim;
  explicit Softmax(int64_t along) : dim(along) {}
  [[nodiscard]] Tensor forward(const Tensor& x) const { return softmax(x, dim); }
};
struct GELU : Layer<GELU> {
  [[nodiscard]] Tensor forward(const Tensor& x) const { return gelu(x); }
};
struct SiLU : Layer<SiLU> {
  [[nodiscard]] Tensor forward(const Tensor& x) const { return silu(x); }
};
struct Tanh : Layer<Tanh> {
  [[nodiscard]] Tensor forward(const Tensor& x) const { return tanh(x); }
};
struct Sigmoid : Layer<Sigmoid> {
  [[nodiscard]] Tensor forward(const Tensor& x) const { return sigmoid(x); }
};

}  // namespace tapestry
