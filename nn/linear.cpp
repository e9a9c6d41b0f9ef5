// Construction and the call of Linear.
#include "linear.h"

#include "../autograd/error.h"
#include "../ops/ops.h"
#include "init.h"

namespace tapestry {

Linear::Linear(int64_t in_features, int64_t out_features, LinearOptions options) {
  if (in_features < 1 || out_features < 1)
    fail<ValueError>("Linear: in_features {} and out_features {} must be at least 1", in_features, out_features);
  weight = Parameter(empty({out_features, in_features}, DType::f32));
  init::linear_(weight);
  if (options.bias) bias = Parameter(zeros({out_features}));
}

Tensor Linear::forward(const Tensor& x) const {
  const Tensor y = linear(x, weight, bias);
  if (!adapter || adapter->unmerged.defined()) return y;
  const Tensor seen = is_training() && adapter->dropout > 0 ? dropout(x, adapter->dropout) : x;
  return y + linear(linear(seen, adapter->a), adapter->b) * adapter->scale;
}

void Linear::visit(Visitor& v) {
  v.parameter("weight", weight);
  v.parameter("bias", bias);
  if (adapter) {
    v.parameter("lora_A.weight", adapter->a);
    v.parameter("lora_B.weight", adapter->b);
    v.buffer("lora_unmerged.weight", adapter->unmerged);
  }
}

}  // namespace tapestry
