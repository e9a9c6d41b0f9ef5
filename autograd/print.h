// Printing tensors: nested values, then dtype, shape, strides where they are not row-major, requires_grad and the op behind the tensor.
// Not a file format: values are rounded and large tensors shortened.
// Next: tools/print_tape.h.
#pragma once

#include <iosfwd>
#include <string>

#include "tensor.h"

namespace tapestry {

/// "tensor([[1, 2],\n        [3, 4]], f32 [2, 2], requires_grad)". Six significant digits (four for bf16). Above 1,000 elements a dim of more than
/// six shows its first and last three.
std::string to_string(const Tensor& x);
std::ostream& operator<<(std::ostream& out, const Tensor& x);

}  // namespace tapestry
