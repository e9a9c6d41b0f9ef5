// Philox's rounds, and how tickets are numbered within a thread. Next: parallel.h.
#include "random.h"

#include "scope.h"

namespace tapestry {

std::array<uint32_t, 4> philox(uint64_t key, uint64_t counter_high, uint64_t counter_low) {
  constexpr uint64_t m0 = 0xD2511F53, m1 = 0xCD9E8D57;
  auto k0 = static_cast<uint32_t>(key), k1 = static_cast<uint32_t>(key >> 32);
  auto c0 = static_cast<uint32_t>(counter_low), c1 = static_cast<uint32_t>(counter_low >> 32);
  auto c2 = static_cast<uint32_t>(counter_high), c3 = static_cast<uint32_t>(counter_high >> 32);
  for (int round = 0; round < 10; ++round) {
    const uint64_t p0 = m0 * c0, p1 = m1 * c2;
    const auto n0 = static_cast<uint32_t>(p1 >> 32) ^ c1 ^ k0, n2 = static_cast<uint32_t>(p0 >> 32) ^ c3 ^ k1;
    c1 = static_cast<uint32_t>(p1);
    c3 = static_cast<uint32_t>(p0);
    c0 = n0;
    c2 = n2;
    k0 += 0x9E3779B9;
    k1 += 0xBB67AE85;
  }
  return {c0, c1, c2, c3};
}

uint64_t hash_name(std::string_view name) {
  uint64_t h = 0xCBF29CE484222325;
  for (const char c : name) h = (h ^ static_cast<unsigned char>(c)) * 0x100000001B3;
  return h;
}

RandomState& random_state() {
  thread_local RandomState state;
  return state;
}

void manual_seed(uint64_t seed) { random_state() = RandomState{seed, 0, 0}; }

void set_random_step(uint64_t step) {
  random_state().step = step;
  random_state().call = 0;
}

Ticket draw_ticket() {
  RandomState& s = random_state();
  const auto a = philox(s.seed, hash_name(scope_path()), s.step);
  const auto b =
      philox((static_cast<uint64_t>(a[1]) << 32) | a[0], (static_cast<uint64_t>(a[3]) << 32) | a[2], s.call++);
  return {s.seed, (static_cast<uint64_t>(b[1]) << 32) | b[0]};
}

}  // namespace tapestry
