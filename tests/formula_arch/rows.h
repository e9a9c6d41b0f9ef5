// The functions of ops/kernels/formula.h over Lanes as loops on arrays, compiled once per instruction set so that one test can check them all.
// Not the references or the bounds (../test_formula.cpp). Next: rows.inc.
#pragma once

#include <cstdint>
#include <span>

namespace formula_arch {

/// out[i] = f(a[i], b[i]); n is a multiple of 16; functions of one argument ignore b.
template <class T>
using Loop = void (*)(const T* a, const T* b, T* out, int64_t n);

struct Row {
  const char* name;
  Loop<float> f32;
  Loop<double> f64;
};

std::span<const Row> sse2_rows();    ///< what every x86-64 machine has
std::span<const Row> avx2_rows();    ///< AVX2 with FMA
std::span<const Row> avx512_rows();  ///< AVX-512 F, BW, CD, DQ, VL

}  // namespace formula_arch
