// The two branches, as the papers write them. Next: lm.h.
#include "block.h"

namespace tapestry {
namespace {

MultiHeadAttentionOptions attention_options(const TransformerConfig& c, int64_t layer) {
  return {.n_heads = c.n_heads,
          .n_kv_heads = c.n_kv_heads,
          .head_dim = c.head_width(),
          .q_bias = c.q_bias,
          .k_bias = c.k_bias,
          .v_bias = c.v_bias,
          .o_bias = c.o_bias,
          .fused_qkv = c.fused_qkv,
          .qk_norm = c.qk_norm,
          .qk_norm_kind = c.qk_norm_kind,
          .qk_norm_eps = c.norm_eps,
          .scale = c.attention_scale,
          .soft_cap = c.attention_soft_cap,
          .window = c.is_sliding(layer) ? c.window : 0,
          .dropout = c.attention_dropout};
}

FeedForwardOptions feed_forward_options(const TransformerConfig& c) {
  return {.activation = c.activation,
          .gated = c.gated,
          .gate_bias = c.gate_bias,
          .up_bias = c.up_bias,
          .down_bias = c.down_bias,
          .fused_gate_up = c.fused_gate_up};
}

/// h and its branch F put together; the norms are there where the placement has them.
template <class F>
Tensor add_branch(NormPlacement placement, const Tensor& h, const std::optional<Norm>& norm,
                  const std::optional<Norm>& post_norm, F&& branch) {
  switch (placement) {
    case NormPlacement::pre:
      return h + branch((*norm)(h));
    case NormPlacement::post:
      return (*norm)(h + branch(h));
    case NormPlacement::double_norm:
      return h + (*post_norm)(branch((*norm)(h)));
    case NormPlacement::non_residual_post:
      return h + (*post_norm)(branch(h));
  }
  return h;
}

}  // namespace

TransformerBlock::TransformerBlock(const TransformerConfig& c, int64_t layer)
    : placement(c.norm_placement), attention(c.d_model, attention_options(c, layer)), dropout(c.residual_dropout) {
  const auto norm = [&] { return Norm(c.d_model, c.norm_kind, c.norm_eps); };
  if (placement != NormPlacement::non_residual_post) attention_norm = norm(), feed_forward_norm = norm();
  if (placement == NormPlacement::double_norm || placement == NormPlacement::non_residual_post)
    attention_post_norm = norm(), feed_forward_post_norm = norm();
  if (c.has_experts(layer))
    experts.emplace(c.d_model, c.expert_width(),
                    MixtureOfExpertsOptions{.n_experts = c.n_experts,
                                            .experts_per_token = c.experts_per_token,
                                            .n_shared_experts = c.n_shared_experts,
                                            .normalise = c.normalise_experts,
                                            .feed_forward = feed_forward_options(c)});
  else
    feed_forward.emplace(c.d_model, c.d_ff, feed_forward_options(c));
}

Tensor TransformerBlock::forward(const Tensor& x, const BlockArgs& args) const {
  const AttentionArgs how{
      .mask = args.mask, .causal = true, .rope = args.rope, .positions = args.positions, .store = args.store};
  const Tensor z = add_branch(placement, x, attention_norm, attention_post_norm,
                              [&](const Tensor& h) { return dropout(attention(h, how)); });
  return add_branch(placement, z, feed_forward_norm, feed_forward_post_norm, [&](const Tensor& h) {
    return dropout(experts ? (*experts)(h, MixtureArgs{.balance = args.balance}) : (*feed_forward)(h));
  });
}

void TransformerBlock::visit(Visitor& v) {
  if (attention_norm) v.child("attention_norm", *attention_norm);
  v.child("attention", attention);
  if (attention_post_norm) v.child("attention_post_norm", *attention_post_norm);
  if (feed_forward_norm) v.child("feed_forward_norm", *feed_forward_norm);
  if (feed_forward) v.child("feed_forward", *feed_forward);
  if (experts) v.child("feed_forward", *experts);
  if (feed_forward_post_norm) v.child("feed_forward_post_norm", *feed_forward_post_norm);
  v.child("dropout", dropout);
}

}  // namespace tapestry
