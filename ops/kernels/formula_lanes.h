// The functions of formula.h over Lanes<T>: exact ones, and those built from exp and log. Bounds of error are in tests/test_formula.cpp.
// Every lane's result depends on that lane alone, so bits never depend on place. xsimd's own functions are used where they are right at
// every edge (checked against std:: by the test) and replaced where they are not.
// Next: lanes_trig.h and lanes_erf.h, then pointwise.h.
#pragma once

#include <limits>

#include "formula.h"
#include "lanes.h"

namespace tapestry {

template <class T>
struct NumOf<Lanes<T>> {
  static Lanes<T> make(double v) { return Lanes<T>(static_cast<T>(v)); }
};

inline namespace TAPESTRY_LANES_ARCH {

// ---- Exact operations ----------------------------------------------------------------------------------------------
template <class T>
Lanes<T> abs(const Lanes<T>& x) {
  return Lanes<T>(xsimd::abs(x.v));
}
template <class T>
Lanes<T> sqrt(const Lanes<T>& x) {
  return Lanes<T>(xsimd::sqrt(x.v));
}
template <class T>
Lanes<T> copysign(const Lanes<T>& magnitude, const Lanes<T>& sign_of) {
  const typename Lanes<T>::Batch sign_bit(T(-0.0));
  return Lanes<T>((magnitude.v & ~sign_bit) | (sign_of.v & sign_bit));
}
// copysign: without SSE4.1, xsimd rounds -0 to +0
template <class T>
Lanes<T> floor(const Lanes<T>& x) {
  return copysign(Lanes<T>(xsimd::floor(x.v)), x);
}
template <class T>
Lanes<T> ceil(const Lanes<T>& x) {
  return copysign(Lanes<T>(xsimd::ceil(x.v)), x);
}
template <class T>
Lanes<T> trunc(const Lanes<T>& x) {
  return copysign(Lanes<T>(xsimd::trunc(x.v)), x);
}
template <class T>
Lanes<T> round(const Lanes<T>& x) {
  return Lanes<T>(xsimd::nearbyint(x.v));
}
template <class T>
Mask<T> isnan(const Lanes<T>& x) {
  return x != x;
}
template <class T>
Lanes<T> sign(const Lanes<T>& x) {
  return where(abs(x) > num<Lanes<T>>(0), copysign(num<Lanes<T>>(1), x), x);
}
template <class T>
Lanes<T> reciprocal(const Lanes<T>& x) {
  return num<Lanes<T>>(1) / x;
}
template <class T>
Lanes<T> rsqrt(const Lanes<T>& x) {
  return num<Lanes<T>>(1) / sqrt(x);
}
template <class T>
Lanes<T> maximum(const Lanes<T>& a, const Lanes<T>& b) {
  return where((a > b) | isnan(a), a, b);
}
template <class T>
Lanes<T> minimum(const Lanes<T>& a, const Lanes<T>& b) {
  return where((a < b) | isnan(a), a, b);
}
template <class T>
Lanes<T> mul0(const Lanes<T>& g, const Lanes<T>& d) {
  return where(g == num<Lanes<T>>(0), num<Lanes<T>>(0), g * d);
}

// ---- Parts the functions below share -------------------------------------------------------------------------------
/// c0 + c1·x + c2·x² + … by Horner's rule.
template <class T>
Lanes<T> polynomial(const Lanes<T>&, double c0) {
  return num<Lanes<T>>(c0);
}
template <class T, class... C>
Lanes<T> polynomial(const Lanes<T>& x, double c0, C... more) {
  return fma(polynomial(x, more...), x, num<Lanes<T>>(c0));
}

/// x limited to [low, high]; NaN stays NaN (the operands' order matters to the x86 instructions, which return the second).
template <class T>
Lanes<T> clamp_to(const Lanes<T>& x, double low, double high) {
  return Lanes<T>(xsimd::max(num<Lanes<T>>(low).v, xsimd::min(num<Lanes<T>>(high).v, x.v)));
}

/// Adding it to |x| < 2^21 (float) or 2^50 (double) leaves round(x) as an integer in the low bits of the sum.
template <class T>
inline constexpr double rounding_magic = sizeof(T) == 4 ? 0x1.8p23 : 0x1.8p52;

/// 2^k for integral k in the range of normal exponents.
template <class T>
Lanes<T> power_of_two(const Lanes<T>& k) {
  using Int = typename Lanes<T>::Int;
  constexpr int mantissa = std::numeric_limits<T>::digits - 1, bias = std::numeric_limits<T>::max_exponent - 1;
  const Int bits = xsimd::bitwise_cast<Int>((k + num<Lanes<T>>(rounding_magic<T>)).v);
  return Lanes<T>(xsimd::bitwise_cast<typename Lanes<T>::Batch>(shift_left(bits + Int(bias), mantissa)));
}

/// x = k·ln 2 + r with integral k and |r| ≤ ln 2 / 2; returns e^r - 1 (error about 0.5 ulp).
template <class T>
Lanes<T> reduced_expm1(const Lanes<T>& x, Lanes<T>& k) {
  const auto magic = num<Lanes<T>>(rounding_magic<T>);
  k = fma(x, num<Lanes<T>>(0x1.71547652b82fep+0), magic) - magic;
  // ln 2 in two parts, the first short enough that k times it is exact
  constexpr bool single = sizeof(T) == 4;
  const auto high = num<Lanes<T>>(single ? -0x1.62ep-1 : -0x1.62e42fefa2p-1);
  const auto low = num<Lanes<T>>(single ? -0x1.0bfbe8e7bcd5ep-15 : -0x1.9ef35793c7673p-41);
  const Lanes<T> r = fma(k, low, fma(k, high, x));
  Lanes<T> q;  // (e^r - 1 - r)/r², Chebyshev fit
  if constexpr (single) {
    q = polynomial(r, 0x1p-1, 0x1.555556p-3, 0x1.5554e4p-5, 0x1.1110ep-7, 0x1.6d492p-10, 0x1.a12a42p-13);
  } else {
    q = polynomial(r, 0x1p-1, 0x1.5555555555557p-3, 0x1.5555555555556p-5, 0x1.111111110ff87p-7, 0x1.6c16c16c16212p-10,
                   0x1.a01a01aca0134p-13, 0x1.a01a01a741b3cp-16, 0x1.71ddffef9e7b1p-19, 0x1.27e4da1a3bf04p-22,
                   0x1.af52906239de4p-26, 0x1.1f75aba0b1e2ep-29);
  }
  return fma(r * r, q, r);
}

/// The value of `m`·2^k, correct down to denormals and up to the overflow.
template <class T>
Lanes<T> scale(const Lanes<T>& m, const Lanes<T>& k) {
#if defined(__AVX512F__)
  if constexpr (sizeof(T) == 4) {
    return Lanes<T>(typename Lanes<T>::Batch(_mm512_maskz_scalef_ps(0xFFFF, m.v, k.v)));
  } else {
    return Lanes<T>(typename Lanes<T>::Batch(_mm512_maskz_scalef_pd(0xFF, m.v, k.v)));
  }
#else
  const auto magic = num<Lanes<T>>(rounding_magic<T>);
  const Lanes<T> half =
      (k * num<Lanes<T>>(0.5) + magic) - magic;  // in two steps, as 2^k alone may not be a normal number
  return m * power_of_two(half) * power_of_two(k - half);
#endif
}

// ---- Exponentials and logarithms -----------------------------------------------------------------------------------
template <class T>
Lanes<T> exp(const Lanes<T>& x) {
  Lanes<T> k;
  const Lanes<T> p = reduced_expm1(sizeof(T) == 4 ? clamp_to(x, -104, 89) : clamp_to(x, -746, 710), k);
  return scale(num<Lanes<T>>(1) + p, k);
}

template <class T>
Lanes<T> expm1(const Lanes<T>& x) {
  Lanes<T> k;
  const Lanes<T> p = reduced_expm1(sizeof(T) == 4 ? clamp_to(x, -26, 89) : clamp_to(x, -60, 710), k);
  const Lanes<T> s =
      power_of_two(k - num<Lanes<T>>(1));  // half of the power, so that it does not overflow before the result
  const Lanes<T> y = fma(s, p, s - num<Lanes<T>>(0.5));
  return where(abs(x) < num<Lanes<T>>(sizeof(T) == 4 ? 0x1p-26 : 0x1p-55), x, y + y);
}

template <class T>
Lanes<T> exp2(const Lanes<T>& x) {
  const auto magic = num<Lanes<T>>(rounding_magic<T>);
  const Lanes<T> z = sizeof(T) == 4 ? clamp_to(x, -151, 129) : clamp_to(x, -1076, 1025);
  const Lanes<T> k = (z + magic) - magic, r = z - k;
  Lanes<T> q;  // (2^r - 1)/r on |r| ≤ 1/2, Chebyshev fit
  if constexpr (sizeof(T) == 4) {
    q = polynomial(r, 0x1.62e43p-1, 0x1.ebfbep-3, 0x1.c6b08ep-5, 0x1.3b2a16p-7, 0x1.5d879ap-10, 0x1.444642p-13,
                   0x1.00a95cp-16);
  } else {
    q = polynomial(r, 0x1.62e42fefa39efp-1, 0x1.ebfbdff82c58fp-3, 0x1.c6b08d704a0c0p-5, 0x1.3b2ab6fba4e7bp-7,
                   0x1.5d87fe78a6732p-10, 0x1.430912f86aa1bp-13, 0x1.ffcbfc5889b06p-17, 0x1.62c02246b8f28p-20,
                   0x1.b5253d4281b83p-24, 0x1.e4cf0093663e0p-28, 0x1.e8ca8b7f9e346p-32, 0x1.c4baaf38220e6p-36,
                   0x1.821cd2d4a544cp-40);
  }
  return scale(fma(r, q, num<Lanes<T>>(1)), k);
}

/// `f`(x), and for denormal x `f`(x·2^54) - `shift`: xsimd's double logarithms lose denormals.
template <class T, class F>
Lanes<T> log_of_denormal(const Lanes<T>& x, double shift, F f) {
  if constexpr (sizeof(T) == 4) {
    return f(x);
  } else {
    const Mask<T> tiny = x < num<Lanes<T>>(std::numeric_limits<T>::min());
    const Lanes<T> y = f(where(tiny, x * num<Lanes<T>>(0x1p54), x));
    return where(tiny, y - num<Lanes<T>>(shift), y);
  }
}
template <class T>
Lanes<T> log(const Lanes<T>& x) {
  return log_of_denormal(x, 54 * 0.69314718055994530942, [](const Lanes<T>& z) { return Lanes<T>(xsimd::log(z.v)); });
}
template <class T>
Lanes<T> log2(const Lanes<T>& x) {
  return log_of_denormal(x, 54, [](const Lanes<T>& z) { return Lanes<T>(xsimd::log2(z.v)); });
}
template <class T>
Lanes<T> log10(const Lanes<T>& x) {
  return log_of_denormal(x, 54 * 0.30102999566398119521, [](const Lanes<T>& z) { return Lanes<T>(xsimd::log10(z.v)); });
}
template <class T>
Lanes<T> log1p(const Lanes<T>& x) {
  return where(x == num<Lanes<T>>(0), x, Lanes<T>(xsimd::log1p(x.v)));
}

/// Lane by lane: std::pow is right at all its edges and within 1 ulp.
template <class T>
Lanes<T> pow(const Lanes<T>& a, const Lanes<T>& b) {
  return per_lane<T>([](T x, T y) { return std::pow(x, y); }, a, b);
}

// ---- Built from exponentials ---------------------------------------------------------------------------------------
template <class T>
Lanes<T> sigmoid(const Lanes<T>& x) {
  const Lanes<T> e = exp(-abs(x));
  return where(x >= num<Lanes<T>>(0), num<Lanes<T>>(1), e) / (num<Lanes<T>>(1) + e);
}
template <class T>
Lanes<T> tanh(const Lanes<T>& x) {
  return Lanes<T>(xsimd::tanh(x.v));
}
template <class T>
Lanes<T> sinh(const Lanes<T>& x) {
  const Lanes<T> a = abs(x), t = expm1(a), e = exp(a * num<Lanes<T>>(0.5)), half = num<Lanes<T>>(0.5);
  const Lanes<T> y = where(a > num<Lanes<T>>(40), half * e * e, half * (t + t / (t + num<Lanes<T>>(1))));
  return copysign(y, x);
}
template <class T>
Lanes<T> cosh(const Lanes<T>& x) {
  const Lanes<T> a = abs(x), e = exp(a), h = exp(a * num<Lanes<T>>(0.5)), half = num<Lanes<T>>(0.5);
  return where(a > num<Lanes<T>>(40), half * h * h, half * e + half / e);
}
/// Where the square no longer changes 1 + a², ln 2a is all there is.
template <class T>
inline constexpr double ln_2a_from = sizeof(T) == 4 ? 0x1p14 : 0x1p28;
template <class T>
Lanes<T> ln_2a(const Lanes<T>& a) {
  return log(a) + num<Lanes<T>>(0.69314718055994530942);
}
template <class T>
Lanes<T> asinh(const Lanes<T>& x) {
  const Lanes<T> a = abs(x), one = num<Lanes<T>>(1);
  const Lanes<T> y = log1p(a + a * a / (one + sqrt(fma(a, a, one))));
  return copysign(where(a > num<Lanes<T>>(ln_2a_from<T>), ln_2a(a), y), x);
}
template <class T>
Lanes<T> acosh(const Lanes<T>& x) {
  const Lanes<T> t = x - num<Lanes<T>>(1), y = log1p(t + sqrt(t * (t + num<Lanes<T>>(2))));
  const Lanes<T> nan = num<Lanes<T>>(std::numeric_limits<double>::quiet_NaN());
  return where(t >= num<Lanes<T>>(0), where(x > num<Lanes<T>>(ln_2a_from<T>), ln_2a(x), y), nan);
}
template <class T>
Lanes<T> atanh(const Lanes<T>& x) {
  const Lanes<T> a = abs(x);
  return copysign(num<Lanes<T>>(0.5) * log1p((a + a) / (num<Lanes<T>>(1) - a)), x);
}

// ---- Two arguments -------------------------------------------------------------------------------------------------
/// √(a² + b²) without overflow or underflow on the way.
template <class T>
Lanes<T> hypot(const Lanes<T>& a, const Lanes<T>& b) {
  const Lanes<T> x = abs(a), y = abs(b), big = maximum(x, y), small = minimum(x, y), r = small / big;
  const auto zero = num<Lanes<T>>(0), inf = num<Lanes<T>>(std::numeric_limits<double>::infinity());
  const Lanes<T> h = where(big == zero, zero, big * sqrt(fma(r, r, num<Lanes<T>>(1))));
  return where((x == inf) | (y == inf), inf, h);
}
template <class T>
Lanes<T> rem(const Lanes<T>& a, const Lanes<T>& b) {
  return per_lane<T>([](T x, T y) { return tapestry::rem(x, y); }, a, b);
}
template <class T>
Lanes<T> mod(const Lanes<T>& a, const Lanes<T>& b) {
  return per_lane<T>([](T x, T y) { return tapestry::mod(x, y); }, a, b);
}
template <class T>
Lanes<T> floor_divide(const Lanes<T>& a, const Lanes<T>& b) {
  return per_lane<T>([](T x, T y) { return tapestry::floor_divide(x, y); }, a, b);
}

}  // namespace TAPESTRY_LANES_ARCH
}  // namespace tapestry
