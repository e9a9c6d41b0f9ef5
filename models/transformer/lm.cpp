// From tokens to logits, or to the loss. Next: sampler.h.
#include "lm.h"

#include <cmath>

#include "../../autograd/error.h"
#include "../../autograd/tools/checkpoint.h"
#include "../../nn/positions.h"

namespace tapestry {
namespace {

const TransformerConfig& validated(const TransformerConfig& c) {
  c.validate();
  return c;
}

std::optional<RotaryEmbedding> rotary(const TransformerConfig& c, bool local) {
  if (c.positions != Positions::rope || (local && c.rope_local_theta == 0)) return {};
  return RotaryEmbedding(c.rotary_dim(), c.max_seq_len,
                         RotaryOptions{.theta = local ? c.rope_local_theta : c.rope_theta,
                                       .layout = c.rope_layout,
                                       .scaling = local ? RopeScaling{} : c.rope_scaling});
}

/// Without it, positions of another shape would be broadcast where they are added.
void check_positions(const Tensor& positions, const Tensor& tokens) {
  if (!positions.defined()) return;
  const int64_t rows = positions.dim() == 2 ? positions.size(0) : 1;
  const bool fits = positions.dtype() == DType::i64 && (positions.dim() == 1 || positions.dim() == 2) &&
                    positions.size(-1) == tokens.size(1) && (rows == 1 || rows == tokens.size(0));
  if (!fits)
    fail<ShapeError>("transformer: positions are {}, tokens {}; they must be i64 (T) or (B, T)", positions.describe(),
                     tokens.describe());
}

}  // namespace

Transformer::Transformer(const TransformerConfig& c)
    : config(validated(c)),
      token_embedding(c.vocab_size, c.d_model),
      dropout(c.embedding_dropout),
      layers(c.n_layers, [&](int64_t i) { return TransformerBlock(c, i); }),
      rope(rotary(c, false)),
      rope_local(rotary(c, true)) {
  if (c.final_norm) norm.emplace(c.d_model, c.norm_kind, c.norm_eps);
  if (!c.tied_embeddings) lm_head.emplace(c.d_model, c.vocab_size, LinearOptions{.bias = c.head_bias});
  if (c.positions == Positions::learned) position_embedding.emplace(c.max_seq_len, c.d_model);
  if (c.positions == Positions::sinusoidal) sinusoids = sinusoidal_positions(c.max_seq_len, c.d_model, DType::f64);
}

Tensor Transformer::embed(const Tensor& tokens, const Tensor& positions) const {
  Tensor x = token_embedding(tokens);  // (B, T, D)
  if (config.scale_embedding) x = x * std::sqrt(static_cast<double>(config.d_model));
  const bool learned = config.positions == Positions::learned;
  if (!learned && config.positions != Positions::sinusoidal) return dropout(x);
  const Tensor at = positions.defined() ? positions : arange(tokens.size(1));  // (T) or (B, T)
  return dropout(x + (learned ? (*position_embedding)(at) : to(embedding(sinusoids, at), x.dtype())));
}

Tensor Transformer::logits(const Tensor& hidden) const {
  const Tensor y = lm_head ? (*lm_head)(hidden) : linear(hidden, token_embedding.weight);
  return config.final_soft_cap > 0 ? soft_cap(y, config.final_soft_cap) : y;
}

Tensor Transformer::forward(const Tensor& tokens, const TransformerArgs& args) const {
  if (!tokens.defined() || tokens.dim() != 2)
    fail<ShapeError>("transformer: tokens are {}; they must be i64 (B, T)", tokens.describe());
  const int64_t before = args.cache != nullptr ? args.cache->size() : 0;
  if (before + tokens.size(1) > config.max_seq_len)
    fail<ShapeError>("transformer: {} tokens after {} in the cache are more than max_seq_len {}; use a shorter window",
                     tokens.size(1), before, config.max_seq_len);
  if (args.cache != nullptr && args.cache->n_layers() != layers.size())
    fail<ValueError>("transformer: the cache has {} layers, the model {}", args.cache->n_layers(), layers.size());
  check_positions(args.positions, tokens);
  const Tensor positions =
      !args.positions.defined() && args.cache != nullptr ? args.cache->next_positions(tokens.size(1)) : args.positions;
  if (args.cache == nullptr) return run(tokens, positions, args);
  try {
    return run(tokens, positions, args);
  } catch (...) {
    args.cache->abandon(before);
    throw;
  }
}

Tensor Transformer::run(const Tensor& tokens, const Tensor& positions, const TransformerArgs& args) const {
  Tensor x = embed(tokens, positions);  // (B, T, D)
  for (size_t i = 0; i < layers.size(); ++i) {
    const auto layer = static_cast<int64_t>(i);
    const auto& turning = rope_local && config.is_sliding(layer) ? rope_local : rope;
    const BlockArgs how{.rope = config.has_rope(layer) ? &*turning : nullptr,
                        .positions = positions,
                        .mask = args.mask,
                        .store = args.cache != nullptr ? &args.cache->store(i) : nullptr,
                        .balance = args.balance};
    x = recompute && args.cache == nullptr ? recomputed(layers[i], x, how) : layers[i](x, how);
  }
  if (args.last_only) x = slice(x, 1, -1, {});
  if (norm) x = (*norm)(x);
  return args.head ? logits(x) : x;  // (B, T, V)
}

// A block that is run twice must not add to the caller's balance twice: its own is an output of it.
Tensor Transformer::recomputed(const TransformerBlock& block, const Tensor& x, const BlockArgs& args) const {
  std::vector<Tensor> out = checkpoint(
      [&block, args](const Tensor& h) {
        BalanceLoss balance;
        BlockArgs how = args;
        if (args.balance != nullptr) how.balance = &balance;
        std::vector<Tensor> result{block(h, how)};
        if (const Tensor loss = balance.mean(); loss.defined()) result.push_back(loss);
        return result;
      },
      x);
  if (out.size() > 1) args.balance->add(out[1]);
  return out[0];
}

Tensor Transformer::cross_entropy_of(const Tensor& hidden, const Tensor& targets,
                                     const LanguageModelLossOptions& o) const {
  if (lm_head && lm_head->adapter)  // its product is no weight
    return cross_entropy(hidden.dtype() == DType::bf16 ? to(logits(hidden), DType::f32) : logits(hidden), targets,
                         {.ignore_index = o.ignore_index,
                          .reduction = o.reduction,
                          .label_smoothing = o.label_smoothing,
                          .z_loss = o.z_loss});
  const Tensor& head = lm_head ? lm_head->weight : token_embedding.weight;
  Tensor bias;  // not a Parameter of its own, which would be another leaf
  if (lm_head) bias = lm_head->bias;
  return linear_cross_entropy(hidden, head, bias, targets,
                              {.ignore_index = o.ignore_index,
                               .reduction = o.reduction,
                               .label_smoothing = o.label_smoothing,
                               .z_loss = o.z_loss,
                               .soft_cap = config.final_soft_cap,
                               .f32_loss = true});
}

Tensor Transformer::loss(const Tensor& tokens, const Tensor& targets, const LanguageModelLossOptions& o) const {
  BalanceLoss balance;
  const Tensor hidden = (*this)(
      tokens,
      TransformerArgs{.mask = o.mask, .head = false, .balance = o.balance_loss > 0 ? &balance : nullptr});  // (B, T, D)
  Tensor loss = cross_entropy_of(hidden, targets, o);
  const Tensor unbalanced = balance.mean();
  if (!unbalanced.defined()) return loss;
  double kept = 1;
  if (o.reduction == Reduction::sum)
    kept = sum(to(not_equal(targets, static_cast<double>(o.ignore_index)), DType::f64)).item();
  return loss + to(unbalanced, loss.dtype()) * (o.balance_loss * kept);
}

void Transformer::visit(Visitor& v) {
  v.child("token_embedding", token_embedding);
  if (position_embedding) v.child("position_embedding", *position_embedding);
  v.child("dropout", dropout);
  v.child("layers", layers);
  if (norm) v.child("norm", *norm);
  if (lm_head) v.child("lm_head", *lm_head);
  if (rope) v.child("rope", *rope);
  if (rope_local) v.child("rope_local", *rope_local);
}

Tensor document_mask(const Tensor& documents) {
  if (!documents.defined() || documents.dim() != 2)
    fail<ShapeError>("document_mask: documents are {}; they must be i64 (B, T)", documents.describe());
  return equal(unsqueeze(documents, 2), unsqueeze(documents, 1));
}

}  // namespace tapestry
