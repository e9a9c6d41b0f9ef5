// Gumbel-softmax (Jang et al. 2017): a differentiable draw from a distribution given by its logits.
// Not here: draws of tokens, which need no gradient (models/transformer/sampler.h).
// Next: rope.cpp.
#include "error_text.h"
#include "ops.h"

namespace tapestry {
namespace {

/// Gumbel noise −ln(−ln u), u from the next ticket: a constant, so derivatives of every order see the same one.
Tensor gumbel(const Shape& shape, DType dtype) {
  const Tensor u = maximum(to(rand(shape), dtype), 0x1p-25);  // rand has 24 bits and may be 0
  return -log(-log(u));
}

}  // namespace

Tensor gumbel_softmax(const Tensor& logits, double tau, bool hard, int64_t dim) {
  detail::require_floating("gumbel_softmax", logits);
  if (!(tau > 0)) fail<ValueError>("gumbel_softmax: tau is {}; it must be positive", tau);
  const int d = normalize_dim("gumbel_softmax", dim, logits.dim());
  const DType wide = logits.dtype() == DType::f64 ? DType::f64 : DType::f32;
  const Tensor soft = to(softmax((to(logits, wide) + gumbel(logits.shape(), wide)) / tau, d), logits.dtype());
  if (!hard) return soft;
  const Tensor chosen = argmax(soft.detach(), d, true), places = arange(soft.size(d));
  Shape along;
  for (int i = 0; i < soft.dim(); ++i) along.push_back(i == d ? soft.size(d) : 1);
  return straight_through(to(reshape(places, along) == chosen, soft.dtype()), soft);
}

}  // namespace tapestry
