// Images with a class each, as tensors, and batches of them.
// Next: ../lenet.h.
#pragma once

#include <string>
#include <vector>

#include "../../autograd/tensor.h"

namespace tapestry {

/// N grey images with one of `classes` labels each.
struct LabelledImages {
  Tensor images;  ///< (N, 1, H, W) f32, 0 to 1
  Tensor labels;  ///< (N) i64
  [[nodiscard]] int64_t size() const { return labels.numel(); }
};

/// Reads the images (N, H, W) and the labels (N) of an MNIST-like set. FormatError where the two do not belong together, or a label is `classes` or
/// more; what read_idx throws passes.
LabelledImages load_labelled_images(const std::string& images, const std::string& labels, int64_t classes = 10);

/// Images and labels at these positions.
LabelledImages pick(const LabelledImages& set, const std::vector<int64_t>& positions);

/// 0 … n − 1 in an order that is a function of (seed, epoch) alone.
std::vector<int64_t> shuffled(int64_t n, uint64_t seed, uint64_t epoch);

}  // namespace tapestry
