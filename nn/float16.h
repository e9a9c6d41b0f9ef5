// IEEE 754 half precision, which files of weights use and this library does not compute in.
// Not here: bf16, which is a dtype (../autograd/dtype.h).
// Next: safetensors.h.
#pragma once

#include <bit>
#include <cstdint>

namespace tapestry {

/// The same number; NaN stays NaN.
inline float half_to_float(uint16_t h) {
  const uint32_t sign = static_cast<uint32_t>(h & 0x8000U) << 16, magnitude = h & 0x7FFFU;
  if (magnitude >= 0x7C00U) return std::bit_cast<float>(sign | 0x7F800000U | (magnitude & 0x3FFU) << 13);
  if (magnitude >= 0x400U) return std::bit_cast<float>(sign | ((magnitude << 13) + (112U << 23)));
  const float small = static_cast<float>(magnitude) * 0x1p-24F;  // below 2⁻¹⁴: whole multiples of 2⁻²⁴
  return sign != 0 ? -small : small;
}

/// The nearest half, ties to even; ±inf from 65520 on.
inline uint16_t float_to_half(float f) {
  const auto bits = std::bit_cast<uint32_t>(f);
  const uint32_t sign = (bits >> 16) & 0x8000U, magnitude = bits & 0x7FFFFFFFU;
  uint32_t half = 0;
  if (magnitude > 0x7F800000U) {
    half = 0x7E00U;
  } else if (magnitude >= 0x47800000U) {  // 2¹⁶
    half = 0x7C00U;
  } else if (magnitude < 0x38800000U) {  // 2⁻¹⁴: adding 1/2 rounds to multiples of 2⁻²⁴
    half = std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude) + 0.5F) - std::bit_cast<uint32_t>(0.5F);
  } else {
    half = (magnitude - (112U << 23) + 0xFFFU + ((magnitude >> 13) & 1U)) >> 13;
  }
  return static_cast<uint16_t>(sign | half);
}

}  // namespace tapestry
