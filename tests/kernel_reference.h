// What the tests of kernels share: seeded values, comparison with a tolerance, and running at several thread counts.
// Not for tests of tensors. Next: test_gemm_kernel.cpp.
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

#include "../autograd/dtype.h"
#include "../autograd/parallel.h"
#include "../autograd/random.h"

namespace tapestry::testing {

/// `n` values in [-1, 1) that every type but i64 rounds from the same numbers; small integers for i64.
template <class T>
std::vector<T> values(int64_t n, uint64_t seed) {
  std::vector<T> out(static_cast<size_t>(n));
  const Ticket ticket{seed, 1};
  for (size_t i = 0; i < out.size(); ++i) {
    const float u = 2 * uniform_f32(ticket.word(i)) - 1;
    out[i] = std::is_same_v<T, int64_t> ? convert<T>(std::floor(u * 9)) : convert<T>(u);
  }
  return out;
}

template <class T>
double to_double(T x) {
  return convert<double>(x);
}

/// Relative spacing of the values T can hold.
template <class T>
double epsilon() {
  if constexpr (std::is_same_v<T, bf16>) return 0x1p-8;
  if constexpr (std::is_same_v<T, float>) return 0x1p-23;
  if constexpr (std::is_same_v<T, double>) return 0x1p-52;
  return 0;
}

/// The largest |a - b| / max(1, |b|); infinity where one is NaN and the other is not or infinities differ.
template <class T, class U>
double max_error(const std::vector<T>& a, const std::vector<U>& b) {
  if (a.size() != b.size()) return INFINITY;
  double worst = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    const double x = to_double(a[i]), y = to_double(b[i]);
    if (x == y || (x != x && y != y)) continue;
    const double e = std::abs(x - y) / std::max(1.0, std::abs(y));
    worst = std::isfinite(e) ? std::max(worst, e) : INFINITY;
  }
  return worst;
}

template <class T>
bool same_bits(const std::vector<T>& a, const std::vector<T>& b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0);
}

/// True if `run()`, which returns a vector, gives the same bits with 1, 2, 4 and 8 threads. Restores the thread count.
template <class F>
bool same_for_all_threads(F run) {
  const int before = num_threads();
  set_num_threads(1);
  const auto expected = run();
  bool same = true;
  for (const int n : {2, 4, 8}) {
    set_num_threads(n);
    same = same && same_bits(run(), expected);
  }
  set_num_threads(before);
  return same;
}

}  // namespace tapestry::testing
