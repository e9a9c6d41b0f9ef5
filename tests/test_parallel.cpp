// test_parallel.cpp: the thread pool: coverage, ownership of pieces, nesting, exceptions, several callers, changing the count.
// Next: ../autograd/parallel.h.
#include "../autograd/parallel.h"

#include <doctest/doctest.h>

#include <atomic>
#include <mutex>
#include <set>
#include <stdexcept>
#include <thread>
#include <utility>
#include <vector>

#include "../autograd/error.h"

using namespace tapestry;

namespace {

struct Threads {
  explicit Threads(int n) { set_num_threads(n); }
  ~Threads() { set_num_threads(before); }
  Threads(const Threads&) = delete;
  Threads& operator=(const Threads&) = delete;
  int before = num_threads();
};

std::set<std::pair<int64_t, int64_t>> pieces_of(int64_t n, int64_t grain) {
  std::set<std::pair<int64_t, int64_t>> pieces;
  std::mutex mutex;
  parallel_for(n, grain, [&](int64_t begin, int64_t end) {
    const std::lock_guard lock(mutex);
    pieces.insert({begin, end});
  });
  return pieces;
}

}  // namespace

TEST_SUITE("parallel") {
  TEST_CASE("every index once, in pieces that depend on n and grain alone") {
    for (const int threads : {1, 2, 4}) {
      const Threads set(threads);
      for (const int64_t n : {0, 1, 7, 64, 1000}) {
        std::vector<std::atomic<int>> hits(static_cast<size_t>(n));
        parallel_for(n, 7, [&](int64_t begin, int64_t end) {
          for (int64_t i = begin; i < end; ++i) ++hits[static_cast<size_t>(i)];
        });
        for (const auto& h : hits) CHECK(h == 1);
      }
      CHECK(pieces_of(20, 8) == std::set<std::pair<int64_t, int64_t>>{{0, 8}, {8, 16}, {16, 20}});
      CHECK(pieces_of(3, 0).size() == 3);
      CHECK(pieces_of(-5, 2).empty());
    }
  }

  TEST_CASE("nested loops run inline, inside a piece") {
    const Threads set(4);
    std::atomic<int> sum{0};
    CHECK_FALSE(in_parallel());
    parallel_for(16, 1, [&](int64_t, int64_t) {
      CHECK(in_parallel());
      const auto self = std::this_thread::get_id();
      parallel_for(10, 1, [&](int64_t begin, int64_t) {
        if (std::this_thread::get_id() == self) sum += static_cast<int>(begin);
      });
    });
    CHECK(sum == 16 * 45);
    CHECK_FALSE(in_parallel());
  }

  TEST_CASE("an exception of a piece reaches the caller, and the pool goes on working") {
    for (const int threads : {1, 3}) {
      const Threads set(threads);
      for (int round = 0; round < 20; ++round) {
        CHECK_THROWS_WITH_AS(parallel_for(100, 1,
                                          [](int64_t begin, int64_t) {
                                            if (begin == 41) throw std::runtime_error("piece 41");
                                          }),
                             "piece 41", std::runtime_error);
        std::atomic<int> count{0};
        parallel_for(100, 1, [&](int64_t, int64_t) { ++count; });
        CHECK(count == 100);
        CHECK_FALSE(in_parallel());
      }
    }
  }

  TEST_CASE("many short loops, and callers from several threads at once") {
    const Threads set(3);
    const auto work = [](std::atomic<int64_t>& total) {
      for (int i = 0; i < 2000; ++i) parallel_for(8, 1, [&](int64_t begin, int64_t) { total += begin; });
    };
    std::atomic<int64_t> a{0}, b{0};
    std::thread first([&] { work(a); }), second([&] { work(b); });
    first.join();
    second.join();
    CHECK(a == 2000 * 28);
    CHECK(b == 2000 * 28);
  }

  TEST_CASE("the number of threads can change between loops, and must be sensible") {
    const Threads restore(2);
    for (const int n : {1, 4, 2, 8, 1}) {
      set_num_threads(n);
      CHECK(num_threads() == n);
      CHECK(pieces_of(32, 1).size() == 32);
    }
    CHECK_THROWS_WITH_AS(set_num_threads(0), "set_num_threads: 0 threads; use 1 to 1024", ValueError);
  }
}
