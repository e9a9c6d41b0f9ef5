// The one list of activations: name and function.
#include "activation.h"

#include <string>

#include "../autograd/error.h"

namespace tapestry {
namespace {

struct Row {
  Activation activation;
  std::string_view name;
  Tensor (*fn)(const Tensor&);
};
constexpr Row rows[] = {
    {Activation::identity, "identity", [](const Tensor& x) { return x; }},
    {Activation::relu, "relu", relu},
    {Activation::relu_squared, "relu_squared", relu_squared},
    {Activation::leaky_relu, "leaky_relu", [](const Tensor& x) { return leaky_relu(x); }},
    {Activation::gelu, "gelu", gelu},
    {Activation::gelu_tanh, "gelu_tanh", gelu_tanh},
    {Activation::silu, "silu", silu},
    {Activation::tanh, "tanh", [](const Tensor& x) { return tanh(x); }},
    {Activation::sigmoid, "sigmoid", sigmoid},
    {Activation::softplus, "softplus", softplus},
};

const Row& row(Activation a) {
  const auto i = static_cast<size_t>(a);
  if (i >= std::size(rows)) fail<ValueError>("activate: {} is no activation", i);
  return rows[i];
}

}  // namespace

Tensor activate(Activation activation, const Tensor& x) { return row(activation).fn(x); }

std::string_view name_of(Activation activation) { return row(activation).name; }

Activation activation_named(std::string_view name) {
  std::string known;
  for (const Row& r : rows) {
    if (r.name == name) return r.activation;
    known += (known.empty() ? "" : ", ") + std::string(r.name);
  }
  fail<ValueError>("activation: '{}' is not known; take one of {}", name, known);
}

}  // namespace tapestry
