// The SIMD loop of a pointwise formula, and all a formula may call inside it. Never included by an installed header.
// Not the strided driver (pointwise.cpp). Next: pointwise.cpp.
#pragma once

#include <algorithm>

#include "formula_lanes.h"
#include "lanes_erf.h"
#include "lanes_trig.h"
#include "pointwise.h"

namespace tapestry::kernels {

namespace pointwise {

/// Stores a formula's results: one register, a mask as 0 and 1, or a tuple of registers.
template <class T>
void store(const Lanes<T>& x, T* const* out) {
  x.store(out[0]);
}
template <class T>
void store(const Mask<T>& x, T* const* out) {
  where(x, num<Lanes<T>>(1), num<Lanes<T>>(0)).store(out[0]);
}
template <class T, class... R>
void store(const std::tuple<R...>& x, T* const* out) {
  [&]<size_t... K>(std::index_sequence<K...>) { (store(std::get<K>(x), out + K), ...); }
  (std::index_sequence_for<R...>());
}

template <class R>
inline constexpr size_t outputs_of = 1;
template <class... R>
inline constexpr size_t outputs_of<std::tuple<R...>> = sizeof...(R);

}  // namespace pointwise

/// Compiles a formula as a loop over Lanes; the rest of a chunk that fills no register is computed in one padded register by the same code, so an
/// element's bits never depend on where it lies. i64 stays a scalar loop.
struct LanesLoop {
  template <class T, class F, size_t... I>
  static void chunk(const void* formula, const void* const* in, void* const* out, int64_t n,
                    std::index_sequence<I...> inputs) {
    if constexpr (std::is_same_v<T, int64_t>) {
      ScalarLoop::chunk<T, F>(formula, in, out, n, inputs);
    } else {
      using V = Lanes<T>;
      const F& f = *static_cast<const F*>(formula);
      constexpr size_t outputs = pointwise::outputs_of<decltype(f((static_cast<void>(I), std::declval<V>())...))>;
      const T* const sources[] = {static_cast<const T*>(in[I])...};
      T* targets[outputs];
      for (size_t k = 0; k < outputs; ++k) targets[k] = static_cast<T*>(out[k]);
      alignas(64) T padded_in[sizeof...(I)][V::size], padded_out[outputs][V::size];

      for (int64_t i = 0; i < n; i += V::size) {
        const int64_t left = n - i;
        const bool tail = left < V::size;
        const T* a[] = {(sources[I] + i)...};
        T* y[outputs];
        for (size_t k = 0; k < outputs; ++k) y[k] = tail ? padded_out[k] : targets[k] + i;
        if (tail) {
          for (size_t k = 0; k < sizeof...(I); ++k) {
            std::fill(std::copy_n(a[k], left, padded_in[k]), padded_in[k] + V::size, *a[k]);
            a[k] = padded_in[k];
          }
        }
        pointwise::store<T>(f(V::load(a[I])...), y);
        if (tail)
          for (size_t k = 0; k < outputs; ++k) std::copy_n(padded_out[k], left, targets[k] + i);
      }
    }
  }
};

}  // namespace tapestry::kernels
