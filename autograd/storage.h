// A block of memory shared by tensors, with the count of in-place writes to it.
// Not typed and not shaped: that is the tensor's (tensor.h).
// Next: tensor.h.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "allocator.h"
#include "ref.h"

namespace tapestry {

struct Storage : RefCounted, Pooled {
  /// Uninitialised memory of the caching allocator.
  explicit Storage(int64_t n) : data(allocate(static_cast<size_t>(n))), bytes(n) {}
  /// Somebody else's memory; `keep` lives as long as the storage.
  Storage(void* memory, int64_t n, std::shared_ptr<void> keep)
      : data(memory), bytes(n), owner(std::move(keep)), borrowed(true) {}
  ~Storage() {
    if (!borrowed) deallocate(data, static_cast<size_t>(bytes));
  }
  Storage(const Storage&) = delete;
  Storage& operator=(const Storage&) = delete;
  static void dispose(Storage* s) { delete s; }

  void* data;
  int64_t bytes;
  std::atomic<uint32_t> version{0};         ///< in-place writes; shared by all views and by detach()
  std::atomic<const char*> last_write{""};  ///< name of the op that wrote last, for messages
  std::shared_ptr<void> owner;
  bool borrowed = false;
};

}  // namespace tapestry
