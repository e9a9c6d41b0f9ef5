// Rotary position embeddings: tables of cosines and sines, and the rotation of rows by them.
// Not here: scaled frequencies of long contexts. Next: rope.cpp.
#pragma once

#include <cstdint>

#include "../../autograd/dtype.h"
#include "heads.h"

namespace tapestry::kernels {

/// cos and sin (positions, pairs): entry (p, i) is factor times that of the angle p · frequencies[i], computed in double
/// and rounded once. T: float, double.
template <class T>
void rope_table(int64_t positions, int64_t pairs, const double* frequencies, T* cos, T* sin, double factor = 1);

enum class RopePairs { adjacent, half };  ///< (x₂ᵢ, x₂ᵢ₊₁), or (xᵢ, xᵢ₊pairs)

struct RopeSize {
  int64_t batch, heads, len, width;
  int64_t pairs;  ///< the first 2 · pairs entries of a row are rotated, the others copied
  RopePairs layout;
};

/// Row t of every head of batch b turns by the angles of position p(b, t): (a, b) → (a cos − b sin, a sin + b cos) (Su
/// et al. 2021); `inverse` turns back, which is the backward pass. positions: element (b, t) at b * positions_batch +
/// t, every one inside the tables; null for t. y may be x. T: float, double, bf16.
template <class T>
void rope(const RopeSize& size, HeadRows<const T> x, const compute_t<T>* cos, const compute_t<T>* sin,
          const int64_t* positions, int64_t positions_batch, bool inverse, HeadRows<T> y);

}  // namespace tapestry::kernels
