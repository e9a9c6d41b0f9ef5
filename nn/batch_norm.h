// Batch normalisation of one and two spatial dims, with running statistics.
// Not here: the op (ops/batch_norm.cpp) nor norms within a sample (group_norm.h, norm.h).
// Next: group_norm.h.
#pragma once

#include <optional>

#include "../ops/ops.h"
#include "module.h"

namespace tapestry {

struct BatchNormLayerOptions {
  double eps = 1e-5;
  std::optional<double> momentum =
      0.1;  ///< of the newest batch in the running statistics; none: all batches count alike
  bool affine = true;
  bool track_running_stats = true;  ///< without, the batch's own statistics are used in evaluation, too
};

/// Weight (C) starts as ones, bias (C) and running_mean as zeros, running_var as ones, num_batches_tracked, i64, at 0. While
/// training every call writes the three buffers, also under NoGrad, and again where a checkpoint recomputes the layer.
struct BatchNormState {
  Parameter weight, bias;
  Buffer running_mean, running_var, num_batches_tracked;
  BatchNormLayerOptions options;

  BatchNormState(const char* layer, int64_t num_features, BatchNormLayerOptions o);
  [[nodiscard]] Tensor normalise(const Tensor& x, bool training) const;
  void visit(Visitor& v);
};

/// (B, C) or (B, C, L); ShapeError otherwise. Ioffe & Szegedy 2015.
struct BatchNorm1d : Layer<BatchNorm1d> {
  BatchNormState state;
  explicit BatchNorm1d(int64_t num_features, BatchNormLayerOptions o = {}) : state("BatchNorm1d", num_features, o) {}
  [[nodiscard]] Tensor forward(const Tensor& x) const;
  void visit(Visitor& v) override { state.visit(v); }
};

/// (B, C, H, W); ShapeError otherwise.
struct BatchNorm2d : Layer<BatchNorm2d> {
  BatchNormState state;
  explicit BatchNorm2d(int64_t num_features, BatchNormLayerOptions o = {}) : state("BatchNorm2d", num_features, o) {}
  [[nodiscard]] Tensor forward(const Tensor& x) const;
  void visit(Visitor& v) override { state.visit(v); }
};

}  // namespace tapestry
