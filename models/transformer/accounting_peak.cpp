// The Transformer once more, as lm.cpp and the modules below it run it, on a tape of sizes. Next: sized_tape.cpp.
#include "accounting_peak.h"

#include <algorithm>
#include <utility>

#include "accounting_parameters.h"
#include "sized_tape.h"

namespace tapestry {
namespace {

using Value = SizedTape::Value;
using Values = SizedTape::Values;
using Op = SizedTape::Op;
using Rule = SizedTape::Rule;

constexpr int64_t f32 = 4, i64 = 8;

class SizedTransformer {
 public:
  SizedTransformer(const TransformerConfig& c, int64_t rows, int64_t length)
      : c_(c), rows_(rows), length_(length), tokens_(rows * length) {
    const int64_t tables = c.positions != Positions::rope ? 0 : c.rope_local_theta > 0 ? 4 : 2;  // cosines and sines
    for (int64_t i = 0; i < tables; ++i) keep(c.max_seq_len * c.rotary_dim() / 2 * f32, MemoryKind::saved);
    if (c.positions == Positions::sinusoidal) keep(c.max_seq_len * c.d_model * i64, MemoryKind::temporary);
  }

  TrainingMemory step(const TrainingMemoryOptions& o) {
    TrainingMemory m;
    for (int i = 0; i < (o.accumulate ? 2 : 1); ++i) {
      next_ = 0;
      const Value loss = o.chunked_loss ? chunked_loss(hidden(o), o.loss_chunk) : loss_of_logits(hidden(o));
      m.saved = tape_.live()[MemoryKind::saved];
      tape_.backward(loss);
    }
    m.peak = tape_.peak();
    m.allocated = tape_.allocated_peak();
    return m;
  }

 private:
  void keep(int64_t bytes, MemoryKind kind) { kept_.push_back(tape_.constant(bytes, kind)); }

  /// The next parameter with its moments, made when it is first met: every run meets them in the same order.
  Value parameter(int64_t elements) {
    if (next_ == parameters_.size()) {
      parameters_.push_back(tape_.leaf(elements * f32));
      for (int moment = 0; moment < 2; ++moment) keep(elements * f32, MemoryKind::optimizer);
    }
    return parameters_[next_++];
  }

  Value fresh(Value x, int64_t bytes) { return tape_.apply({.inputs = {std::move(x)}}, bytes); }
  Value like(const Value& x) { return fresh(x, x.bytes); }
  Value pass(const Value& x) { return tape_.view({.inputs = {x}, .rule = Rule::passes}, x.bytes); }
  /// A copy whose gradient is handed on.
  Value copy(const Value& x) { return tape_.apply({.inputs = {x}, .rule = Rule::passes}, x.bytes); }
  Value add(const Value& a, const Value& b) { return tape_.apply({.inputs = {a, b}, .rule = Rule::passes}, a.bytes); }
  Value mul(const Value& a, const Value& b) { return tape_.apply({.inputs = {a, b}, .saved = {a, b}}, a.bytes); }
  /// A pointwise op whose rule reads its input.
  Value pointwise(const Value& x) { return tape_.apply({.inputs = {x}, .saved = {x}}, x.bytes); }
  Value saves_itself(const Value& x) {
    Value y{x.bytes, tape_.constant(x.bytes).memory};
    return tape_.view({.inputs = {Value{y.bytes, y.memory, x.slot}}, .saved = {y}}, y.bytes);
  }
  Value dropped(const Value& x, double p) { return p > 0 ? like(x) : x; }

  Value linear(const Value& x, const Value& weight, const Value& bias, int64_t in, int64_t out) {
    Op op{.inputs = {x, weight}, .saved = {x}, .rule = Rule::adds};
    if (bias.bytes > 0) op.inputs.push_back(bias);
    return tape_.apply(op, x.bytes / in * out);
  }
  Value linear(const Value& x, int64_t in, int64_t out, bool bias) {
    const Value weight = parameter(in * out);
    return linear(x, weight, bias ? parameter(out) : Value{}, in, out);
  }

  /// `copies`: the rows of x have no single stride, so that forward and backward copy them.
  Value norm(const Value& x, NormKind kind, int64_t width, bool copies = false) {
    const int64_t rows = x.bytes / f32 / width;
    Value weight = parameter(width);
    Op op{.inputs = {x}, .saved = {x}};
    if (kind == NormKind::rms_unit_offset) {
      weight = copy(weight);
      op.saved.push_back(weight);
    }
    op.inputs.push_back(weight);
    if (kind == NormKind::layer) op.inputs.push_back(parameter(width));
    const bool layer = kind == NormKind::layer || kind == NormKind::layer_no_bias;
    for (int i = 0; i < (layer ? 2 : 1); ++i) op.saved.push_back(tape_.constant(rows * f32));
    if (copies) op.forward_bytes = x.bytes, op.rule_bytes = 2 * x.bytes;
    return tape_.apply(op, x.bytes);
  }
  Value norm(const Value& x) { return norm(x, c_.norm_kind, c_.d_model); }

