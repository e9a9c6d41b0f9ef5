// Construction and the call of Embedding.
#include "embedding.h"

#include "../autograd/error.h"
#include "../ops/ops.h"
#include "init.h"

namespace tapestry {

Embedding::Embedding(int64_t vocab_size, int64_t d_model, EmbeddingOptions options) : padding_idx(options.padding_idx) {
  if (vocab_size < 1 || d_model < 1)
    fail<ValueError>("Embedding: vocab_size {} and d_model {} must be at least 1", vocab_size, d_model);
  if (padding_idx && (*padding_idx < 0 || *padding_idx >= vocab_size))
    fail<ValueError>("Embedding: padding_idx {} is no row of vocab_size {}", *padding_idx, vocab_size);
  weight = Parameter(empty({vocab_size, d_model}, DType::f32));
  init::embedding_(weight);
  if (padding_idx) select(weight.detach(), 0, *padding_idx).fill_(0);
}

Tensor Embedding::forward(const Tensor& ids) const { return embedding(weight, ids, padding_idx); }

}  // namespace tapestry
