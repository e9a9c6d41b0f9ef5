// The pool: workers that spin for a while, then sleep on an atomic, and take pieces by number. Next: strided.h.
#include "parallel.h"

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include "error.h"

namespace tapestry {
namespace {

thread_local bool inside_piece = false;

inline void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

// Long enough to bridge the gaps between the loops of one training step, short enough to give a shared core back.
constexpr int spins = 4000;

class Pool {
 public:
  explicit Pool(int workers) {
    for (int i = 0; i < workers; ++i) threads_.emplace_back([this] { work(); });
  }
  ~Pool() {
    stop_.store(true, std::memory_order_relaxed);
    epoch_.fetch_add(1, std::memory_order_release);
    epoch_.notify_all();
    for (auto& t : threads_) t.join();
  }
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  void run(int64_t n, int64_t grain, const RangeFn& f) {
    n_ = n;
    grain_ = grain;
    f_ = &f;
    error_ = nullptr;
    next_.store(0, std::memory_order_relaxed);
    inside_.store(0, std::memory_order_release);
    epoch_.fetch_add(1, std::memory_order_seq_cst);
    if (sleeping_.load(std::memory_order_seq_cst) > 0) epoch_.notify_all();
    pieces();
    close();
    if (error_) std::rethrow_exception(error_);
  }

 private:
  // Note [Open and closed loops]: a worker joins a loop by raising inside_ from a value >= 0. The caller, out of pieces itself, waits only for
  // those that joined and closes the loop, so a worker that is still asleep costs nothing.
  void close() {
    for (int i = 0;;) {
      int none = 0;
      if (inside_.compare_exchange_strong(none, closed, std::memory_order_acq_rel)) return;
      if (++i < spins) {
        relax();
      } else {
        inside_.wait(none, std::memory_order_acquire);
      }
    }
  }

  bool join() {
    int n = inside_.load(std::memory_order_relaxed);
    while (n >= 0)
      if (inside_.compare_exchange_weak(n, n + 1, std::memory_order_acq_rel)) return true;
    return false;
  }

  void work() {
    uint32_t seen = 0;
    for (;;) {
      uint32_t now = epoch_.load(std::memory_order_acquire);
      for (int i = 0; now == seen && i < spins; ++i) {
        relax();
        now = epoch_.load(std::memory_order_acquire);
      }
      if (now == seen) {
        sleeping_.fetch_add(1, std::memory_order_seq_cst);
        epoch_.wait(seen, std::memory_order_seq_cst);
        sleeping_.fetch_sub(1, std::memory_order_relaxed);
        continue;
      }
      seen = now;
      if (stop_.load(std::memory_order_relaxed)) return;
      if (!join()) continue;
      pieces();
      if (inside_.fetch_sub(1, std::memory_order_acq_rel) == 1) inside_.notify_one();
    }
  }

  void pieces() {
    inside_piece = true;
    for (;;) {
      const int64_t begin = next_.fetch_add(grain_, std::memory_order_relaxed);
      if (begin >= n_) break;
      try {
        (*f_)(begin, std::min(begin + grain_, n_));
      } catch (...) {
        const std::lock_guard lock(error_mutex_);
        if (!error_) error_ = std::current_exception();
        next_.store(n_, std::memory_order_relaxed);
      }
    }
    inside_piece = false;
  }

  std::vector<std::thread> threads_;
  std::atomic<uint32_t> epoch_{0};
  static constexpr int closed = -1;
  std::atomic<int> inside_{closed}, sleeping_{0};
  std::atomic<int64_t> next_{0};
  std::atomic<bool> stop_{false};
  int64_t n_ = 0, grain_ = 1;
  const RangeFn* f_ = nullptr;
  std::exception_ptr error_;
  std::mutex error_mutex_;
};

int default_threads() {
  cpu_set_t set;
  CPU_ZERO(&set);
  return sched_getaffinity(0, sizeof(set), &set) == 0 ? std::max(1, CPU_COUNT(&set)) : 1;
}

// Loops of different user threads take turns: a second caller that finds the pool busy runs its loop inline.
std::mutex pool_mutex;
std::atomic<int> thread_count{0};
std::unique_ptr<Pool>& pool() {
  static std::unique_ptr<Pool> instance;
  return instance;
}

void run_inline(int64_t n, int64_t grain, const RangeFn& f) {
  for (int64_t begin = 0; begin < n; begin += grain) f(begin, std::min(begin + grain, n));
}

}  // namespace

int num_threads() {
  const int n = thread_count.load(std::memory_order_relaxed);
  if (n > 0) return n;
  int unset = 0;
  thread_count.compare_exchange_strong(unset, default_threads());
  return thread_count.load();
}

void set_num_threads(int n) {
  if (n < 1 || n > 1024) fail<ValueError>("set_num_threads: {} threads; use 1 to 1024", n);
  const std::lock_guard lock(pool_mutex);
  if (n != num_threads()) pool().reset();
  thread_count.store(n);
}

bool in_parallel() { return inside_piece; }

void parallel_for(int64_t n, int64_t grain, RangeFn f) {
  grain = std::max<int64_t>(grain, 1);
  if (n <= 0) return;
  if (n <= grain || inside_piece || num_threads() == 1) return run_inline(n, grain, f);
  const std::unique_lock lock(pool_mutex, std::try_to_lock);
  if (!lock.owns_lock() || num_threads() == 1) return run_inline(n, grain, f);
  if (!pool()) pool() = std::make_unique<Pool>(num_threads() - 1);
  pool()->run(n, grain, f);
}

}  // namespace tapestry
