// The multi-layer perceptron: linear layers with an activation between them.
// Not here: convolutions, sequences.
// Next: zoo.h.
#pragma once

#include <vector>

#include "../autograd/error.h"
#include "../nn/activation.h"
#include "../nn/containers.h"
#include "../nn/linear.h"

namespace tapestry {

struct MlpOptions {
  Activation activation = Activation::relu;
  bool bias = true;
};

/// x₀ = x, xᵢ₊₁ = act(Wᵢ xᵢ + bᵢ), without the activation after the last layer; Rumelhart, Hinton & Williams 1986. (…,
/// sizes[0]) to (…, sizes.back()).
///
///     Mlp net({2, 16, 1}, {.activation = Activation::tanh});
struct Mlp : Layer<Mlp> {
  List<Linear> layers;
  Activation activation;

  /// ValueError for fewer than two sizes, or one below 1.
  explicit Mlp(const std::vector<int64_t>& sizes, MlpOptions options = {})
      : layers(checked(sizes) - 1,
               [&](int64_t i) {
                 const auto at = static_cast<size_t>(i);
                 return Linear(sizes[at], sizes[at + 1], {.bias = options.bias});
               }),
        activation(options.activation) {}

  [[nodiscard]] Tensor forward(Tensor x) const {
    for (size_t i = 0; i < layers.size(); ++i) x = i == 0 ? layers[i](x) : layers[i](activate(activation, x));
    return x;
  }
  void visit(Visitor& v) override { v.child("layers", layers); }

 private:
  static int64_t checked(const std::vector<int64_t>& sizes) {
    if (sizes.size() < 2) fail<ValueError>("Mlp: {} sizes; it needs at least those of input and output", sizes.size());
    return static_cast<int64_t>(sizes.size());
  }
};

}  // namespace tapestry
