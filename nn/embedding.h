// The table of vectors for ids.
// Not here: the lookup (ops/index.cpp).
// Next: norm.h.
#pragma once

#include "module.h"

namespace tapestry {

/// ids of any shape (i64) to ids.shape + (D). weight (V, D) starts as init::embedding_.
struct Embedding : Layer<Embedding> {
  Parameter weight;

  /// ValueError unless both sizes are at least 1.
  Embedding(int64_t vocab_size, int64_t d_model);
  [[nodiscard]] Tensor forward(const Tensor& ids) const;
  void visit(Visitor& v) override { v.parameter("weight", weight); }
};

}  // namespace tapestry