  /// One projected row cut into heads, normalised and turned.
  Value heads(Value x, int64_t heads, int64_t layer, bool normalised) {
    const int64_t dh = c_.head_width();
    const bool strided = heads > 1 && length_ > 1;
    if (normalised && c_.qk_norm == QkNorm::projection) x = norm(x, c_.qk_norm_kind, heads * dh);
    if (normalised && c_.qk_norm == QkNorm::head) {
      // The gradient comes back head by head, and is copied to lie in rows again.
      if (strided) x = tape_.view({.inputs = {x}}, x.bytes);
      x = norm(x, c_.qk_norm_kind, dh, strided);
    }
    return normalised && c_.has_rope(layer) ? like(x) : x;
  }

  Value attention(const Value& x, int64_t layer) {
    const int64_t dh = c_.head_width(), q_width = c_.n_heads * dh, kv_width = c_.n_kv_heads * dh;
    Value q, k, v;
    if (c_.fused_qkv) {
      const Value all = linear(x, c_.d_model, q_width + 2 * kv_width, c_.q_bias);
      q = tape_.view({.inputs = {all}}, tokens_ * q_width * f32);
      k = tape_.view({.inputs = {all}}, tokens_ * kv_width * f32);
      v = tape_.view({.inputs = {all}}, tokens_ * kv_width * f32);
    } else {
      q = linear(x, c_.d_model, q_width, c_.q_bias);
      k = linear(x, c_.d_model, kv_width, c_.k_bias);
      v = linear(x, c_.d_model, kv_width, c_.v_bias);
    }
    q = heads(q, c_.n_heads, layer, true);
    k = heads(k, c_.n_kv_heads, layer, true);
    const Value y = c_.attention_dropout > 0 ? unfused(q, k, v) : fused(q, k, v);
    return linear(y, q_width, c_.d_model, c_.o_bias);
  }

  Value fused(const Value& q, const Value& k, const Value& v) {
    const Value lse = tape_.constant(tokens_ * c_.n_heads * f32);
    return tape_.apply({.inputs = {q, k, v}, .saved = {q, k, v, lse}}, q.bytes);
  }

  /// With dropout of the probabilities: plain ops, which hold the scores.
  Value unfused(const Value& q, Value k, Value v) {
    const int64_t groups = c_.n_heads / c_.n_kv_heads, scores = tokens_ * c_.n_heads * length_ * f32;
    const auto spread = [&](Value& x) {
      if (groups > 1) x = copy(fresh(x, groups * x.bytes));
    };
    spread(k);
    Value p = like(tape_.apply({.inputs = {q, k}, .saved = {q, k}}, scores));
    if (c_.attention_soft_cap > 0) p = saves_itself(p);
    spread(v);
    const Value mask = tape_.constant(length_ * length_), sees = tape_.constant(length_);
    p = saves_itself(tape_.apply({.inputs = {p}, .saved = {mask}}, scores));
    p = like(tape_.apply({.inputs = {p}, .saved = {sees}}, scores));
    const Value y = tape_.apply({.inputs = {p, v}, .saved = {p, v}}, q.bytes);
    return c_.n_heads > 1 && length_ > 1 ? copy(y) : y;
  }

  Value feed_forward(const Value& x, int64_t width) {
    const int64_t d = c_.d_model;
    Value hidden;
    if (!c_.gated) {
      hidden = activation(linear(x, d, width, c_.up_bias));
    } else {
      Value gate, up;
      if (c_.fused_gate_up) {
        auto [a, b] = tape_.halves(linear(x, d, 2 * width, c_.gate_bias));
        gate = std::move(a), up = std::move(b);
      } else {
        gate = linear(x, d, width, c_.gate_bias);
        up = linear(x, d, width, c_.up_bias);
      }
      hidden = c_.activation == Activation::silu ? mul(gate, up) : mul(activation(gate), up);
    }
    return linear(hidden, width, d, c_.down_bias);
  }
  Value activation(const Value& x) { return c_.activation == Activation::relu ? saves_itself(x) : pointwise(x); }

  Value experts(const Value& x) {
    const int64_t d = c_.d_model, e = c_.n_experts, k = c_.experts_per_token, chosen = tokens_ * k;
    const Value p = saves_itself(linear(x, d, e, false));
    Value weights = tape_.apply({.inputs = {p}, .saved = {tape_.constant(chosen * i64)}}, chosen * f32);
    if (c_.normalise_experts) {
      const Value sums = fresh(weights, tokens_ * f32);
      weights = tape_.apply({.inputs = {weights, sums}, .saved = {weights, sums}}, chosen * f32);
    }
    Value y = c_.n_shared_experts > 0 ? feed_forward(x, c_.n_shared_experts * c_.expert_width())
                                      : tape_.constant(tokens_ * d * f32);
    for (int64_t i = 0; i < e; ++i) {
      const int64_t n = chosen * (i + 1) / e - chosen * i / e;
      const Value index = tape_.constant(n * i64), at = tape_.constant(n * i64);
      const Value rows = tape_.apply({.inputs = {x}, .saved = {index}}, n * d * f32);
      const Value z = feed_forward(rows, c_.expert_width());
      const Value w = tape_.apply({.inputs = {weights}, .saved = {at}}, n * f32);
      const Value each = tape_.view({.inputs = {w}}, n * d * f32);
      const Value weighted = mul(z, each), part = tape_.apply({.inputs = {weighted}, .saved = {index}}, 0);
      y = tape_.apply({.inputs = {y, part}, .rule = Rule::passes}, tokens_ * d * f32);
    }
    return y;
  }

