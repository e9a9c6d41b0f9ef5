// Making tensors: from lists, from memory, from rules and from random numbers. All own their memory except borrow_external_memory().
// Not recorded: each result is a leaf without a gradient until requires_grad_().
#pragma once

#include <initializer_list>
#include <memory>
#include <span>
#include <vector>

#include "random.h"
#include "tensor.h"

namespace tapestry {

/// A number, or a list of lists of one length: {{1, 2}, {3, 4}}. ShapeError for ragged lists.
class NestedList {
 public:
  template <class T>
  requires std::is_arithmetic_v<T> NestedList(T x)
      : values_{static_cast<double>(x)} {
  }  // NOLINT(google-explicit-constructor): the list is written with plain numbers
  NestedList(std::initializer_list<NestedList> list);  // NOLINT(google-explicit-constructor)
  [[nodiscard]] const Shape& shape() const { return shape_; }
  [[nodiscard]] const std::vector<double>& values() const { return values_; }

 private:
  Shape shape_;
  std::vector<double> values_;
};

/// tensor({{1, 2}, {3, 4}}): f32 unless tensor<T> says otherwise.
Tensor tensor(std::initializer_list<NestedList> list, DType dtype = DType::f32);
template <class T>
Tensor tensor(std::initializer_list<NestedList> list) {
  return tensor(list, dtype_of<T>());
}
/// A single number, rank 0.
Tensor scalar(double value, DType dtype = DType::f32);

namespace detail {
Tensor from_memory(const void* data, size_t count, const Shape& shape, DType dtype);
Tensor borrow_memory(void* data, size_t count, const Shape& shape, DType dtype, std::shared_ptr<void> keep);
}  // namespace detail

/// A copy of `values` in row-major order; the dtype is T's. ShapeError unless the counts agree.
template <class T>
Tensor from(std::span<const T> values, const Shape& shape) {
  return detail::from_memory(values.data(), values.size(), shape, dtype_of<T>());
}
template <class T>
Tensor from(const std::vector<T>& values, const Shape& shape) {
  return from(std::span<const T>(values), shape);
}
template <class T>
Tensor from(const std::vector<T>& values) {
  return from(values, Shape{static_cast<int64_t>(values.size())});
}
/// A tensor on somebody else's memory; `keep` is held as long as the tensor or a view of it lives.
template <class T>
Tensor borrow_external_memory(std::span<T> values, const Shape& shape, std::shared_ptr<void> keep) {
  return detail::borrow_memory(values.data(), values.size(), shape, dtype_of<T>(), std::move(keep));
}

Tensor zeros(const Shape& shape, DType dtype = DType::f32);
Tensor ones(const Shape& shape, DType dtype = DType::f32);
Tensor full(const Shape& shape, double value, DType dtype = DType::f32);
Tensor zeros_like(const Tensor& x);
Tensor ones_like(const Tensor& x);
/// 0, 1, …, n − 1.
Tensor arange(int64_t n, DType dtype = DType::i64);
/// start, start + step, … short of end. ValueError for step 0.
Tensor arange(double start, double end, double step, DType dtype = DType::f32);
/// n values from start to end, both included.
Tensor linspace(double start, double end, int64_t n, DType dtype = DType::f32);
/// n x n identity.
Tensor eye(int64_t n, DType dtype = DType::f32);
/// Uniform in [0, 1); draws a ticket (random.h).
Tensor rand(const Shape& shape, DType dtype = DType::f32);
/// Standard normal (Box and Muller 1958); draws a ticket.
Tensor randn(const Shape& shape, DType dtype = DType::f32);
/// Uniform integers in [low, high); draws a ticket. ValueError for an empty range.
Tensor randint(int64_t low, int64_t high, const Shape& shape);
/// Standard normal numbers of a ticket: element i comes from block i.
double normal_of(const Ticket& ticket, uint64_t i);

}  // namespace tapestry
