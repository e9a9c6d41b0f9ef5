// The free lists and their size classes, huge pages, and the count of what is live and cached. Next: storage.h.
#include "allocator.h"

#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <mutex>
#include <new>
#include <utility>
#include <vector>

#include "error.h"

#include "size_class.h"

namespace tapestry {
namespace {

constexpr size_t huge_page = size_t{2} << 20;

constexpr int classes = 4 * 58;

struct Cache {
  std::mutex mutex;
  std::vector<void*> free[classes];
  int64_t cached = 0;
};
Cache& cache() {
  static auto* c = new Cache;  // never destroyed: tensors of static lifetime are freed after it would be
  return *c;
}
std::atomic<int64_t> live{0}, peak{0};

void count_live(int64_t bytes) {
  const int64_t now = live.fetch_add(bytes, std::memory_order_relaxed) + bytes;
  if (bytes < 0) return;
  int64_t seen = peak.load(std::memory_order_relaxed);
  while (now > seen && !peak.compare_exchange_weak(seen, now, std::memory_order_relaxed)) {
  }
}

[[noreturn]] void fail_memory(size_t bytes) {
  fail<MemoryError>("memory: {} bytes for a tensor cannot be had; {} bytes are in use; take smaller sizes or batches",
                    bytes, live.load());
}

void* from_system(size_t bytes) {
  const size_t alignment = bytes >= huge_page ? huge_page : 64;
  void* block = nullptr;  // not aligned_alloc, which rounds up: a sanitizer sees the very end of a block
  if (posix_memalign(&block, alignment, bytes) != 0) fail_memory(bytes);
  if (bytes >= huge_page) madvise(block, bytes, MADV_HUGEPAGE);
  return block;
}

#if defined(__SANITIZE_ADDRESS__)
constexpr bool reuse = false;  // so that a use after free is seen
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
constexpr bool reuse = false;
#else
constexpr bool reuse = true;
#endif
#else
constexpr bool reuse = true;
#endif

}  // namespace

void* allocate(size_t bytes) {
  if (bytes > size_t{1} << 62) fail_memory(bytes);
  const SizeClass c = size_class(bytes);
  void* block = nullptr;
  if (reuse) {
    Cache& k = cache();
    const std::lock_guard lock(k.mutex);
    auto& list = k.free[c.index];
    if (!list.empty()) {
      block = list.back();
      list.pop_back();
      k.cached -= static_cast<int64_t>(c.bytes);
    }
  }
  if (block == nullptr) block = from_system(reuse ? c.bytes : bytes);
  count_live(static_cast<int64_t>(c.bytes));
  return block;
}

void deallocate(void* block, size_t bytes) {
  if (block == nullptr) return;
  const SizeClass c = size_class(bytes);
  count_live(-static_cast<int64_t>(c.bytes));
  if (!reuse) return std::free(block);
  Cache& k = cache();
  const std::lock_guard lock(k.mutex);
  k.free[c.index].push_back(block);
  k.cached += static_cast<int64_t>(c.bytes);
}

MemoryStats memory_stats() {
  Cache& k = cache();
  const std::lock_guard lock(k.mutex);
  return {live.load(), peak.load(), k.cached};
}

void reset_peak_memory() { peak.store(live.load()); }

void release_cached_memory() {
  Cache& k = cache();
  const std::lock_guard lock(k.mutex);
  for (auto& list : k.free) {
    for (void* block : list) std::free(block);
    list.clear();
  }
  k.cached = 0;
}

namespace {

constexpr size_t pooled_step = 64, pooled_limit = 1024, pooled_kept = 4096;

struct Link {
  Link* next;
};
// Free lists of the small objects of one thread; what it still holds at its end goes back to the system.
struct SmallPool {
  Link* free[pooled_limit / pooled_step + 1] = {};
  size_t kept[pooled_limit / pooled_step + 1] = {};
  ~SmallPool() {
    for (Link*& list : free)
      while (list != nullptr) std::free(std::exchange(list, list->next));
    alive() = false;
  }
  static bool& alive() {
    thread_local bool flag = true;
    return flag;
  }
};
SmallPool& small_pool() {
  thread_local SmallPool pool;
  return pool;
}

}  // namespace

void* Pooled::operator new(size_t bytes) {
  if (reuse && bytes <= pooled_limit && SmallPool::alive()) {
    const size_t i = (bytes + pooled_step - 1) / pooled_step;
    SmallPool& pool = small_pool();
    if (Link* block = pool.free[i]) {
      pool.free[i] = block->next;
      --pool.kept[i];
      return block;
    }
    bytes = i * pooled_step;
  }
  void* block = std::aligned_alloc(64, (bytes + 63) / 64 * 64);
  if (block == nullptr) throw std::bad_alloc();
  return block;
}

void Pooled::operator delete(void* block, size_t bytes) {
  if (reuse && bytes <= pooled_limit && SmallPool::alive()) {
    const size_t i = (bytes + pooled_step - 1) / pooled_step;
    SmallPool& pool = small_pool();
    if (pool.kept[i] < pooled_kept) {
      pool.free[i] = new (block) Link{pool.free[i]};
      ++pool.kept[i];
      return;
    }
  }
  std::free(block);
}

}  // namespace tapestry
