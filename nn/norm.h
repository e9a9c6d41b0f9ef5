// Normalisation over the last dim.
// Not here: the kernels (ops/norm.cpp).
// Next: dropout.h.
#pragma once

#include <string_view>

#include "module.h"

namespace tapestry {

struct LayerNormOptions {
  double eps = 1e-5;
  bool bias = true;
};

/// (x − mean)/√(var + eps)·weight + bias, var divided by n; Ba et al. 2016. weight (D) starts as ones, bias (D) as
/// zeros.
struct LayerNorm : Layer<LayerNorm> {
  Parameter weight, bias;
  double eps;

  explicit LayerNorm(int64_t d_model, LayerNormOptions options = {});
  [[nodiscard]] Tensor forward(const Tensor& x) const;
  void visit(Visitor& v) override;
};

struct RMSNormOptions {
  double eps = 1e-5;
};

/// x/√(mean(x²) + eps)·weight; Zhang & Sennrich 2019. weight (D) starts as ones. bf16 x is summed in f32 and gives
/// bf16.
struct RMSNorm : Layer<RMSNorm> {
  Parameter weight;
  double eps;

  explicit RMSNorm(int64_t d_model, RMSNormOptions options = {});
  [[nodiscard]] Tensor forward(const Tensor& x) const;
  void visit(Visitor& v) override { v.parameter("weight", weight); }
};

/// The norms a Transformer chooses from.
enum class NormKind {
  rms,              ///< RMSNorm
  rms_unit_offset,  ///< RMSNorm with the gain 1 + weight, which starts as zeros (Gemma)
  layer_no_bias,    ///< LayerNorm with a gain only
  layer             ///< LayerNorm
};
std::string_view name_of(NormKind kind);

/// A norm whose kind is chosen at run time. weight (D); bias (D) for NormKind::layer.
struct Norm : Layer<Norm> {
  NormKind kind;
  Parameter weight, bias;
  double eps;

  Norm(int64_t d_model, NormKind kind, double eps = 1e-5);
  [[nodiscard]] Tensor forward(const Tensor& x) const;
  void visit(Visitor& v) override;
};

}  // namespace tapestry
