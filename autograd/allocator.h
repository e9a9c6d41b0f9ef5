// The caching allocator: freed blocks are kept in one list per size class and handed out again; large blocks lie on huge pages.
// Not a garbage collector, and it gives nothing back to the system unless release_cached_memory() is called.
// Next: storage.h.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tapestry {

/// Uninitialised memory, aligned to 64 bytes (2 MiB blocks and larger: to 2 MiB). MemoryError naming
/// the bytes where there are none.
void* allocate(size_t bytes);
void deallocate(void* block, size_t bytes);

struct MemoryStats {
  int64_t live_bytes = 0;    ///< handed out and not yet given back, rounded up to size classes
  int64_t peak_bytes = 0;    ///< the largest live_bytes since reset_peak_memory()
  int64_t cached_bytes = 0;  ///< kept for reuse
};
MemoryStats memory_stats();
void reset_peak_memory();
/// Gives every cached block back to the system.
void release_cached_memory();

/// Base of small objects that come and go with every op: taken from thread-local free lists.
struct Pooled {
  static void* operator new(size_t bytes);
  static void operator delete(void* block, size_t bytes);
};

}  // namespace tapestry
