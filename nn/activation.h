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
