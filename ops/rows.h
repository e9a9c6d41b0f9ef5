// A tensor seen as rows (norms, losses, linear) or as heads (attention, rope), without a copy where the strides allow it.
// Not part of the API: the fused ops' own files include it.
// Next: norm.cpp.
#pragma once

#include "../autograd/tensor.h"
#include "kernels/rows.h"
#include "ops.h"

namespace tapestry::detail {

/// First element of a tensor just made by empty(), to be filled before anybody reads it; does not count as a write.
template <class T>
T* fresh(const Tensor& y) {
  return static_cast<T*>(y.body()->storage->data) + y.offset();
}

/// First element, or null for an undefined tensor.
template <class T>
const T* data_or_null(const Tensor& x) {
  return x.defined() ? x.data<T>() : nullptr;
}
template <class T>
T* fresh_or_null(const Tensor& x) {
  return x.defined() ? fresh<T>(x) : nullptr;
}

/// Sums of bf16 values are taken in f32.
inline DType compute_dtype(DType t) { return t == DType::f64 ? t : DType::f32; }
inline Tensor in_dtype(const Tensor& x, DType dtype) { return x.dtype() == dtype ? x : to(x, dtype); }

/// Calls f.operator()<T>() with the element type of a floating dtype.
template <class F>
void dispatch_floating(DType dtype, F&& f) {
  if (dtype == DType::f32)
    f.template operator()<float>();
  else if (dtype == DType::f64)
    f.template operator()<double>();
  else
    f.template operator()<bf16>();
}

/// The dtype of a norm's parameters; x's without any.
inline DType parameter_dtype(const Tensor& x, const Tensor& weight, const Tensor& bias) {
  return weight.defined() ? weight.dtype() : bias.defined() ? bias.dtype() : x.dtype();
}
/// Calls f.operator()<T, W>() with the element types of x and of its parameters, which may be f32 beside bf16.
template <class F>
void dispatch_with_parameters(DType x, DType w, F&& f) {
  if (x == DType::f32)
    f.template operator()<float, float>();
  else if (x == DType::f64)
    f.template operator()<double, double>();
  else if (w == DType::f32)
    f.template operator()<bf16, float>();
  else
    f.template operator()<bf16, bf16>();
}

/// rows × width elements, each row contiguous, `stride` elements from row to row. `tensor` holds the memory.
struct RowView {
  Tensor tensor;
  int64_t rows, width, stride;
  template <class T>
  [[nodiscard]] const T* data() const {
    return tensor.data<T>();
  }
};

/// x (…, width) as rows; a copy only where strides allow none.
inline RowView rows_of(const Tensor& x) {
  const int64_t width = x.size(-1), rows = width == 0 ? 0 : x.numel() / width;
  if (x.is_contiguous()) return {x, rows, width, width};
  Strides s;
  if ((x.strides()[x.dim() - 1] == 1 || width == 1) && view_strides(x.shape(), x.strides(), {rows, width}, s))
    return {x, rows, width, s[0]};
  return {dense(x), rows, width, width};
}

/// Rows as kernels take them.
template <class T>
kernels::Rows<const T> kernel_rows(const RowView& x) {
  return {x.data<T>(), x.stride};
}
/// Rows of a contiguous tensor just made, or none.
template <class T>
kernels::Rows<T> fresh_rows(const Tensor& y, int64_t width) {
  return {fresh_or_null<T>(y), width};
}

/// (B, H, T, Dh) over memory laid out as (B, T, H, Dh): giving the heads back to the width is then a view.
inline Tensor empty_heads(const Shape& shape, DType dtype) {
  const Tensor memory = empty({shape[0], shape[2], shape[1], shape[3]}, dtype);
  const Strides& s = memory.strides();
  return memory.view_of(shape, {s[0], s[2], s[1], s[3]}, 0);
}

/// x with unit stride in the last dim, copied only where it has another.
inline Tensor contiguous_rows(const Tensor& x) {
  return x.strides()[x.dim() - 1] == 1 || x.size(-1) == 1 ? x : dense(x);
}

}  // namespace tapestry::detail
