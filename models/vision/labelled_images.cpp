// From bytes to tensors, and the order of batches.
// Next: ../training/classify.cpp.
#include "labelled_images.h"

#include <numeric>
#include <utility>

#include "../../autograd/error.h"
#include "../../autograd/factory.h"
#include "../../autograd/random.h"
#include "../../ops/ops.h"
#include "idx.h"

namespace tapestry {

LabelledImages load_labelled_images(const std::string& images, const std::string& labels, int64_t classes) {
  const IdxFile pixels = read_idx(images), kinds = read_idx(labels);
  if (pixels.shape.rank() != 3 || kinds.shape.rank() != 1 || pixels.shape[0] != kinds.shape[0])
    fail<FormatError>("images: '{}' is {} and '{}' is {}; they must be (N, height, width) and (N)", images,
                      to_string(pixels.shape), labels, to_string(kinds.shape));
  std::vector<float> values(pixels.bytes.begin(), pixels.bytes.end());
  for (float& v : values) v /= 255.0F;
  std::vector<int64_t> classes_of(kinds.bytes.begin(), kinds.bytes.end());
  for (size_t i = 0; i < classes_of.size(); ++i)
    if (classes_of[i] >= classes)
      fail<FormatError>("images: label {} of '{}' is {}; there are {} classes", i, labels, classes_of[i], classes);
  return {from(values, {pixels.shape[0], 1, pixels.shape[1], pixels.shape[2]}), from(classes_of)};
}

LabelledImages pick(const LabelledImages& set, const std::vector<int64_t>& positions) {
  const Tensor at = from(positions);
  return {index_select(set.images, 0, at), index_select(set.labels, 0, at)};
}

std::vector<int64_t> shuffled(int64_t n, uint64_t seed, uint64_t epoch) {
  std::vector<int64_t> order(static_cast<size_t>(n));
  std::iota(order.begin(), order.end(), 0);
  // Fisher and Yates, from the end, with 64-bit draws: their bias is below 2⁻³⁰ for any set that fits in memory.
  for (size_t i = order.size(); i > 1; --i) {
    const auto words = philox(seed ^ hash_name("image_order"), epoch, i);
    const uint64_t draw = (static_cast<uint64_t>(words[1]) << 32) | words[0];
    std::swap(order[i - 1], order[draw % i]);
  }
  return order;
}

}  // namespace tapestry
