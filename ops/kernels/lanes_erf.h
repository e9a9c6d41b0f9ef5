// The error functions over Lanes<T>; our own, as xsimd's erfc loses its tail and its double erf is wrong beyond 2.2.
// Not their scalar versions (formula.h). The polynomials are Chebyshev fits made with 50 digits.
// Next: pointwise.h.
#pragma once

#include "formula_lanes.h"

namespace tapestry {
inline namespace TAPESTRY_LANES_ARCH {

/// erfc(a) for a ≥ 0: e^(-a²) times a polynomial in (a - K)/(a + K) over 1 + 2a (Shepherd & Laframboise 1981).
template <class T>
Lanes<T> erfc_positive(const Lanes<T>& a) {
  const auto c = [](double v) { return num<Lanes<T>>(v); };
  constexpr bool single = sizeof(T) == 4;
  const Lanes<T> x = minimum(a, c(single ? 11 : 28));
  const Lanes<T> u = (x - c(single ? 2 : 4)) / (x + c(single ? 2 : 4));
  Lanes<T> w;
  if constexpr (single) {
    w = polynomial(u, 0x1.46e80ep+0, -0x1.7bf5e8p-4, -0x1.5407cap-3, 0x1.4ff9e4p-3, -0x1.bc2892p-5, -0x1.071ca2p-7,
                   0x1.1d86a2p-7, 0x1.47b62p-10, -0x1.776da8p-10, -0x1.a586f8p-12, 0x1.78b5e8p-13, 0x1.63907p-14);
  } else {
    w = polynomial(u, 0x1.3ba5916e9fd7fp+0, -0x1.1df1ad154a29cp-3, 0x1.f7f5df66fd951p-7, 0x1.16ecefcfa6077p-4,
                   -0x1.9ddb23c3e98a6p-4, 0x1.7fee004df6263p-4, -0x1.0fb06dfe46987p-4, 0x1.3079edfa1033fp-5,
                   -0x1.0962388367b2fp-6, 0x1.49c671893963fp-8, -0x1.8d4a9dc0d22f3p-11, -0x1.a1de7c6e9ac9cp-13,
                   0x1.3be0b393ee921p-13, -0x1.996ad056e530bp-16, -0x1.78a43458cca4bp-17, 0x1.7fb88e391a9fep-18,
                   0x1.4392983419eddp-22, -0x1.c05fc977974eap-21, 0x1.0d535fce28f99p-24, 0x1.ef6c0c38d1a2bp-24,
                   -0x1.09198a32cd9a9p-27, -0x1.d5bb4c6d5b92dp-27, -0x1.f47207b168acdp-30);
  }
  // a² in two parts: high keeps so few bits that its square is exact, the rest is (x - high)(x + high)
  const auto magic = c(single ? 0x1.8p15 : 0x1.8p31);
  const Lanes<T> high = (x + magic) - magic, rest = (high - x) * (high + x);
  const Lanes<T> e = exp(-(high * high)) * polynomial(rest, 1, 1, 1. / 2, 1. / 6, 1. / 24, 1. / 120);
  return where(isnan(a), a, e * (w / fma(x, c(2), c(1))));
}

/// erf(x) for |x| < 1: x + x·P(x²).
template <class T>
Lanes<T> erf_near_0(const Lanes<T>& x) {
  const Lanes<T> t = x * x;
  Lanes<T> p;
  if constexpr (sizeof(T) == 4) {
    p = polynomial(t, 0x1.06eba8p-3, -0x1.812742p-2, 0x1.ce2ddap-4, -0x1.b80a72p-6, 0x1.549f5ep-8, -0x1.a8d37ep-11,
                   0x1.581b9ap-14);
  } else {
    p = polynomial(t, 0x1.06eba8214db69p-3, -0x1.812746b0379e6p-2, 0x1.ce2f21a042b06p-4, -0x1.b82ce31284133p-6,
                   0x1.565bcd0d9a1bep-8, -0x1.c02db3d4b1705p-11, 0x1.f9a3211e5279ap-14, -0x1.f4d1d4e56ad90p-17,
                   0x1.b9de67148a01fp-20, -0x1.5f1870d254ff0p-23, 0x1.f76ee1aaf4380p-27, -0x1.37c11729b4908p-30,
                   0x1.03a18ed2369a3p-34);
  }
  return fma(x, p, x);
}

template <class T>
Lanes<T> erfc(const Lanes<T>& x) {
  const Lanes<T> a = abs(x), y = erfc_positive(a);
  return where(a < num<Lanes<T>>(0.5), num<Lanes<T>>(1) - erf_near_0(x),
               where(x < num<Lanes<T>>(0), num<Lanes<T>>(2) - y, y));
}

template <class T>
Lanes<T> erf(const Lanes<T>& x) {
  const Lanes<T> a = abs(x);
  if constexpr (sizeof(T) == 4) {
    // 1 - e^-Q(|x|), which is 1 from 4 on; shorter than erfc and good enough for what is subtracted from 1
    const Lanes<T> z = minimum(a, num<Lanes<T>>(4));
    const Lanes<T> q = polynomial(z, -0x1.5001dep-12, 0x1.215740p+0, 0x1.437d32p-1, 0x1.c2f26ep-4, -0x1.b10bbap-6,
                                  0x1.382f88p-8, -0x1.3963c6p-11, 0x1.835e5p-15, -0x1.b9314p-20);
    return where(a < num<Lanes<T>>(0.93), erf_near_0(x), copysign(num<Lanes<T>>(1) - exp(-q), x));
  } else {
    return where(a < num<Lanes<T>>(1), erf_near_0(x), copysign(num<Lanes<T>>(1) - erfc_positive(a), x));
  }
}

}  // namespace TAPESTRY_LANES_ARCH
}  // namespace tapestry
