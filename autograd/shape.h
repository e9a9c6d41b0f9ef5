// Shapes and strides: up to eight numbers kept inline, and the arithmetic of broadcasting and views on them.
// Not here: memory (storage.h) or elements (tensor.h).
// Next: storage.h.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>

#include "dtype.h"

namespace tapestry {

inline constexpr int max_rank = 8;

/// Up to eight int64 in place; the type of shapes (sizes per dim) and strides (elements, not bytes, per dim).
class Dims {
 public:
  Dims() = default;
  Dims(std::initializer_list<int64_t> list) : Dims(std::span<const int64_t>(list.begin(), list.size())) {}
  explicit Dims(std::span<const int64_t> list);  ///< ShapeError for more than eight

  [[nodiscard]] int rank() const { return rank_; }
  [[nodiscard]] size_t size() const { return static_cast<size_t>(rank_); }
  [[nodiscard]] bool empty() const { return rank_ == 0; }
  int64_t& operator[](int i) { return d_[i]; }
  int64_t operator[](int i) const { return d_[i]; }
  int64_t* begin() { return d_; }
  int64_t* end() { return d_ + rank_; }
  [[nodiscard]] const int64_t* begin() const { return d_; }
  [[nodiscard]] const int64_t* end() const { return d_ + rank_; }
  [[nodiscard]] const int64_t* data() const { return d_; }
  void push_back(int64_t x);
  void insert(int at, int64_t x);
  void erase(int at);
  // NOLINTNEXTLINE(google-explicit-constructor): dims are passed to kernels as spans
  operator std::span<const int64_t>() const { return {d_, size()}; }

  friend bool operator==(const Dims& a, const Dims& b) {
    if (a.rank_ != b.rank_) return false;
    for (int i = 0; i < a.rank_; ++i)
      if (a.d_[i] != b.d_[i]) return false;
    return true;
  }

 private:
  int64_t d_[max_rank] = {};
  int rank_ = 0;
};

using Shape = Dims;
using Strides = Dims;

/// Product of the sizes; 1 for rank 0. ShapeError for a negative size or a product past 2^63.
int64_t numel(std::span<const int64_t> shape);
/// Row-major strides.
Strides contiguous_strides(const Shape& shape);
bool is_contiguous(const Shape& shape, const Strides& strides);
/// "[2, 3]".
std::string to_string(std::span<const int64_t> dims);
/// "[2, 3] f32", the form shapes take in error messages.
std::string to_string(std::span<const int64_t> shape, DType dtype);
/// `dim` counted from the end when negative; IndexError naming `op`, dim and rank when outside [-rank, rank).
int normalize_dim(const char* op, int64_t dim, int rank);
/// The common shape of a and b (NumPy's rule); ShapeError naming the dim when there is none.
Shape broadcast_shapes(const char* op, const Shape& a, const Shape& b);
/// Strides that read a tensor of `shape`/`strides` as the larger `to`: 0 along repeated dims. ShapeError if it cannot.
Strides expanded_strides(const char* op, const Shape& shape, const Strides& strides, const Shape& to);
/// Strides under which a tensor of `shape`/`strides` can be seen as `to` without a copy; false if there are none.
bool view_strides(const Shape& shape, const Strides& strides, const Shape& to, Strides& result);

}  // namespace tapestry
