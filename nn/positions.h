// Absolute positions as vectors added to embeddings, fixed ones; learned ones are an Embedding.
// Not here: rotary positions (rope.h).
// Next: attention.h.
#pragma once

#include "../autograd/tensor.h"

namespace tapestry {

/// (max_positions, d_model): row p holds sin(p/10000^(2i/D)) in column 2i and cos of the same in column 2i + 1; Vaswani
/// et al. 2017. Built in f64, stored in `dtype`. ValueError unless both sizes are at least 1.
Tensor sinusoidal_positions(int64_t max_positions, int64_t d_model, DType dtype = DType::f32);

}  // namespace tapestry
