// The two branches, as the paper writes them. Next: lm.h.
#include "block.h"

namespace tapestry {

TransformerBlock::TransformerBlock(const TransformerConfig& c)
    : attention_norm(c.d_model, RMSNormOptions{.eps = c.norm_eps}),
      attention(c.d_model, MultiHeadAttentionOptions{.n_heads = c.n_heads, .n_kv_heads = c.n_kv_heads}),
      feed_forward_norm(c.d_model, RMSNormOptions{.eps = c.norm_eps}),
      feed_forward(c.d_model, c.d_ff) {}

Tensor TransformerBlock::forward(const Tensor& x, const BlockArgs& args) const {
  const AttentionArgs how{.causal = true, .rope = &args.rope, .positions = args.positions, .store = args.store};
  const Tensor z = x + attention(attention_norm(x), how);  // z = x + Attn(Norm₁(x))
  return z + feed_forward(feed_forward_norm(z));           // y = z + FFN(Norm₂(z))
}

void TransformerBlock::visit(Visitor& v) {
  v.child("attention_norm", attention_norm);
  v.child("attention", attention);
  v.child("feed_forward_norm", feed_forward_norm);
  v.child("feed_forward", feed_forward);
}

}  // namespace tapestry
