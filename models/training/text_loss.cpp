// Windows of equal length are read side by side.
// Next: ../programs/eval.cpp.
#include "text_loss.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <vector>

#include "../../autograd/error.h"
#include "../../autograd/grad_mode.h"
#include "../../ops/ops.h"

namespace tapestry {

TokenLoss text_loss(const Transformer& model, std::span<const int32_t> ids, TextLossOptions o) {
  const int64_t most = model.config.max_seq_len, last = static_cast<int64_t>(ids.size()) - 1;
  if (o.context == 0) o.context = most;
  if (o.context < 1 || o.context > most)
    fail<ValueError>("eval: context is {}; it must be 1 to max_seq_len {}", o.context, most);
  if (o.stride == 0) o.stride = o.context;
  if (o.stride < 1 || o.stride > o.context)
    fail<ValueError>("eval: stride is {}; it must be 1 to the context {}", o.stride, o.context);
  if (last < 1) fail<ValueError>("eval: the text has {} tokens; it takes two to predict one", ids.size());
  const NoGrad no_grad;
  TokenLoss total{.sum = 0, .tokens = last};
  std::vector<int64_t> inputs, targets;
  const int64_t rows_at_once = std::max<int64_t>(1, 2048 / o.context);  // as evaluate() in step.cpp
  int64_t rows = 0;
  const auto flush = [&](int64_t length) {
    if (rows == 0) return;
    const Shape shape{rows, length};
    total.sum += model
                     .loss(from(inputs, shape), from(targets, shape),
                           {.ignore_index = ignored_target, .reduction = Reduction::sum})
                     .item();
    inputs.clear(), targets.clear(), rows = 0;
  };
  int64_t counted = 0;  // tokens up to here have been predicted
  for (int64_t begin = 0; counted < last; begin += o.stride) {
    const int64_t end = std::min(begin + o.context, last), length = end - begin;
    if (length < o.context) flush(o.context);
    for (int64_t i = begin; i < end; ++i) {
      inputs.push_back(ids[static_cast<size_t>(i)]);
      targets.push_back(i + 1 > counted ? ids[static_cast<size_t>(i) + 1] : ignored_target);
    }
    counted = end;
    if (++rows == rows_at_once || counted == last) flush(length);
  }
  return total;
}

double bits_per_byte(const TokenLoss& loss, int64_t bytes) {
  if (bytes < 1) fail<ValueError>("eval: {} bytes; there must be at least one", bytes);
  return loss.sum / std::numbers::ln2 / static_cast<double>(bytes);
}

}  // namespace tapestry
