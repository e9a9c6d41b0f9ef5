// Gradient hooks: the handle that keeps a hook alive.
// Hooks fire on the summed gradient of a tensor: leaves once a walk, others before their node runs (walk.h).
#pragma once

#include "node.h"

namespace tapestry {

/// Removes its hook when it goes. Movable; release() leaves the hook on for good.
class HookHandle {
 public:
  HookHandle() = default;
  HookHandle(const std::shared_ptr<HookList>& list, uint64_t id) : list_(list), id_(id) {}
  HookHandle(HookHandle&& other) noexcept : list_(std::move(other.list_)), id_(other.id_) { other.list_.reset(); }
  HookHandle& operator=(HookHandle other) noexcept {
    std::swap(list_, other.list_);
    std::swap(id_, other.id_);
    return *this;
  }
  HookHandle(const HookHandle&) = delete;
  ~HookHandle() { remove(); }
  void remove();
  void release() { list_.reset(); }

 private:
  std::weak_ptr<HookList> list_;
  uint64_t id_ = 0;
};

}  // namespace tapestry
