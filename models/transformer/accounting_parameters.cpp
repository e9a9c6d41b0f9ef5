// Rows times columns of every weight, as block.cpp and its parts make them. Next: accounting_flops.cpp.
#include "accounting_parameters.h"

#include "../../autograd/error.h"

namespace tapestry {
namespace {

int64_t linear(int64_t in, int64_t out, bool bias) { return out * in + (bias ? out : 0); }

int64_t norm(NormKind kind, int64_t width) { return kind == NormKind::layer ? 2 * width : width; }

int64_t attention(const TransformerConfig& c) {
  const int64_t q = c.n_heads * c.head_width(), kv = c.n_kv_heads * c.head_width();
  return linear(c.d_model, q, c.q_bias) + linear(c.d_model, kv, c.k_bias) + linear(c.d_model, kv, c.v_bias) +
         linear(q, c.d_model, c.o_bias);
}

int64_t norms(const TransformerConfig& c) {
  const bool four = c.norm_placement == NormPlacement::double_norm;
  const int64_t branches = (four ? 4 : 2) * norm(c.norm_kind, c.d_model);
  const int64_t heads = c.n_heads + c.n_kv_heads;
  switch (c.qk_norm) {
    case QkNorm::none:
      return branches;
    case QkNorm::head:
      return branches + 2 * norm(c.qk_norm_kind, c.head_width());
    case QkNorm::projection:
      return branches + norm(c.qk_norm_kind, heads * c.head_width());
  }
  return branches;
}

int64_t feed_forward(const TransformerConfig& c, int64_t width) {
  return (c.gated ? linear(c.d_model, width, c.gate_bias) : 0) + linear(c.d_model, width, c.up_bias) +
         linear(width, c.d_model, c.down_bias);
}

LayerParameters layer_parameters(const TransformerConfig& c, int64_t layer) {
  LayerParameters p;
  p.attention = attention(c);
  p.norms = norms(c);
  if (!c.has_experts(layer)) {
    p.feed_forward = feed_forward(c, c.d_ff);
    return p;
  }
  const int64_t expert = feed_forward(c, c.expert_width());
  p.router = linear(c.d_model, c.n_experts, false);
  p.experts = c.n_experts * expert;
  p.experts_per_token = c.experts_per_token * expert;
  if (c.n_shared_experts > 0) p.feed_forward = feed_forward(c, c.n_shared_experts * c.expert_width());
  return p;
}

}  // namespace

int64_t ParameterTable::in_layers() const {
  int64_t sum = 0;
  for (const LayerParameters& layer : layers) sum += layer.total();
  return sum;
}
int64_t ParameterTable::total() const { return token_embedding + position_embedding + non_embedding() + lm_head; }
int64_t ParameterTable::active() const {
  int64_t sum = total();
  for (const LayerParameters& layer : layers) sum -= layer.experts - layer.experts_per_token;
  return sum;
}

ParameterTable parameter_table(const TransformerConfig& c) {
  check_countable(c, 1, 1);
  ParameterTable p;
  p.token_embedding = c.vocab_size * c.d_model;
  if (c.positions == Positions::learned) p.position_embedding = c.max_seq_len * c.d_model;
  for (int64_t i = 0; i < c.n_layers; ++i) p.layers.push_back(layer_parameters(c, i));
  if (c.final_norm) p.final_norm = norm(c.norm_kind, c.d_model);
  if (!c.tied_embeddings) p.lm_head = linear(c.d_model, c.vocab_size, c.head_bias);
  return p;
}

void check_countable(const TransformerConfig& c, int64_t rows, int64_t length) {
  c.validate();
  if (rows < 1 || length < 1)
    fail<ValueError>("accounting: {} rows of {} tokens; both must be at least 1", rows, length);
  const auto real = [](int64_t n) { return static_cast<double>(n); };
  const double d = real(c.d_model), dh = real(c.head_width()), heads = real(c.n_heads), keys = real(length);
  const double networks = real(c.n_experts + c.n_shared_experts) * real(c.expert_width()) + real(c.d_ff);
  const double layer = (2 * heads + 2 * real(c.n_kv_heads)) * dh * (d + 1) + 3 * d * networks + 2 * heads * dh * keys +
                       d * real(c.n_experts) + 8 * d;
  const double all = real(c.n_layers) * layer + d * (2 * real(c.vocab_size) + real(c.max_seq_len));
  if (const double flops = 8 * real(rows) * keys * all; !(flops < 0x1p62))
    fail<ValueError>(
        "accounting: {} layers of width {} on {} rows of {} tokens cost {:.1e} FLOPs, more than can be counted",
        c.n_layers, c.d_model, rows, length, flops);
}

}  // namespace tapestry
