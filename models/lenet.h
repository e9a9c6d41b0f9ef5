// LeNet-5: two convolutions with pooling and three linear layers, for small
// grey images. Next: vision/labelled_images.h, zoo.h.
#pragma once

#include "../nn/conv.h"
#include "../nn/linear.h"
#include "../ops/ops.h"

namespace tapestry {

/// Images (B, 1, 28, 28) to logits (B, classes); LeCun et al. 1998, with ReLU
/// and max pooling in place of tanh and averages, and every map of the second
/// convolution reading all of the first.
struct LeNet : Layer<LeNet> {
  Conv2d conv1, conv2;
  Linear fc1, fc2, fc3;

  explicit LeNet(int64_t classes = 10)
      : conv1(1, 6, 5, {.padding = 2}), conv2(6, 16, 5), fc1(16 * 5 * 5, 120), fc2(120, 84), fc3(84, classes) {}

  [[nodiscard]] Tensor forward(const Tensor& images) const {
    const Tensor a = max_pool2d(relu(conv1(images)), 2);  // (B, 6, 14, 14)
    const Tensor b = max_pool2d(relu(conv2(a)), 2);       // (B, 16, 5, 5)
    return fc3(relu(fc2(relu(fc1(flatten(b, 1))))));
  }
  void visit(Visitor& v) override {
    v.child("conv1", conv1);
    v.child("conv2", conv2);
    v.child("fc1", fc1);
    v.child("fc2", fc2);
    v.child("fc3", fc3);
  }
};

}  // namespace tapestry
