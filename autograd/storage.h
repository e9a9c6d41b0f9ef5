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

/// What memory is for; a storage keeps what it was marked as last until it is freed.
enum class MemoryKind : uint8_t { temporary, parameter, gradient, optimizer, saved, cache };

struct Storage;
namespace detail {
/// Is there a tools/memory_report.h MemoryTracker? Only storages made while there is one are counted.
inline constinit std::atomic<bool> memory_tracked{false};
void count_storage(Storage& s);
void discount_storage(const Storage& s);
void recount_storage(Storage& s, MemoryKind kind);
}  // namespace detail

struct Storage : RefCounted, Pooled {
  /// Uninitialised memory of the caching allocator.
  explicit Storage(int64_t n) : data(allocate(static_cast<size_t>(n))), bytes(n) {
    if (detail::memory_tracked.load(std::memory_order_relaxed)) [[unlikely]]
      detail::count_storage(*this);
  }
  /// Somebody else's memory; `keep` lives as long as the storage.
  Storage(void* memory, int64_t n, std::shared_ptr<void> keep)
      : data(memory), bytes(n), owner(std::move(keep)), borrowed(true) {}
  ~Storage() {
    if (tracker != 0) [[unlikely]]
      detail::discount_storage(*this);
    if (!borrowed) deallocate(data, static_cast<size_t>(bytes));
  }
  Storage(const Storage&) = delete;
  Storage& operator=(const Storage&) = delete;
  static void dispose(Storage* s) { delete s; }

  /// Says what the memory is for, where it is counted. Saving leaves what is more than temporary as it is.
  void mark(MemoryKind what) {
    if (tracker != 0) [[unlikely]]
      detail::recount_storage(*this, what);
  }

  void* data;
  int64_t bytes;
  std::atomic<uint32_t> version{0};         ///< in-place writes; shared by all views and by detach()
  uint32_t path = 0;                        ///< where it is counted: module path it was made in (scope.h)
  std::atomic<const char*> last_write{""};  ///< name of the op that wrote last, for messages
  std::shared_ptr<void> owner;
  bool borrowed = false;
  MemoryKind kind = MemoryKind::temporary;  ///< where it is counted
  uint32_t tracker = 0;                     ///< number of the tracker that counts it, 0 for none
};

}  // namespace tapestry
