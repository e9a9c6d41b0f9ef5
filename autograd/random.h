// Counter-based random numbers (Philox 4x32-10, Salmon et al. 2011): a value is a pure function of seed, stream, step, call and index.
// Not a stateful generator: a ticket names the numbers of one call, and any thread may compute any of them.
// Next: parallel.h.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace tapestry {

/// Ten rounds of Philox on a 128-bit counter under a 64-bit key.
std::array<uint32_t, 4> philox(uint64_t key, uint64_t counter_high, uint64_t counter_low);

/// Names all random numbers of one call; forward, backward and composite of an op keep and share it.
struct Ticket {
  uint64_t key = 0;     ///< the seed
  uint64_t stream = 0;  ///< hash of the module path, step and call number
  /// Four 32-bit words of block i (words 4i .. 4i+3 of the stream).
  [[nodiscard]] std::array<uint32_t, 4> block(uint64_t i) const { return philox(key, stream, i); }
  /// Word i of the stream; uniform in [0, 2^32).
  [[nodiscard]] uint32_t word(uint64_t i) const { return block(i / 4)[i % 4]; }
};

/// FNV-1a, to turn names into streams.
uint64_t hash_name(std::string_view name);

/// The calling thread's position in the random streams.
struct RandomState {
  uint64_t seed = 0, step = 0, call = 0;
};
RandomState& random_state();
/// Sets the calling thread's seed and restarts its streams at step 0, call 0.
void manual_seed(uint64_t seed);
/// Moves the calling thread's streams to training step `step`, call 0: what follows depends on seed and step alone.
void set_random_step(uint64_t step);
/// The next ticket of the calling thread: seed, module path (scope.h), step and call number.
Ticket draw_ticket();

/// Uniform in [0, 1) with 24 bits (float) or 53 bits (double) from words of block i.
inline float uniform_f32(uint32_t word) { return static_cast<float>(word >> 8) * 0x1p-24F; }
inline double uniform_f64(uint32_t a, uint32_t b) {
  return static_cast<double>(((static_cast<uint64_t>(a) << 32) | b) >> 11) * 0x1p-53;
}

}  // namespace tapestry
