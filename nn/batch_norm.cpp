// Construction and the calls of the batch norms.
#include "batch_norm.h"

#include "../autograd/error.h"
#include "../autograd/grad_mode.h"

namespace tapestry {

BatchNormState::BatchNormState(const char* layer, int64_t num_features, BatchNormLayerOptions o) : options(o) {
  if (num_features < 1 || !(o.eps >= 0))
    fail<ValueError>("{}: num_features {} must be at least 1 and eps {} at least 0", layer, num_features, o.eps);
  if (o.affine) {
    weight = Parameter(ones({num_features}));
    bias = Parameter(zeros({num_features}));
  }
  if (!o.track_running_stats) return;
  running_mean = Buffer(zeros({num_features}));
  running_var = Buffer(ones({num_features}));
  num_batches_tracked = Buffer(zeros({}, DType::i64));
}

Tensor BatchNormState::normalise(const Tensor& x, bool training) const {
  const bool tracks = running_mean.defined();
  const double batches = training && tracks ? num_batches_tracked.item() + 1 : 0;
  const double momentum = options.momentum.value_or(batches > 0 ? 1 / batches : 0);
  Tensor y = batch_norm(x, running_mean, running_var, weight, bias,
                        {.training = training || !tracks, .momentum = momentum, .eps = options.eps});
  if (batches > 0) {
    const NoGrad raw;
    num_batches_tracked.fill_(batches);
  }
  return y;
}

void BatchNormState::visit(Visitor& v) {
  v.parameter("weight", weight);
  v.parameter("bias", bias);
  v.buffer("running_mean", running_mean);
  v.buffer("running_var", running_var);
  v.buffer("num_batches_tracked", num_batches_tracked);
}

Tensor BatchNorm1d::forward(const Tensor& x) const {
  if (x.dim() != 2 && x.dim() != 3)
    fail<ShapeError>("BatchNorm1d: x is {}; it must be (B, C) or (B, C, L)", x.describe());
  return state.normalise(x, is_training());
}

Tensor BatchNorm2d::forward(const Tensor& x) const {
  if (x.dim() != 4) fail<ShapeError>("BatchNorm2d: x is {}; it must be (B, C, H, W)", x.describe());
  return state.normalise(x, is_training());
}

}  // namespace tapestry
