// Circular functions over Lanes<T>. Not their scalar versions (formula.h).
// sin, cos and tan are our own: xsimd picks one reduction for a whole register, so a lane's bits would depend on its neighbours.
// Next: lanes_erf.h.
#pragma once

#include "formula_lanes.h"

namespace tapestry {
inline namespace TAPESTRY_LANES_ARCH {

/// x = n·π/2 + r with |r| ≤ π/4 (Cody & Waite 1980): sin r and cos r, and n in the low two bits of `quadrant`.
template <class T>
struct Reduced {
  Lanes<T> sine, cosine;
  typename Lanes<T>::Int quadrant;
};

/// Valid for |x| below this; beyond it the callers compute lane by lane.
template <class T>
inline constexpr double trig_limit = sizeof(T) == 4 ? 1e4 : 1e6;

template <class T>
Reduced<T> reduce_angle(const Lanes<T>& x) {
  const auto c = [](double v) { return num<Lanes<T>>(v); };
  const Lanes<T> shifted = fma(x, c(0x1.45f306dc9c883p-1), c(rounding_magic<T>)), n = shifted - c(rounding_magic<T>);
  // π/2 in four parts, all but the last short enough that n times them is exact
  Lanes<T> r;
  if constexpr (sizeof(T) == 4) {
    r = fma(n, c(-0x1.68c234c4c6629p-39), fma(n, c(-0x1.444p-24), fma(n, c(-0x1.fb4p-12), fma(n, c(-0x1.92p+0), x))));
  } else {
    r = fma(n, c(-0x1.3198a2e037073p-69), fma(n, c(-0x1.0b4611a6p-34), fma(n, c(-0x1.921fb544p+0), x)));
  }
  const Lanes<T> t = r * r;
  Lanes<T> s, k;  // (sin r - r)/r³ and (cos r - 1 + r²/2)/r⁴, Chebyshev fits in r²
  if constexpr (sizeof(T) == 4) {
    s = polynomial(t, -0x1.555552p-3, 0x1.110bf6p-7, -0x1.9aae86p-13);
    k = polynomial(t, 0x1.555554p-5, -0x1.6c12aap-10, 0x1.9bc2d4p-16);
  } else {
    s = polynomial(t, -0x1.5555555555555p-3, 0x1.1111111110b23p-7, -0x1.a01a019e620eep-13, 0x1.71de376b644ccp-19,
                   -0x1.ae5fde7f12068p-26, 0x1.5dfb39c3139b6p-33);
    k = polynomial(t, 0x1.5555555555555p-5, -0x1.6c16c16c1691fp-10, 0x1.a01a019f3dde1p-16, -0x1.27e4fa0241f7cp-22,
                   0x1.1eeb52a201da3p-29, -0x1.906dbf4fda044p-37);
  }
  return {fma(r * t, s, r), fma(t * t, k, fma(t, c(-0.5), c(1))),
          xsimd::bitwise_cast<typename Lanes<T>::Int>(shifted.v)};
}

/// True where bit 0 of q is set.
template <class T>
Mask<T> odd(const typename Lanes<T>::Int& q) {
  using Int = typename Lanes<T>::Int;
  return Mask<T>(xsimd::bool_cast((q & Int(1)) == Int(1)));
}

/// x with its sign flipped where bit 1 of q is set.
template <class T>
Lanes<T> flip(const Lanes<T>& x, const typename Lanes<T>::Int& q) {
  using Int = typename Lanes<T>::Int;
  return Lanes<T>(x.v ^ xsimd::bitwise_cast<typename Lanes<T>::Batch>(shift_left(q & Int(2), 8 * int(sizeof(T)) - 2)));
}

/// `y` where |x| is within reach of the reduction, else f lane by lane (which is slow and exact for any size).
template <class T, class F>
Lanes<T> beyond_limit(const Lanes<T>& x, const Lanes<T>& y, F f) {
  const Mask<T> far = abs(x) > num<Lanes<T>>(trig_limit<T>);
  return far.any() ? where(far, per_lane(f, x), y) : y;
}

template <class T>
Lanes<T> sin(const Lanes<T>& x) {
  const Reduced<T> p = reduce_angle(x);
  const Lanes<T> y = flip(where(odd<T>(p.quadrant), p.cosine, p.sine), p.quadrant);
  return beyond_limit(x, where(x == num<Lanes<T>>(0), x, y), [](T z) { return std::sin(z); });
}
template <class T>
Lanes<T> cos(const Lanes<T>& x) {
  const Reduced<T> p = reduce_angle(x);
  const Lanes<T> y = flip(where(odd<T>(p.quadrant), p.sine, p.cosine), p.quadrant + typename Lanes<T>::Int(1));
  return beyond_limit(x, y, [](T z) { return std::cos(z); });
}
template <class T>
Lanes<T> tan(const Lanes<T>& x) {
  const Reduced<T> p = reduce_angle(x);
  const Lanes<T> y = where(odd<T>(p.quadrant), -p.cosine / p.sine, p.sine / p.cosine);
  return beyond_limit(x, where(x == num<Lanes<T>>(0), x, y), [](T z) { return std::tan(z); });
}

template <class T>
Lanes<T> asin(const Lanes<T>& x) {
  return Lanes<T>(xsimd::asin(x.v));
}
template <class T>
Lanes<T> acos(const Lanes<T>& x) {
  return Lanes<T>(xsimd::acos(x.v));
}
template <class T>
Lanes<T> atan(const Lanes<T>& x) {
  return Lanes<T>(xsimd::atan(x.v));
}
template <class T>
Lanes<T> atan2(const Lanes<T>& y, const Lanes<T>& x) {
  return per_lane<T>([](T b, T a) { return std::atan2(b, a); }, y, x);
}

}  // namespace TAPESTRY_LANES_ARCH
}  // namespace tapestry
