// The one thread pool: a bounded spin, then an atomic wait; nested calls run inline.
// Not a scheduler: one loop at a time, cut into pieces that each own their outputs.
// Next: strided.h.
#pragma once

#include <cstdint>
#include <memory>
#include <type_traits>

namespace tapestry {

/// Threads a loop may use, the caller included. Default: the cores this process may run on.
int num_threads();
/// ValueError for n < 1. More threads than cores is allowed (tests use it). Not while a loop runs.
void set_num_threads(int n);
/// True inside a piece of parallel_for (nested loops run inline there).
bool in_parallel();

/// A non-owning reference to a callable (begin, end).
class RangeFn {
 public:
  template <class F>
  requires(!std::is_same_v<std::remove_cvref_t<F>, RangeFn>)
      RangeFn(F&& f)  // NOLINT(google-explicit-constructor,bugprone-forwarding-reference-overload)
      : object_(const_cast<void*>(static_cast<const void*>(std::addressof(f)))),
        call_([](void* o, int64_t b, int64_t e) { (*static_cast<std::remove_reference_t<F>*>(o))(b, e); }) {}
  void operator()(int64_t begin, int64_t end) const { call_(object_, begin, end); }

 private:
  void* object_;
  void (*call_)(void*, int64_t, int64_t);
};

/// Runs f(begin, end) over pieces that cover [0, n), each of `grain` items (the last may be smaller), handed out in order to whichever
/// thread is free. Pieces depend on n and grain alone, never on the thread count; each output element must be written by one piece.
/// One thread, one piece or a nested call: f runs inline, piece after piece. An exception of a piece is rethrown to the caller.
void parallel_for(int64_t n, int64_t grain, RangeFn f);

}  // namespace tapestry
