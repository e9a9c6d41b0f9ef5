// Derivatives of functions: vjp, jvp, jacobian, hessian and hvp.
// Not recording (../function.h) nor the walk (../engine.h): these run f once, or a few times, and walk what it recorded.
// Next: functional.cpp.
#pragma once

#include "tensor_function.h"

namespace tapestry {

struct FunctionalOptions {
  /// Record the derivatives, too: the results can be differentiated on, through the inputs' histories and whatever else f uses, so that these calls nest.
  bool create_graph = false;
};

/// The values of f and one derivative of it.
struct Derivative {
  std::vector<Tensor> outputs;   ///< f(inputs); without an edge unless create_graph
  std::vector<Tensor> gradient;  ///< vjp: one per input; jvp: one per output
};

// For all of them: inputs of floating dtype are variables, whether they require a gradient or not; the others are passed on, and their gradient is undefined.
// Where f does not depend on an input, its derivative is 0. ShapeError and DTypeError where a vector does not fit; AutogradError for a missing one.

/// Vector-Jacobian product, reverse mode: for every input the sum over outputs of vᵀ·∂output/∂input. One v per output, undefined for 0.
///
///     auto [y, g] = vjp([](const Tensor& x) { return sin(x); }, {x}, {ones_like(x)});   // g[0] = cos(x)
Derivative vjp(const TensorFunction& f, const std::vector<Tensor>& inputs, const std::vector<Tensor>& v,
               FunctionalOptions options = {});

/// Jacobian-vector product, the derivative of f along v: for every output the sum over inputs of ∂output/∂input·v. One v per input, undefined for 0.
/// Computed by differentiating the vjp, which is linear in its vector, by that vector: about twice a vjp.
Derivative jvp(const TensorFunction& f, const std::vector<Tensor>& inputs, const std::vector<Tensor>& v,
               FunctionalOptions options = {});

/// jacobian[o][i] of shape (output o's dims, input i's dims): ∂output/∂input. One walk for each element of the outputs. ShapeError above rank 8.
std::vector<std::vector<Tensor>> jacobian(const TensorFunction& f, const std::vector<Tensor>& inputs,
                                          FunctionalOptions options = {});
/// Of one input and one output.
Tensor jacobian(const TensorFunction& f, const Tensor& input, FunctionalOptions options = {});

/// hessian[i][j] of shape (input i's dims, input j's dims): ∂²f/∂input_i ∂input_j. ShapeError unless f gives a single element.
std::vector<std::vector<Tensor>> hessian(const TensorFunction& f, const std::vector<Tensor>& inputs,
                                         FunctionalOptions options = {});
Tensor hessian(const TensorFunction& f, const Tensor& input, FunctionalOptions options = {});

/// Hessian-vector product without the Hessian: outputs = f(inputs), gradient[i] = Σ_j ∂²f/∂input_i ∂input_j·v_j. Two walks.
Derivative hvp(const TensorFunction& f, const std::vector<Tensor>& inputs, const std::vector<Tensor>& v,
               FunctionalOptions options = {});

}  // namespace tapestry
