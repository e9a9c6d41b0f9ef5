// From tokens to logits. Next: sampler.h.
#include "lm.h"

#include "../../autograd/error.h"

namespace tapestry {
namespace {

const TransformerConfig& validated(const TransformerConfig& c) {
  c.validate();
  return c;
}

}  // namespace

Transformer::Transformer(const TransformerConfig& c)
    : config(validated(c)),
      token_embedding(c.vocab_size, c.d_model),
      layers(c.n_layers, [&](int64_t) { return TransformerBlock(c); }),
      norm(c.d_model, RMSNormOptions{.eps = c.norm_eps}),
      lm_head(c.d_model, c.vocab_size, LinearOptions{.bias = false}),
      rope(c.head_dim(), c.max_seq_len, RotaryOptions{.theta = c.rope_theta}) {}

Tensor Transformer::forward(const Tensor& tokens, const TransformerArgs& args) const {
  if (!tokens.defined() || tokens.dim() != 2)
    fail<ShapeError>("transformer: tokens are {}; they must be i64 (B, T)", tokens.describe());
  if (tokens.size(1) > config.max_seq_len)
    fail<ShapeError>("transformer: {} tokens are more than max_seq_len {}; use a shorter window", tokens.size(1),
                     config.max_seq_len);
  if (!args.stores.empty() && args.stores.size() != layers.size())
    fail<ValueError>("transformer: {} stores for {} layers", args.stores.size(), layers.size());
  Tensor x = token_embedding(tokens);  // (B, T, D)
  for (size_t i = 0; i < layers.size(); ++i)
    x = layers[i](
        x,
        BlockArgs{.rope = rope, .positions = args.positions, .store = args.stores.empty() ? nullptr : args.stores[i]});
  return lm_head(norm(x));  // (B, T, V)
}

void Transformer::visit(Visitor& v) {
  v.child("token_embedding", token_embedding);
  v.child("layers", layers);
  v.child("norm", norm);
  v.child("lm_head", lm_head);
  v.child("rope", rope);
}

}  // namespace tapestry
