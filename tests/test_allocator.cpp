// test_allocator.cpp: size classes, reuse, alignment and the counters. Next: ../autograd/allocator.h.
#include "../autograd/allocator.h"

#include <doctest/doctest.h>

#include <cstdint>
#include <cstring>
#include <thread>
#include <vector>

#include "../autograd/factory.h"
#include "../autograd/node.h"

using namespace tapestry;

TEST_SUITE("allocator") {
  TEST_CASE("blocks of every size are aligned, apart and writable to their end") {
    const int64_t before = memory_stats().live_bytes;
    struct Block {
      unsigned char* data;
      size_t bytes;
    };
    std::vector<Block> blocks;
    for (size_t bytes : {size_t{0}, size_t{1}, size_t{63}, size_t{64}, size_t{65}, size_t{80}, size_t{81}, size_t{127},
                         size_t{128}, size_t{129}, size_t{4096}, size_t{5000}, size_t{1} << 20, (size_t{2} << 20) - 1,
                         size_t{2} << 20, (size_t{3} << 20) + 7}) {
      auto* p = static_cast<unsigned char*>(allocate(bytes));
      CHECK(reinterpret_cast<uintptr_t>(p) % 64 == 0);
      std::memset(p, static_cast<int>(blocks.size()), bytes);
      blocks.push_back({p, bytes});
    }
    for (size_t i = 0; i < blocks.size(); ++i)
      for (const size_t at : {size_t{0}, blocks[i].bytes / 2, blocks[i].bytes - 1})
        if (blocks[i].bytes > 0) CHECK(blocks[i].data[at] == i);
    CHECK(memory_stats().live_bytes > before + (6 << 20));
    for (const Block& b : blocks) deallocate(b.data, b.bytes);
    CHECK(memory_stats().live_bytes == before);
    deallocate(nullptr, 100);
    CHECK_THROWS_WITH_AS(allocate(SIZE_MAX),
                         doctest::Contains("memory: 18446744073709551615 bytes for a tensor cannot be had; "),
                         MemoryError);
  }

  TEST_CASE("live and peak bytes follow tensors; a size class wastes at most a fifth") {
    const MemoryStats before = memory_stats();
    reset_peak_memory();
    {
      const Tensor x = zeros({1000}, DType::f64);
      const int64_t grown = memory_stats().live_bytes - before.live_bytes;
      CHECK(grown >= 8000);
      CHECK(grown <= 9600);
    }
    CHECK(memory_stats().live_bytes == before.live_bytes);
    CHECK(memory_stats().peak_bytes >= before.live_bytes + 8000);
    reset_peak_memory();
    CHECK(memory_stats().peak_bytes == memory_stats().live_bytes);
  }

  TEST_CASE("freed memory is handed out again, and given back on request") {
    for (int i = 0; i < 3; ++i) zeros({1 << 20});
    const int64_t cached = memory_stats().cached_bytes;
    for (int i = 0; i < 10; ++i) zeros({1 << 20});
    CHECK(memory_stats().cached_bytes == cached);
    release_cached_memory();
    CHECK(memory_stats().cached_bytes == 0);
  }

  TEST_CASE("tensors and nodes may die in another thread than the one that made them") {
    const int64_t nodes = Node::live(), bytes = memory_stats().live_bytes;
    for (int round = 0; round < 3; ++round) {
      std::vector<Tensor> made(5000);
      std::thread maker([&] {
        for (Tensor& t : made) t = zeros({4}).requires_grad_();
      });
      maker.join();
      CHECK(Node::live() == nodes + 5000);
      std::thread([&] { made.resize(2500); }).join();
    }
    CHECK(Node::live() == nodes);
    CHECK(memory_stats().live_bytes == bytes);
  }
}
