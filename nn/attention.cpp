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

MultiHeadAttentionOptions completed(int64_t d_model, MultiHeadAttentionOptions o) {
  if (d_model < 1 || o.n_heads < 1 || o.n_kv_heads < 0 || o.head_dim < 0 || o.window < 0)
    fail<ValueError>(
        "MultiHeadAttention: d_model {}, n_heads {}, n_kv_heads {}, head_dim {}, window {}: d_model and n_heads must "
        "be "
        "positive, the others not negative",
        d_model, o.n_heads, o.n_kv_heads, o.head_dim, o.window);
  if (o.n_kv_heads != 0 && o.n_heads % o.n_kv_heads != 0)
    fail<ValueError>("MultiHeadAttention: n_kv_heads {} does not divide n_heads {}", o.n_kv_heads, o.n_heads);
  if (o.head_dim == 0 && d_model % o.n_heads != 0)
    fail<ValueError>("MultiHeadAttention: n_heads {} does not divide d_model {}; choose another, or give head_dim",
                     o.n_heads, d_model);
  if (!(o.dropout >= 0 && o.dropout <= 1))
    fail<ValueError>("MultiHeadAttention: dropout is {}, which is not in [0, 1]", o.dropout);
  if (o.n_kv_heads == 0) o.n_kv_heads = o.n_heads;
  if (o.head_dim == 0) o.head_dim = d_model / o.n_heads;
  return o;
}

}  // namespace

std::string_view name_of(QkNorm kind) {
  constexpr std::string_view names[] = {"none", "head", "projection"};
  return names[static_cast<size_t>(kind)];
}

MultiHeadAttention::MultiHeadAttention(int64_t d_model, const MultiHeadAttentionOptions& o)
    : options(completed(d_model, o)),
      o_proj(options.n_heads * options.head_dim, d_model, LinearOptions{.bias = o.o_bias}) {
  const int64_t q_width = options.n_heads * options.head_dim, kv_width = options.n_kv_heads * options.head_dim;
  if (o.fused_qkv) {
    qkv_proj.emplace(d_model, q_width + 2 * kv_width, LinearOptions{.bias = o.q_bias || o.k_bias || o.v_bias});
  } else {
    q_proj.emplace(d_model, q_width, LinearOptions{.bias = o.q_bias});
    k_proj.emplace(d_model, kv_width, LinearOptions{.bias = o.k_bias});
    v_proj.emplace(d_model, kv_width, LinearOptions{.bias = o.v_bias});
  }
  if (o.qk_norm == QkNorm::none) return;
  const bool whole = o.qk_norm == QkNorm::projection;
  q_norm.emplace(whole ? q_width : options.head_dim, o.qk_norm_kind, o.qk_norm_eps);
  k_norm.emplace(whole ? kv_width : options.head_dim, o.qk_norm_kind, o.qk_norm_eps);
}

MultiHeadAttention::Heads MultiHeadAttention::project(const Tensor& queries, const Tensor& source) const {
  const int64_t dh = options.head_dim, q_width = options.n_heads * dh, kv_width = options.n_kv_heads * dh;
  Heads h;
  if (qkv_proj) {
    const Tensor rows = (*qkv_proj)(source);  // (B, T, (H + 2·Hkv)·Dh)
    // Queries of another sequence than the keys' come from a product of their own.
    const bool same = queries.body() == source.body();
    h.q = slice(same ? rows : (*qkv_proj)(queries), -1, 0, q_width);
    h.k = slice(rows, -1, q_width, q_width + kv_width);
    h.v = slice(rows, -1, q_width + kv_width, {});
  } else {
    h = {(*q_proj)(queries), (*k_proj)(source), (*v_proj)(source)};
  }
  const bool whole = options.qk_norm == QkNorm::projection, each = options.qk_norm == QkNorm::head;
  if (whole) h.q = (*q_norm)(h.q), h.k = (*k_norm)(h.k);
  h = {split_heads(h.q, options.n_heads, dh), split_heads(h.k, options.n_kv_heads, dh),
       split_heads(h.v, options.n_kv_heads, dh)};
  if (each) h.q = (*q_norm)(h.q), h.k = (*k_norm)(h.k);
  return h;
}

Tensor MultiHeadAttention::forward(const Tensor& x, const AttentionArgs& args) const {
  if (x.dim() < 2 || x.dim() > 3) fail<ShapeError>("attention: x is {}; it must be (B, T, D) or (T, D)", x.describe());
  const auto batched = [](const Tensor& t) { return t.dim() == 2 ? unsqueeze(t, 0) : t; };
  const Tensor queries = batched(x), source = args.context.defined() ? batched(args.context) : queries;
  auto [q, k, v] = project(queries, source);
  if (args.rope != nullptr) {
    q = (*args.rope)(q, args.positions);
    k = (*args.rope)(k, args.context.defined() ? Tensor{} : args.positions);
  }
  Tensor mask = args.mask;
  if (args.store != nullptr) {
    const StoredKeys stored = args.store->extend(k, v);
    k = stored.keys, v = stored.values;
    if (mask.defined()) {
      mask = args.store->mask_columns(mask);
      if (mask.dim() == 3) mask = unsqueeze(mask, 1);  // (B, T, Tk) beside (B, 1, 1, Tk)
      if (stored.mask.defined()) mask = logical_and(mask, stored.mask);
    } else {
      mask = stored.mask;
    }
  }
  const Tensor y = scaled_dot_product_attention(q, k, v,
                                                {.mask = mask,
                                                 .causal = args.causal,
                                                 .scale = options.scale,
                                                 .window = args.causal ? options.window : 0,
                                                 .soft_cap = options.soft_cap,
                                                 .dropout = is_training() ? options.dropout : 0});  // (B, H, T, Dh)
  const Tensor out = o_proj(flatten(transpose(y, 1, 2), 2));  // (B, T, H·Dh) to (B, T, D)
  return x.dim() == 2 ? squeeze(out, 0) : out;
}

void MultiHeadAttention::visit(Visitor& v) {
  if (qkv_proj) {
    v.child("qkv_proj", *qkv_proj);
  } else {
    v.child("q_proj", *q_proj);
    v.child("k_proj", *k_proj);
    v.child("v_proj", *v_proj);
  }
  v.child("o_proj", o_proj);
  if (q_norm) v.child("q_norm", *q_norm);
  if (k_norm) v.child("k_norm", *k_norm);
}

}  // namespace tapestry
