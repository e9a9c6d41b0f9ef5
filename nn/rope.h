// Rotary positions: the table of angles and its use. Su et al. 2021.
// Not here: the rotation (ops/rope.cpp).
// Next: attention.h.
#pragma once

#include <memory>

#include "../ops/ops.h"
#include "module.h"

namespace tapestry {

struct RotaryOptions {
  double theta = 10000.0;
  RopeLayout layout = RopeLayout::adjacent;
};

/// Turns the first rotary_dim entries of every head by position · theta^(−2i/rotary_dim). The tables follow from the
/// options: they are in no state dict, and there is one for each dtype that was asked for.
class RotaryEmbedding : public Layer<RotaryEmbedding> {
 public:
  /// ValueError for an odd rotary_dim or fewer than one position.
  RotaryEmbedding(int64_t rotary_dim, int64_t max_positions, RotaryOptions options = {});

  /// x (B, H, T, Dh), (B, T, Dh) or (T, Dh); positions i64 (T) or (B, T), undefined for 0 … T−1.
  [[nodiscard]] Tensor forward(const Tensor& x, const Tensor& positions = {}) const;
  [[nodiscard]] int64_t max_positions() const { return max_positions_; }

 private:
  struct Tables;
  int64_t max_positions_;
  RopeLayout layout_;
  std::shared_ptr<Tables> tables_;  // never changed once made, so copies share them
};

}  // namespace tapestry
