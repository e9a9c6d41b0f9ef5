// The table of vectors for ids.
// Not here: the lookup (ops/index.cpp).
// Next: norm.h.
#pragma once

#include <optional>

#include "module.h"

namespace tapestry {

struct EmbeddingOptions {
  std::optional<int64_t> padding_idx = {};  ///< this row starts as zeros and gets no gradient
};

/// ids of any shape (i64) to ids.shape + (D). weight (V, D) starts as init::embedding_.
struct Embedding : Layer<Embedding> {
  Parameter weight;
  std::optional<int64_t> padding_idx;

  /// ValueError unless both sizes are at least 1 and padding_idx is a row.
  Embedding(int64_t vocab_size, int64_t d_model, EmbeddingOptions options = {});
  [[nodiscard]] Tensor forward(const Tensor& ids) const;
  void visit(Visitor& v) override { v.parameter("weight", weight); }
};

}  // namespace tapestry
