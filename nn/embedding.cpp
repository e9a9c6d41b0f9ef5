// Construction and the call of Embedding.
#include "embedding.h"

#include "../autograd/error.h"
#include "../ops/ops.h"
#include "init.h"

namespace tapestry {

Embedding::Embedding(int64_t vocab_size, int64_t d_model) {
  if (vocab_size < 1 || d_model < 1)
    fail<ValueError>("Embedding: vocab_size {} and d_model {} must be at least 1", vocab_size, d_model);
  weight = Parameter(empty({vocab_size, d_model}, DType::f32));
  init::embedding_(weight);
}

Tensor Embedding::forward(const Tensor& ids) const { return embedding(weight, ids); }

}  // namespace tapestry
