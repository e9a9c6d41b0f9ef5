// Construction and the call of MultiHeadAttention.
#include "attention.h"

#include "../autograd/error.h"

namespace tapestry {
namespace {

/// (…, T, H·Dh) to (…, H, T, Dh), a view.
Tensor split_heads(const Tensor& x, int64_t heads, int64_t head_dim) {
  Shape shape = x.shape();
  shape[shape.rank() - 1] = heads;
  shape.push_back(head_dim);
  return transpose(reshape(x, shape), -3, -2);
}

}  // namespace

MultiHeadAttention::Sizes MultiHeadAttention::checked(int64_t d_model, const MultiHeadAttentionOptions& o) {
  if (d_model < 1 || o.n_heads < 1 || o.n_kv_heads < 0 || o.head_dim < 0)
    fail<ValueError>(
        "MultiHeadAttention: d_model {}, n_heads {}, n_kv_heads {}, head_dim {}: d_model and n_heads must be positive, "
        "the others not negative",
        d_model, o.n_heads, o.n_kv_heads, o.head_dim);
  if (o.n_kv_heads != 0 && o.n_heads % o.n_kv_heads != 0)
    fail<ValueError>("MultiHeadAttention: n_kv_heads {} does not divide n_heads {}", o.n_kv_heads, o.n_heads);
  if (o.head_dim == 0 && d_model % o.n_heads != 0)
    fail<ValueError>("MultiHeadAttention: n_heads {} does not divide d_model {}; choose another, or give head_dim",
                     o.n_heads, d_model);
  return {o.n_heads, o.n_kv_heads == 0 ? o.n_heads : o.n_kv_heads, o.head_dim == 0 ? d_model / o.n_heads : o.head_dim};
}

MultiHeadAttention::MultiHeadAttention(int64_t d_model, MultiHeadAttentionOptions options)
    : MultiHeadAttention(d_model, checked(d_model, options), options.bias) {}

MultiHeadAttention::MultiHeadAttention(int64_t d_model, Sizes s, bool bias)
    : n_heads(s.n_heads),
      n_kv_heads(s.n_kv_heads),
      head_dim(s.head_dim),
      q_proj(d_model, s.n_heads * s.head_dim, LinearOptions{.bias = bias}),
      k_proj(d_model, s.n_kv_heads * s.head_dim, LinearOptions{.bias = bias}),
      v_proj(d_model, s.n_kv_heads * s.head_dim, LinearOptions{.bias = bias}),
      o_proj(s.n_heads * s.head_dim, d_model, LinearOptions{.bias = bias}) {}

Tensor MultiHeadAttention::forward(const Tensor& x, const AttentionArgs& args) const {
  if (x.dim() < 2 || x.dim() > 3) fail<ShapeError>("attention: x is {}; it must be (B, T, D) or (T, D)", x.describe());
  const auto batched = [](const Tensor& t) { return t.dim() == 2 ? unsqueeze(t, 0) : t; };
  const Tensor queries = batched(x), source = args.context.defined() ? batched(args.context) : queries;
  Tensor q = split_heads(q_proj(queries), n_heads, head_dim);    // (B, H, T, Dh)
  Tensor k = split_heads(k_proj(source), n_kv_heads, head_dim);  // (B, Hkv, Tk, Dh)
  Tensor v = split_heads(v_proj(source), n_kv_heads, head_dim);  // (B, Hkv, Tk, Dh)
  if (args.rope != nullptr) {
    q = (*args.rope)(q, args.positions);
    k = (*args.rope)(k, args.context.defined() ? Tensor{} : args.positions);
  }
  if (args.store != nullptr) {
    auto [keys, values] = args.store->extend(k, v);
    k = keys, v = values;
  }
  const Tensor y = scaled_dot_product_attention(q, k, v, {.mask = args.mask, .causal = args.causal});  // (B, H, T, Dh)
  const Tensor out = o_proj(flatten(transpose(y, 1, 2), 2));  // (B, T, H·Dh) to (B, T, D)
  return x.dim() == 2 ? squeeze(out, 0) : out;
}

void MultiHeadAttention::visit(Visitor& v) {
  v.child("q_proj", q_proj);
  v.child("k_proj", k_proj);
  v.child("v_proj", v_proj);
  v.child("o_proj", o_proj);
}

}  // namespace tapestry
