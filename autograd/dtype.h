// Element types: five of them, their sizes and names, and the one dispatch from a run-time DType to a C++ type.
// Not here: conversions of whole tensors (ops/, strided.h).
// Next: shape.h.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <string_view>
#include <type_traits>

namespace tapestry {

/// f32 and f64 compute; bf16 stores (widened to f32 to compute, rounded once); i64 indexes; boolean masks.
enum class DType : uint8_t { f32, f64, bf16, i64, boolean };

/// 16-bit brain float: the upper half of an f32. Converting rounds to nearest even and keeps NaN.
struct bf16 {
  uint16_t bits = 0;
  bf16() = default;
  explicit bf16(float x) {
    const auto u = std::bit_cast<uint32_t>(x);
    bits = static_cast<uint16_t>(x != x ? (u >> 16) | 0x40U : (u + 0x7FFFU + ((u >> 16) & 1U)) >> 16);
  }
  explicit operator float() const { return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16); }
};

template <class T>
inline constexpr bool is_element = std::is_same_v<T, float> || std::is_same_v<T, double> || std::is_same_v<T, bf16> ||
                                   std::is_same_v<T, int64_t> || std::is_same_v<T, bool>;

template <class T>
constexpr DType dtype_of() {
  static_assert(is_element<T>, "element types are float, double, bf16, int64_t and bool");
  if constexpr (std::is_same_v<T, float>) return DType::f32;
  if constexpr (std::is_same_v<T, double>) return DType::f64;
  if constexpr (std::is_same_v<T, bf16>) return DType::bf16;
  if constexpr (std::is_same_v<T, int64_t>) return DType::i64;
  return DType::boolean;
}

constexpr int64_t size_of(DType t) {
  constexpr int64_t sizes[] = {4, 8, 2, 8, 1};
  return sizes[static_cast<int>(t)];
}

constexpr std::string_view name_of(DType t) {
  constexpr std::string_view names[] = {"f32", "f64", "bf16", "i64", "bool"};
  return names[static_cast<int>(t)];
}

constexpr bool is_floating(DType t) { return t <= DType::bf16; }

/// Calls `f.template operator()<T>()` with the C++ type of `t`: dispatch(t, [&]<class T> { … }).
template <class F>
decltype(auto) dispatch(DType t, F&& f) {
  switch (t) {
    case DType::f32:
      return f.template operator()<float>();
    case DType::f64:
      return f.template operator()<double>();
    case DType::bf16:
      return f.template operator()<bf16>();
    case DType::i64:
      return f.template operator()<int64_t>();
    case DType::boolean:
      break;
  }
  return f.template operator()<bool>();
}

/// Converts one element: bf16 through f32, to bool by `!= 0`, floating to i64 towards 0, with the ends of i64 for what lies past them and 0 for NaN.
template <class To, class From>
To convert(From x) {
  if constexpr (std::is_same_v<To, From>) {
    return x;
  } else if constexpr (std::is_same_v<From, bf16>) {
    return convert<To>(static_cast<float>(x));
  } else if constexpr (std::is_same_v<To, bf16>) {
    return bf16(static_cast<float>(x));
  } else if constexpr (std::is_same_v<To, bool>) {
    return x != From(0);
  } else if constexpr (std::is_same_v<To, int64_t> && std::is_floating_point_v<From>) {
    constexpr From past = 0x1p63;
    return x >= past ? INT64_MAX : x < -past ? INT64_MIN : x == x ? static_cast<int64_t>(x) : 0;
  } else {
    return static_cast<To>(x);
  }
}

/// The type a kernel computes in: f32 for bf16, the type itself otherwise.
template <class T>
using compute_t = std::conditional_t<std::is_same_v<T, bf16>, float, T>;

}  // namespace tapestry
