// Scratch memory of kernels: grow-only buffers that belong to a thread and are kept from call to call.
// Not for results or anything that outlives the piece of work that asked for it.
// Next: gemm.h.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>

namespace tapestry::kernels {

/// `count` uninitialised elements, 64-byte aligned, of the calling thread. Tag names the use: the same T and Tag give
/// the same memory again, so what an earlier call returned is gone. Grows by doubling and is freed when the thread
/// ends.
template <class T, class Tag>
T* scratch(int64_t count) {
  struct Free {
    void operator()(T* p) const { ::operator delete (p, std::align_val_t{64}); }
  };
  thread_local std::unique_ptr<T, Free> memory;
  thread_local int64_t capacity = 0;
  if (count > capacity || !memory) {
    const int64_t grown = count > 2 * capacity ? count : 2 * capacity;
    memory.reset();
    capacity = 0;
    memory.reset(
        static_cast<T*>(::operator new (static_cast<size_t>(grown > 0 ? grown : 1) * sizeof(T), std::align_val_t{64})));
    capacity = grown;
  }
  return memory.get();
}

}  // namespace tapestry::kernels
