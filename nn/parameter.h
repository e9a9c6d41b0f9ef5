// Tensors that modules own: parameters, which are trained, and buffers, which are only remembered (running statistics).
// Not here: their names and how they are listed (module.h).
// Next: module.h.
#pragma once

#include "../autograd/tensor.h"

namespace tapestry {

namespace detail {
/// Row-major copy of the data without an edge; undefined stays undefined.
Tensor copy_of(const Tensor& x);
}  // namespace detail

/// State that is saved but not trained. Copying it copies the data; as a Tensor it is a handle on its own data.
class Buffer : public Tensor {
 public:
  Buffer() = default;
  explicit Buffer(Tensor data) : Tensor(std::move(data)) {}
  Buffer(const Buffer& other) : Tensor(detail::copy_of(other)) {}
  Buffer(Buffer&&) noexcept = default;
  Buffer& operator=(const Buffer& other) { return *this = Buffer(other); }
  Buffer& operator=(Buffer&&) noexcept = default;
  ~Buffer() = default;
};

/// A leaf that requires a gradient. Copying a Parameter makes a new leaf with copied data, frozen if the other is;
/// moving keeps the leaf. An undefined one stands for an absent parameter ("no bias").
class Parameter : public Tensor {
 public:
  Parameter() = default;
  /// Takes the tensor's data over (without its history). DTypeError unless floating.
  explicit Parameter(const Tensor& data);
  Parameter(const Parameter& other);
  Parameter(Parameter&&) noexcept = default;
  Parameter& operator=(const Parameter& other) { return *this = Parameter(other); }
  Parameter& operator=(Parameter&&) noexcept = default;
  ~Parameter() = default;
};

}  // namespace tapestry
