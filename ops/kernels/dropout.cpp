// dropout.cpp: dropout.h; sixteen Philox blocks side by side in loops the compiler vectorises.
// Next: optimizer.cpp.
#include "dropout.h"

#include <algorithm>
#include <cmath>

#include "../../autograd/parallel.h"

namespace tapestry::kernels {
namespace {

constexpr int width = 16;                     // blocks at once
constexpr int64_t tile = 4 * int64_t{width};  // their words

// Words of blocks first_block … first_block + 15: philox() of autograd/random.h on sixteen counters (Salmon et al.
// 2011).
void sixteen_blocks(const Ticket& ticket, uint64_t first_block, uint32_t* words) {
  uint32_t c0[width], c1[width], c2[width], c3[width];
  uint64_t p0[width], p1[width];
  for (int i = 0; i < width; ++i) {
    const uint64_t counter = first_block + static_cast<uint64_t>(i);
    c0[i] = static_cast<uint32_t>(counter);
    c1[i] = static_cast<uint32_t>(counter >> 32);
    c2[i] = static_cast<uint32_t>(ticket.stream);
    c3[i] = static_cast<uint32_t>(ticket.stream >> 32);
  }
  auto k0 = static_cast<uint32_t>(ticket.key), k1 = static_cast<uint32_t>(ticket.key >> 32);
  for (int round = 0; round < 10; ++round) {
    // One statement a loop: so GCC 12 vectorises each.
    for (int i = 0; i < width; ++i) p0[i] = uint64_t{0xD2511F53} * c0[i];
    for (int i = 0; i < width; ++i) p1[i] = uint64_t{0xCD9E8D57} * c2[i];
    for (int i = 0; i < width; ++i) c0[i] = static_cast<uint32_t>(p1[i] >> 32) ^ c1[i] ^ k0;
    for (int i = 0; i < width; ++i) c2[i] = static_cast<uint32_t>(p0[i] >> 32) ^ c3[i] ^ k1;
    for (int i = 0; i < width; ++i) c1[i] = static_cast<uint32_t>(p1[i]);
    for (int i = 0; i < width; ++i) c3[i] = static_cast<uint32_t>(p0[i]);
    k0 += 0x9E3779B9;
    k1 += 0xBB67AE85;
  }
  for (int i = 0; i < width; ++i) {
    words[4 * i] = c0[i];
    words[4 * i + 1] = c1[i];
    words[4 * i + 2] = c2[i];
    words[4 * i + 3] = c3[i];
  }
}

// f(begin, count, words) for tiles of up to 64 elements.
template <class F>
void each_tile(int64_t n, const Ticket& ticket, F f) {
  parallel_for((n + tile - 1) / tile, 128, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      uint32_t words[tile];
      sixteen_blocks(ticket, static_cast<uint64_t>(i) * width, words);
      f(i * tile, std::min(tile, n - i * tile), words);
    }
  });
}

// uniform_f32(word) >= p, in integers: word / 2^8 (rounded down) >= this. p = 1 keeps nothing.
uint32_t threshold(double p) { return static_cast<uint32_t>(std::ceil(p * 0x1p24)); }

template <class C>
C factor(double p) {
  return p < 1 ? static_cast<C>(1 / (1 - p)) : C(0);
}

}  // namespace

void random_words(const Ticket& ticket, uint64_t first, int64_t n, uint32_t* words) {
  for (int64_t i = 0; i < n; i += tile) {
    const uint64_t block = (first + static_cast<uint64_t>(i)) / 4;
    if (n - i >= tile) {
      sixteen_blocks(ticket, block, words + i);
    } else {
      uint32_t rest[tile];
      sixteen_blocks(ticket, block, rest);
      std::copy(rest, rest + (n - i), words + i);
    }
  }
}

template <class T>
void dropout(int64_t n, double p, const Ticket& ticket, const T* x, T* y) {
  using C = compute_t<T>;
  const uint32_t least = threshold(p);
  const C scale = factor<C>(p);
  each_tile(n, ticket, [&](int64_t begin, int64_t count, const uint32_t* words) {
    const T* in = x + begin;
    T* out = y + begin;
    for (int64_t i = 0; i < count; ++i) {
      const C kept = convert<C>(in[i]) * scale;
      out[i] = convert<T>((words[i] >> 8) >= least ? kept : C(0));
    }
  });
}

template <class T>
void dropout_mask(int64_t n, double p, const Ticket& ticket, T* mask) {
  using C = compute_t<T>;
  const uint32_t least = threshold(p);
  const C scale = factor<C>(p);
  each_tile(n, ticket, [&](int64_t begin, int64_t count, const uint32_t* words) {
    for (int64_t i = 0; i < count; ++i) mask[begin + i] = convert<T>((words[i] >> 8) >= least ? scale : C(0));
  });
}

#define TAPESTRY_DROPOUT(T)                                               \
  template void dropout<T>(int64_t, double, const Ticket&, const T*, T*); \
  template void dropout_mask<T>(int64_t, double, const Ticket&, T*);
TAPESTRY_DROPOUT(float)
TAPESTRY_DROPOUT(double)
TAPESTRY_DROPOUT(bf16)
#undef TAPESTRY_DROPOUT

}  // namespace tapestry::kernels
