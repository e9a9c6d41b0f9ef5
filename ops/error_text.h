// Checks that many ops share, with the message each of them gives.
#pragma once

#include <string>
#include <string_view>

#include "../autograd/error.h"
#include "ops.h"

namespace tapestry::detail {

/// "[3, 17]": the place of row-major element i.
std::string place_of(const Shape& shape, int64_t i);
/// AutogradError naming the op unless x is defined.
void require_defined(std::string_view op, const Tensor& x);
/// `add: dtypes differ: f32 and bf16; convert with to(x, DType::f32)`.
void require_same_dtype(std::string_view op, const Tensor& a, const Tensor& b);
/// Expands a and b (recorded views) to their common shape; a ShapeError names the dim that does not fit.
void expand_together(std::string_view op, Tensor& a, Tensor& b);
/// The number s beside x, which takes its dtype: DTypeError for a part or a size that i64 cannot hold.
double number_for(std::string_view op, const Tensor& x, double s);
/// DTypeError unless x is i64 (indices).
void require_indices(std::string_view op, const Tensor& x);
/// DTypeError unless x is floating.
void require_floating(std::string_view op, const Tensor& x);
/// ShapeError or DTypeError unless x (…, in), weight (out, in) and bias (out), which may be undefined, make a linear layer.
void require_linear(std::string_view op, const Tensor& x, const Tensor& weight, const Tensor& bias);

}  // namespace tapestry::detail
