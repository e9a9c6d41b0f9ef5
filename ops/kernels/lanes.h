// Lanes<T>: a SIMD register of floats or doubles, the value kind a pointwise kernel computes with; Mask<T>: its comparisons.
// Not the mathematics (formula_lanes.h), and never included by an installed header: only kernels and tests see xsimd.
// Next: formula_lanes.h.
#pragma once

#include <cstdint>
#include <type_traits>

// GCC 12 takes the undefined pass-through operand of AVX-512 intrinsics for an uninitialised variable.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"
#endif
#include <xsimd/xsimd.hpp>
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic pop
#endif

// One name per instruction set, so that objects compiled with different -m flags can be linked into one test.
#if defined(__AVX512F__)
#define TAPESTRY_LANES_ARCH lanes_avx512
#elif defined(__AVX2__)
#define TAPESTRY_LANES_ARCH lanes_avx2
#else
#define TAPESTRY_LANES_ARCH lanes_base
#endif

namespace tapestry {
inline namespace TAPESTRY_LANES_ARCH {

/// The result of comparing Lanes<T>: one bit of truth per lane. Combine with & | and !.
template <class T>
struct Mask {
  using Batch = xsimd::batch_bool<T>;
  Batch v;

  Mask() = default;
  explicit Mask(bool b) : v(b) {}
  explicit Mask(const Batch& b) : v(b) {}
  friend Mask operator&(const Mask& a, const Mask& b) { return Mask(a.v & b.v); }
  friend Mask operator|(const Mask& a, const Mask& b) { return Mask(a.v | b.v); }
  friend Mask operator!(const Mask& a) { return Mask(!a.v); }
  /// True when any lane is.
  [[nodiscard]] bool any() const { return xsimd::any(v); }
};

/// `size` values of T in one register. It converts from nothing implicitly: constants are written num<Lanes<T>>(0.5). The arithmetic is
/// our own, so that a formula can reach only functions of this namespace, never xsimd's (whose edge cases differ from std::).
template <class T>
struct Lanes {
  static_assert(std::is_same_v<T, float> || std::is_same_v<T, double>, "lanes hold float or double");
  using value_type = T;
  using Batch = xsimd::batch<T>;
  static constexpr int64_t size = static_cast<int64_t>(Batch::size);
  /// Integers of the same width, to build and split exponents; private to the mathematics.
  using Int = xsimd::batch<std::conditional_t<sizeof(T) == 4, int32_t, int64_t>>;
  Batch v;

  Lanes() = default;
  explicit Lanes(T x) : v(x) {}
  explicit Lanes(const Batch& b) : v(b) {}

  static Lanes load(const T* p) { return Lanes(Batch::load_unaligned(p)); }
  static Lanes load_aligned(const T* p) { return Lanes(Batch::load_aligned(p)); }
  void store(T* p) const { v.store_unaligned(p); }
  void store_aligned(T* p) const { v.store_aligned(p); }

  friend Lanes operator+(const Lanes& a, const Lanes& b) { return Lanes(a.v + b.v); }
  friend Lanes operator-(const Lanes& a, const Lanes& b) { return Lanes(a.v - b.v); }
  friend Lanes operator*(const Lanes& a, const Lanes& b) { return Lanes(a.v * b.v); }
  friend Lanes operator/(const Lanes& a, const Lanes& b) { return Lanes(a.v / b.v); }
  friend Lanes operator-(const Lanes& a) { return Lanes(a.v ^ Batch(T(-0.0))); }
  Lanes& operator+=(const Lanes& b) { return *this = *this + b; }
  Lanes& operator-=(const Lanes& b) { return *this = *this - b; }
  Lanes& operator*=(const Lanes& b) { return *this = *this * b; }
  Lanes& operator/=(const Lanes& b) { return *this = *this / b; }

  friend Mask<T> operator==(const Lanes& a, const Lanes& b) { return Mask<T>(a.v == b.v); }
  friend Mask<T> operator!=(const Lanes& a, const Lanes& b) { return !(a == b); }
  friend Mask<T> operator<(const Lanes& a, const Lanes& b) { return Mask<T>(a.v < b.v); }
  friend Mask<T> operator<=(const Lanes& a, const Lanes& b) { return Mask<T>(a.v <= b.v); }
  friend Mask<T> operator>(const Lanes& a, const Lanes& b) { return Mask<T>(b.v < a.v); }
  friend Mask<T> operator>=(const Lanes& a, const Lanes& b) { return Mask<T>(b.v <= a.v); }
};

template <class T>
Lanes<T> where(const Mask<T>& c, const Lanes<T>& a, const Lanes<T>& b) {
  return Lanes<T>(xsimd::select(c.v, a.v, b.v));
}

/// a·b + c, rounded once where the machine has it.
template <class T>
Lanes<T> fma(const Lanes<T>& a, const Lanes<T>& b, const Lanes<T>& c) {
  return Lanes<T>(xsimd::fma(a.v, b.v, c.v));
}

/// Every integer shifted left; a vector extension of GCC and Clang, because GCC 12 warns about the AVX-512 intrinsic's own undefined operand.
template <class Int>
Int shift_left(const Int& x, int bits) {
  using Register = typename Int::register_type;
  typedef typename Int::value_type Vector __attribute__((vector_size(sizeof(Register))));
  return Int((Register)((Vector)x.data << bits));
}

/// f(x...) lane by lane: for functions too rare to deserve a vector version.
template <class T, class F, class... More>
Lanes<T> per_lane(F f, const Lanes<T>& x, const More&... more) {
  constexpr int64_t n = Lanes<T>::size, count = 1 + sizeof...(More);
  alignas(64) T buffer[count][n];
  int64_t k = 0;
  x.store(buffer[k++]);
  (more.store(buffer[k++]), ...);
  for (int64_t i = 0; i < n; ++i) {
    if constexpr (count == 1) buffer[0][i] = f(buffer[0][i]);
    if constexpr (count == 2) buffer[0][i] = f(buffer[0][i], buffer[1][i]);
  }
  return Lanes<T>::load(buffer[0]);
}

}  // namespace TAPESTRY_LANES_ARCH
}  // namespace tapestry
