// Construction and the calls of the norms.
#include "norm.h"

#include "../autograd/error.h"
#include "../ops/ops.h"

namespace tapestry {
namespace {

double checked_eps(const char* name, int64_t d_model, double eps) {
  if (d_model < 1 || !(eps >= 0))
    fail<ValueError>("{}: d_model {} must be at least 1 and eps {} at least 0", name, d_model, eps);
  return eps;
}

}  // namespace

LayerNorm::LayerNorm(int64_t d_model, LayerNormOptions options) : eps(checked_eps("LayerNorm", d_model, options.eps)) {
  weight = Parameter(ones({d_model}));
  if (options.bias) bias = Parameter(zeros({d_model}));
}

Tensor LayerNorm::forward(const Tensor& x) const { return layer_norm(x, weight, bias, eps); }

void LayerNorm::visit(Visitor& v) {
  v.parameter("weight", weight);
  v.parameter("bias", bias);
}

RMSNorm::RMSNorm(int64_t d_model, RMSNormOptions options) : eps(checked_eps("RMSNorm", d_model, options.eps)) {
  weight = Parameter(ones({d_model}));
}

Tensor RMSNorm::forward(const Tensor& x) const { return rms_norm(x, weight, eps); }

std::string_view name_of(NormKind kind) {
  constexpr std::string_view names[] = {"rms", "rms_unit_offset", "layer_no_bias", "layer"};
  return names[static_cast<size_t>(kind)];
}

Norm::Norm(int64_t d_model, NormKind k, double epsilon) : kind(k), eps(checked_eps("Norm", d_model, epsilon)) {
  weight = Parameter(kind == NormKind::rms_unit_offset ? zeros({d_model}) : ones({d_model}));
  if (kind == NormKind::layer) bias = Parameter(zeros({d_model}));
}

Tensor Norm::forward(const Tensor& x) const {
  switch (kind) {
    case NormKind::rms:
      return rms_norm(x, weight, eps);
    case NormKind::rms_unit_offset:
      return rms_norm(x, weight + 1.0, eps);
    default:
      return layer_norm(x, weight, bias, eps);
  }
}

void Norm::visit(Visitor& v) {
  v.parameter("weight", weight);
  v.parameter("bias", bias);
}

}  // namespace tapestry
