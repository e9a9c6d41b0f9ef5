// An intrusive shared pointer: the count lies in the object, so a handle is one word and one allocation makes one object.
// Next: storage.h.
#pragma once

#include <atomic>
#include <cstdint>
#include <utility>

namespace tapestry {

/// Base of shared objects. `T::dispose()` runs when the last Ref goes (default: delete).
class RefCounted {
 public:
  RefCounted() = default;
  RefCounted(const RefCounted&) : RefCounted() {}
  RefCounted& operator=(const RefCounted&) { return *this; }
  [[nodiscard]] int32_t ref_count() const { return count_.load(std::memory_order_acquire); }

 private:
  template <class T>
  friend class Ref;
  mutable std::atomic<int32_t> count_{0};
};

template <class T>
class Ref {
 public:
  Ref() = default;
  Ref(std::nullptr_t) {}  // NOLINT(google-explicit-constructor): as for every pointer
  explicit Ref(T* object) : object_(object) { acquire(); }
  Ref(const Ref& other) : object_(other.object_) { acquire(); }
  Ref(Ref&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
  template <class U>
  requires std::is_convertible_v<U*, T*> Ref(const Ref<U>& other)
      : Ref(static_cast<T*>(other.get())) {}  // NOLINT(google-explicit-constructor)
  Ref& operator=(Ref other) noexcept {
    std::swap(object_, other.object_);
    return *this;
  }
  ~Ref() { release(); }

  T* get() const { return object_; }
  T* operator->() const { return object_; }
  T& operator*() const { return *object_; }
  explicit operator bool() const { return object_ != nullptr; }
  friend bool operator==(const Ref& a, const Ref& b) { return a.object_ == b.object_; }
  friend bool operator==(const Ref& a, std::nullptr_t) { return a.object_ == nullptr; }

 private:
  void acquire() const {
    if (object_ != nullptr) object_->count_.fetch_add(1, std::memory_order_relaxed);
  }
  void release() {
    T* object = std::exchange(object_, nullptr);
    if (object == nullptr) return;
    // The last owner needs no locked instruction: nobody else can raise the count again.
    if (object->count_.load(std::memory_order_acquire) == 1 ||
        object->count_.fetch_sub(1, std::memory_order_acq_rel) == 1)
      T::dispose(object);
  }

  T* object_ = nullptr;
};

}  // namespace tapestry
