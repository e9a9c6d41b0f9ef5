// A vector whose first N elements live inside it: shapes, edges and gradients allocate nothing in the usual case.
// Not a std::vector: only what the core uses.
// Next: shape.h.
#pragma once

#include <cstddef>
#include <initializer_list>
#include <memory>
#include <span>
#include <utility>

namespace tapestry {

template <class T, size_t N>
class SmallVector {
 public:
  SmallVector() = default;
  SmallVector(std::initializer_list<T> list) {
    reserve(list.size());
    for (const T& x : list) push_back(x);
  }
  explicit SmallVector(size_t n) { resize(n); }
  SmallVector(const SmallVector& other) {
    reserve(other.size_);
    for (const T& x : other) push_back(x);
  }
  SmallVector(SmallVector&& other) noexcept { take(other); }
  SmallVector& operator=(SmallVector other) noexcept {
    clear();
    release();
    take(other);
    return *this;
  }
  ~SmallVector() {
    clear();
    release();
  }

  [[nodiscard]] size_t size() const { return size_; }
  [[nodiscard]] bool empty() const { return size_ == 0; }
  T* data() { return data_; }
  const T* data() const { return data_; }
  T* begin() { return data_; }
  T* end() { return data_ + size_; }
  const T* begin() const { return data_; }
  const T* end() const { return data_ + size_; }
  T& operator[](size_t i) { return data_[i]; }
  const T& operator[](size_t i) const { return data_[i]; }
  T& back() { return data_[size_ - 1]; }
  // NOLINTNEXTLINE(google-explicit-constructor): a list of tensors is passed on as a span
  operator std::span<const T>() const { return {data_, size_}; }

  void push_back(T x) {
    if (size_ == capacity_) reserve(2 * capacity_);
    std::construct_at(data_ + size_, std::move(x));
    ++size_;
  }
  void resize(size_t n) {
    reserve(n);
    while (size_ < n) std::construct_at(data_ + size_++);
    while (size_ > n) std::destroy_at(data_ + --size_);
  }
  void clear() {
    while (size_ > 0) std::destroy_at(data_ + --size_);
  }
  void reserve(size_t n) {
    if (n <= capacity_) return;
    T* bigger = std::allocator<T>().allocate(n);
    std::uninitialized_move_n(data_, size_, bigger);
    std::destroy_n(data_, size_);
    release();
    data_ = bigger;
    capacity_ = n;
  }

 private:
  T* inline_data() { return reinterpret_cast<T*>(inline_); }
  void release() {
    if (data_ != inline_data()) std::allocator<T>().deallocate(data_, capacity_);
    data_ = inline_data();
    capacity_ = N;
  }
  void take(SmallVector& other) noexcept {
    if (other.data_ == other.inline_data()) {
      std::uninitialized_move_n(other.data_, other.size_, data_);
      size_ = other.size_;
      other.clear();
    } else {
      data_ = std::exchange(other.data_, other.inline_data());
      size_ = std::exchange(other.size_, 0);
      capacity_ = std::exchange(other.capacity_, N);
    }
  }

  T* data_ = inline_data();
  size_t size_ = 0, capacity_ = N;
  alignas(T) std::byte inline_[N * sizeof(T)];
};

}  // namespace tapestry
