// Construction of the convolutional layers.
#include "conv.h"

#include <cmath>

#include "../autograd/error.h"
#include "init.h"

namespace tapestry {

ConvWeights::ConvWeights(const char* layer, int64_t in, int64_t out, const Dims& window, bool transposed,
                         const ConvLayerOptions& o)
    : options{o.stride, o.padding, o.dilation, o.groups, o.output_padding} {
  const int64_t groups = o.groups;
  if (in < 1 || out < 1 || groups < 1 || in % groups != 0 || out % groups != 0)
    fail<ValueError>("{}: in_channels {} and out_channels {} must be at least 1 and divisible by groups {}", layer, in,
                     out, groups);
  Shape shape = transposed ? Shape{in, out / groups} : Shape{out, in / groups};
  for (const int64_t k : window) {
    if (k < 1) fail<ValueError>("{}: kernel_size {} must be at least 1", layer, to_string(window));
    shape.push_back(k);
  }
  weight = Parameter(empty(shape, DType::f32));
  const int64_t fan_in = weight.numel() / shape[0];
  const double bound = 1 / std::sqrt(static_cast<double>(fan_in));
  init::uniform_(weight, -bound, bound);
  if (!o.bias) return;
  bias = Parameter(empty({out}, DType::f32));
  init::uniform_(bias, -bound, bound);
}

void ConvWeights::visit(Visitor& v) {
  v.parameter("weight", weight);
  v.parameter("bias", bias);
}

}  // namespace tapestry
