// Running a row backward: the tensors a check needs from a row, a sample and inputs.
// Not the checks (../test_op_table.cpp, ../test_op_gradients.cpp). Next: samples.h.
#pragma once

#include "../../autograd/tools/gradcheck.h"
#include "op_table.h"
#include "samples.h"

namespace tapestry::op_table {

/// The row at a sample as a function of its inputs, for gradcheck.
TensorFunction function_of(const OpRow& row, const Sample& sample);
/// The row's definition in plain ops likewise.
TensorFunction composite_of(const OpRow& row, const Sample& sample);

/// Numbers in ±[0.5, 1.5] of the shape and dtype of y, the same every time.
Tensor upstream_of(const Tensor& y);
/// The inputs that require a gradient.
std::vector<Tensor> leaves_of(const std::vector<Tensor>& inputs);
/// Gradients of sum(upstream * outputs) at the leaves; undefined where there is none. `factor` multiplies the upstream.
std::vector<Tensor> gradients(const TensorFunction& f, const std::vector<Tensor>& inputs, double factor = 1);
/// The same by backward(), into .grad.
void run_backward(const TensorFunction& f, const std::vector<Tensor>& inputs);

/// Same dtype, shape and bits.
bool same_bits(const Tensor& a, const Tensor& b);
/// Largest |a - b| / max(1, |b|); infinite where shapes differ or one is NaN.
double distance(const Tensor& a, const Tensor& b);

}  // namespace tapestry::op_table