  template <class Branch>
  Value add_branch(const Value& h, const Branch& branch) {
    switch (c_.norm_placement) {
      case NormPlacement::pre:
        return add(h, branch(norm(h)));
      case NormPlacement::post:
        return norm(add(h, branch(h)));
      case NormPlacement::double_norm:
        return add(h, norm(branch(norm(h))));
      case NormPlacement::non_residual_post:
        return add(h, norm(branch(h)));
    }
    return h;
  }

  Value block(const Value& x, int64_t layer) {
    const Value z = add_branch(x, [&](const Value& h) { return dropped(attention(h, layer), c_.residual_dropout); });
    return add_branch(z, [&](const Value& h) {
      return dropped(c_.has_experts(layer) ? experts(h) : feed_forward(h, c_.d_ff), c_.residual_dropout);
    });
  }

  Value embed() {
    const Value ids = tape_.constant(tokens_ * i64);
    embedding_ = parameter(c_.vocab_size * c_.d_model);
    const int64_t bytes = tokens_ * c_.d_model * f32;
    Value x = tape_.apply({.inputs = {embedding_}, .saved = {ids}, .rule = Rule::adds}, bytes);
    if (c_.scale_embedding) x = like(x);
    if (c_.positions == Positions::learned) {
      const Value table = parameter(c_.max_seq_len * c_.d_model), at = tape_.constant(length_ * i64);
      const Value rows = tape_.apply({.inputs = {table}, .saved = {at}, .rule = Rule::adds}, bytes / rows_);
      x = add(x, tape_.view({.inputs = {rows}}, bytes));
    } else if (c_.positions == Positions::sinusoidal) {
      x = add(x, tape_.constant(bytes / rows_));
    }
    return dropped(x, c_.embedding_dropout);
  }

  Value hidden(const TrainingMemoryOptions& o) {
    Value x = embed();
    for (int64_t i = 0; i < c_.n_layers; ++i) {
      if (!o.recompute) {
        x = block(x, i);
        continue;
      }
      const size_t first = next_;
      x = tape_.checkpoint(x, [this, i, first](const Value& h) {
        next_ = first;
        return block(h, i);
      });
    }
    return c_.final_norm ? norm(x) : x;
  }

  [[nodiscard]] std::pair<Value, Value> head() {
    if (c_.tied_embeddings) return {embedding_, Value{}};
    const Value weight = parameter(c_.vocab_size * c_.d_model);
    return {weight, c_.head_bias ? parameter(c_.vocab_size) : Value{}};
  }

  Value loss_of_logits(const Value& hidden) {
    const Value targets = tape_.constant(tokens_ * i64);
    const auto [weight, bias] = head();
    Value logits = linear(hidden, weight, bias, c_.d_model, c_.vocab_size);
    if (c_.final_soft_cap > 0) logits = saves_itself(logits);
    return tape_.apply({.inputs = {logits}, .saved = {logits, targets, tape_.constant(tokens_ * f32)}}, f32);
  }

  /// linear_cross_entropy: its gradients are there at the end of forward, and scaled in backward.
  Value chunked_loss(const Value& hidden, int64_t asked) {
    const Value targets = tape_.constant(tokens_ * i64);
    const auto [weight, bias] = head();
    constexpr int64_t least = 256, elements = int64_t{1} << 20;
    const int64_t wanted = asked > 0 ? asked : std::max(least, elements / c_.vocab_size / 64 * 64);
    const int64_t chunk = std::min(wanted, tokens_), blocks = c_.final_soft_cap > 0 ? 2 : 1;
    Op op{.inputs = {hidden, weight}, .saved = {hidden, targets}};
    if (bias.bytes > 0) op.inputs.push_back(bias);
    for (const Value& in : Values(op.inputs)) op.saved.push_back(tape_.constant(in.bytes));
    op.forward_bytes = (blocks * c_.vocab_size + 1) * chunk * f32;
    return tape_.apply(op, f32);
  }

  const TransformerConfig& c_;
  int64_t rows_, length_, tokens_;
  SizedTape tape_;
  std::vector<Value> kept_, parameters_;
  size_t next_ = 0;
  Value embedding_;
};

}  // namespace

TrainingMemory training_memory(const TransformerConfig& c, int64_t rows, int64_t length,
                               const TrainingMemoryOptions& options) {
  check_countable(c, rows, length);
  return SizedTransformer(c, rows, length).step(options);
}

}  // namespace tapestry
