// Rows of rotary positions, attention, SwiGLU and dropout.
// "(x twice)" rows feed one input computed from another: a fused op whose recorded walk did not stop at its inputs
// would count twice.
#include "../../ops/ops.h"
#include "nn_reference.h"
#include "op_table.h"

namespace tapestry::op_table {
namespace {

constexpr Bounds fused = {1e-12, 4e-6, 0x1p-7};
constexpr Bounds composed = {1e-12, 4e-6, 0x1p-5};  // every step rounds to bf16

Tensor plain_attention(Args a, bool causal, int64_t window = 0, double cap = 0) {
  const Tensor &q = a[0], &k = a[1];
  Tensor scores = matmul(q, mT(k)) / std::sqrt(static_cast<double>(q.size(-1)));
  if (cap > 0) scores = cap * tanh(scores / cap);
  if (causal) {
    const int64_t late = k.size(-2) - q.size(-2);
    Tensor seen = tril(ones({q.size(-2), k.size(-2)}, q.dtype()), late);
    if (window > 0) seen = triu(seen, late - window + 1);
    const Tensor may = seen > 0;
    scores = where(may, scores, -reference::inf);
  }
  return matmul(softmax(scores, -1), a[2]);
}

Tensor plain_rope(const Tensor& x, const RopeTable& table) {
  const int64_t r = 2 * table.cos.size(1), n = x.size(-2);
  const Tensor turned = slice(x, -1, 0, r), rest = slice(x, -1, r, {}), a = slice(turned, -1, 0, {}, 2),
               b = slice(turned, -1, 1, {}, 2);
  const Tensor c = slice(table.cos, 0, 0, n), s = slice(table.sin, 0, 0, n);
  return cat({flatten(stack({a * c - b * s, a * s + b * c}, -1), -2, -1), rest}, -1);
}

RopeTable table_for(const Tensor& x, int64_t r) {
  return rope_table(8, r, 100, x.dtype() == DType::f64 ? DType::f64 : DType::f32);
}

/// A window of p.b keys (0: none) and a soft cap of p.c tenths (0: none) on causal attention, masked by a fourth input.
Tensor windowed(Args a, const Params& p) {
  return scaled_dot_product_attention(a[0], a[1], a[2],
                                      {.mask = a.size() > 3 ? a[3] : Tensor{},
                                       .causal = p.a != 0,
                                       .window = p.b,
                                       .soft_cap = static_cast<double>(p.c) / 10});
}
Array windowed_reference(const Arrays& a, const Params& p) {
  return reference::attention(a, p.a != 0, {.window = p.b, .cap = static_cast<double>(p.c) / 10});
}

constexpr OpRow rows[] = {
    {.name = "rope",
     .fn = [](Args a, const Params& p) { return rope(a[0], table_for(a[0], p.a)); },
     .ref = [](const Arrays& a, const Params& p) { return reference::rotated(a[0], nullptr, p.a, 100, false); },
     .composite = [](Args a, const Params& p) { return plain_rope(a[0], table_for(a[0], p.a)); },
     .samples = {{{real(3, 4)}, {4}}, {{real(2, 3, 6)}, {4}}, {{real(2, 2, 3, 2)}, {2}}},
     .empty = {{real(0, 4)}, {4}},
     .large = {{real(100, 50, 8, 32)}, {32}},
     .errors = {{[] {
                   (void)rope(zeros({9, 4}), rope_table(8, 4));
                 },
                 "rope: x is [9, 4] f32: 9 positions, the table has 8"},
                {[] {
                   (void)rope(zeros({1, 4}), rope_table(8, 4), tensor<int64_t>({8}));
                 },
                 "rope: position 8 at [0] is out of range for a table of 8 positions"},
                {[] { (void)rope_table(8, 3); }, "rope_table: rotary_dim is 3; pairs are rotated, so it must be even"}},
     .bounds = fused},
    {.name = "rope (positions)",
     .fn =
         [](Args a, const Params& p) {
           return rope(a[0], table_for(a[0], p.a), a[1], p.b != 0 ? RopeLayout::half : RopeLayout::adjacent);
         },
     .ref = [](const Arrays& a, const Params& p) { return reference::rotated(a[0], &a[1], p.a, 100, p.b != 0); },
     .samples = {{{real(3, 4), index(8, 3)}, {4, 0}},
                 {{real(2, 3, 6), index(8, 2, 3)}, {4, 1}},
                 {{real(2, 2, 3, 4), index(8, 1, 3)}, {4, 1}}},
     .empty = {{real(0, 4), index(8, 0)}, {4, 0}},
     .errors = {{[] {
                   (void)rope(zeros({3, 4}), rope_table(8, 4), tensor<int64_t>({1}));
                 },
                 "rope: positions is [1] i64, x is [3, 4] f32; it must be [3] or [1, 3]"}},
     .bounds = fused},
    {.name = "scaled_dot_product_attention",
     .fn = [](Args a, const Params& p) { return scaled_dot_product_attention(a[0], a[1], a[2], {.causal = p.a != 0}); },
     .ref = [](const Arrays& a, const Params& p) { return reference::attention(a, p.a != 0); },
     .composite = [](Args a, const Params& p) { return plain_attention(a, p.a != 0); },
     .samples = {{{real(1, 2, 3, 2), real(1, 2, 3, 2), real(1, 2, 3, 2)}, {1}},
                 {{real(2, 3, 2), real(2, 4, 2), real(2, 4, 3)}, {0}},
                 {{real(2, 3), real(4, 3), real(4, 2)}, {1}}},
     .empty = {{real(0, 2, 3, 2), real(0, 2, 3, 2), real(0, 2, 3, 2)}, {1}},
     .large = {{real(4, 4, 64, 32), real(4, 4, 64, 32), real(4, 4, 64, 32)}, {1}},
     .errors = {{[] {
                   (void)scaled_dot_product_attention(zeros({2, 3}), zeros({2, 4}), zeros({2, 4}));
                 },
                 "scaled_dot_product_attention: q and k differ in their last dim: q is [2, 3] f32, k is [2, 4] f32, v "
                 "is [2, 4] f32"},
                {[] {
                   (void)scaled_dot_product_attention(zeros({1, 3, 2, 2}), zeros({1, 2, 2, 2}), zeros({1, 2, 2, 2}));
                 },
                 "scaled_dot_product_attention: the heads of k (dim 1) must divide those of q"}},
     .bounds = fused},
    {.name = "scaled_dot_product_attention (mask)",
     .fn =
         [](Args a, const Params& p) {
           return scaled_dot_product_attention(a[0], a[1], a[2], {.mask = a[3], .causal = p.a != 0});
         },
     .ref = [](const Arrays& a, const Params& p) { return reference::attention(a, p.a != 0); },
     .samples = {{{real(1, 2, 3, 2), real(1, 2, 3, 2), real(1, 2, 3, 2), mask(3, 3)}, {0}},
                 {{real(2, 2, 3, 2), real(2, 1, 4, 2), real(2, 1, 4, 2), mask(2, 3, 4)}, {0}},
                 {{real(1, 2, 3, 2), real(1, 2, 3, 2), real(1, 2, 3, 2), mask(1, 2, 3, 3)}, {1}}},
     .empty = {{real(1, 2, 0, 2), real(1, 2, 3, 2), real(1, 2, 3, 2), mask(1, 3)}, {0}},
     .errors =
         {{[] {
             (void)scaled_dot_product_attention(zeros({2, 2}), zeros({2, 2}), zeros({2, 2}), {.mask = zeros({2, 2})});
           },
           "scaled_dot_product_attention: mask is [2, 2] f32; it must be bool, true where a query may attend"}},
     .bounds = fused},
    {.name = "scaled_dot_product_attention (grouped)",
     .fn = [](Args a) { return scaled_dot_product_attention(a[0], a[1], a[2]); },
     .ref = [](const Arrays& a) { return reference::attention(a, false); },
     .samples = {{{real(1, 4, 2, 2), real(1, 2, 3, 2), real(1, 2, 3, 2)}}},
     .empty = {{real(1, 4, 2, 2), real(1, 2, 0, 2), real(1, 2, 0, 2)}},
     .errors =
         {{[] {
             (void)scaled_dot_product_attention(zeros({2, 2}), zeros({2, 2}), zeros({2, 2}), {.scale = reference::inf});
           },
           "scaled_dot_product_attention: scale is inf; it must be finite"}},
     .bounds = fused},
    {.name = "scaled_dot_product_attention (window)",
     .fn = [](Args a, const Params& p) { return windowed(a, p); },
     .ref = [](const Arrays& a, const Params& p) { return windowed_reference(a, p); },
     .composite = [](Args a, const Params& p) { return plain_attention(a, true, p.b); },
     .samples = {{{real(1, 2, 4, 2), real(1, 2, 4, 2), real(1, 2, 4, 2)}, {1, 2}},
                 {{real(2, 3, 2), real(2, 6, 2), real(2, 6, 3)}, {1, 3}},
                 {{real(5, 3), real(5, 3), real(5, 2)}, {1, 1}}},
     .empty = {{real(0, 2, 3, 2), real(0, 2, 3, 2), real(0, 2, 3, 2)}, {1, 2}},
     .large = {{real(4, 4, 256, 32), real(4, 4, 256, 32), real(4, 4, 256, 32)}, {1, 32}},
     .errors = {{[] {
                   (void)scaled_dot_product_attention(zeros({2, 2}), zeros({2, 2}), zeros({2, 2}), {.window = 4});
                 },
                 "scaled_dot_product_attention: window is 4, which counts keys back from the query's own: set causal, "
                 "too"},
                {[] {
                   (void)scaled_dot_product_attention(zeros({2, 2}), zeros({2, 2}), zeros({2, 2}),
                                                      {.causal = true, .window = -1});
                 },
                 "scaled_dot_product_attention: window is -1; it must be 0 (none) or more"}},
     .bounds = fused},
    {.name = "scaled_dot_product_attention (soft cap)",
     .formula = "y = p v, p = softmax(c tanh(scale q kᵀ/c), masked)",
     .vjp = "dv = pᵀ g, ds = scale p (g vᵀ − Σ p g vᵀ) (1 − (s/c)²), dq = ds k, dk = dsᵀ q",
     .fn = [](Args a, const Params& p) { return windowed(a, p); },
     .ref = [](const Arrays& a, const Params& p) { return windowed_reference(a, p); },
     .composite = [](Args a,
                     const Params& p) { return plain_attention(a, p.a != 0, p.b, static_cast<double>(p.c) / 10); },
     .samples = {{{real(1, 2, 3, 2), real(1, 2, 3, 2), real(1, 2, 3, 2)}, {1, 0, 5}},
                 {{real(2, 3, 2), real(2, 4, 2), real(2, 4, 3)}, {0, 0, 10}},
                 {{real(4, 3), real(5, 3), real(5, 2)}, {1, 2, 15}}},
     .empty = {{real(0, 2, 3, 2), real(0, 2, 3, 2), real(0, 2, 3, 2)}, {1, 0, 5}},
     .large = {{real(4, 4, 64, 32), real(4, 4, 64, 32), real(4, 4, 64, 32)}, {1, 0, 300}},
     .errors = {{[] {
                   (void)scaled_dot_product_attention(zeros({2, 2}), zeros({2, 2}), zeros({2, 2}), {.soft_cap = -1});
                 },
                 "scaled_dot_product_attention: soft_cap is -1; it must be 0 (none) or positive and finite"}},
     .bounds = fused},
    {.name = "scaled_dot_product_attention (window, soft cap and mask)",
     .formula = "y = p v, p = softmax(c tanh(scale q kᵀ/c), masked)",
     .vjp = "dv = pᵀ g, ds = scale p (g vᵀ − Σ p g vᵀ) (1 − (s/c)²), dq = ds k, dk = dsᵀ q",
     .fn = [](Args a, const Params& p) { return windowed(a, p); },
     .ref = [](const Arrays& a, const Params& p) { return windowed_reference(a, p); },
     .samples = {{{real(1, 4, 4, 2), real(1, 2, 4, 2), real(1, 2, 4, 2), mask(4, 4)}, {1, 2, 5}},
                 {{real(2, 2, 3, 2), real(2, 1, 6, 2), real(2, 1, 6, 2), mask(2, 3, 6)}, {1, 3, 10}},
                 {{real(1, 2, 5, 2), real(1, 2, 3, 2), real(1, 2, 3, 2), mask(1, 2, 5, 3)}, {1, 2, 20}}},
     .empty = {{real(1, 2, 0, 2), real(1, 2, 3, 2), real(1, 2, 3, 2), mask(1, 3)}, {1, 1, 5}},
     .errors = {{[] {
                   (void)scaled_dot_product_attention(zeros({2, 2}), zeros({2, 2}), zeros({2, 2}),
                                                      {.soft_cap = reference::inf});
                 },
                 "scaled_dot_product_attention: soft_cap is inf; it must be 0 (none) or positive and finite"}},
     .bounds = fused},
    {.name = "scaled_dot_product_attention (dropout)",
     .formula = "y = dropout(p) v, p = softmax(scale q kᵀ, masked)",
     .vjp = "as of its plain ops",
     .fn =
         [](Args a, const Params& p) {
           return scaled_dot_product_attention(a[0], a[1], a[2], {.causal = p.a != 0, .dropout = 0.4});
         },
     .ref = [](const Arrays& a, const Params& p) { return reference::attention(a, p.a != 0, {.dropout = 0.4}); },
     .samples = {{{real(1, 4, 3, 2), real(1, 2, 5, 2), real(1, 2, 5, 2)}, {1}},
                 {{real(6, 3), real(4, 3), real(4, 2)}, {1}}},
     .empty = {{real(0, 2, 3, 2), real(0, 2, 3, 2), real(0, 2, 3, 2)}, {1}},
     .errors = {{[] {
                   (void)scaled_dot_product_attention(zeros({2, 2}), zeros({2, 2}), zeros({2, 2}), {.dropout = 1.5});
                 },
                 "scaled_dot_product_attention: dropout is 1.5; it must be from 0 to 1"}},
     .bounds = fused},
    {.name = "scaled_dot_product_attention (window and soft cap, x twice)",
     .formula = "y = p v, p = softmax(c tanh(scale q kᵀ/c), masked)",
     .vjp = "dv = pᵀ g, ds = scale p (g vᵀ − Σ p g vᵀ) (1 − (s/c)²), dq = ds k, dk = dsᵀ q",
     .fn =
         [](Args a) {
           const Tensor three[] = {a[0], 2 * a[0], a[0] * a[0]};
           return windowed(three, {1, 2, 20});
         },
     .ref =
         [](const Arrays& a) {
           Arrays three = {a[0], a[0], a[0]};
           for (double& v : three[1].values) v *= 2;
           for (double& v : three[2].values) v *= v;
           return windowed_reference(three, {1, 2, 20});
         },
     .samples = {{{real(4, 2)}}},
     .empty = {{real(0, 2)}},
     .errors = {{[] { (void)scaled_dot_product_attention(zeros({2}), zeros({2}), zeros({2}), {.soft_cap = 1}); },
                 "scaled_dot_product_attention: ranks must be equal and 2, 3 or 4, (B, H, T, Dh)"}},
     .bounds = composed},
    {.name = "scaled_dot_product_attention (x twice)",
     .fn = [](Args a) { return scaled_dot_product_attention(a[0], 2 * a[0], a[0] * a[0]); },
     .ref =
         [](const Arrays& a) {
           Arrays three = {a[0], a[0], a[0]};
           for (double& v : three[1].values) v *= 2;
           for (double& v : three[2].values) v *= v;
           return reference::attention(three, false);
         },
     .samples = {{{real(3, 2)}}},
     .empty = {{real(0, 2)}},
     .errors = {{[] { (void)scaled_dot_product_attention(zeros({2}), zeros({2}), zeros({2})); },
                 "scaled_dot_product_attention: ranks must be equal and 2, 3 or 4, (B, H, T, Dh)"}},
     .bounds = composed},
    {.name = "swiglu",
     .fn = [](Args a) { return swiglu(a[0], a[1]); },
     .ref =
         [](const Arrays& a) {
           return reference::build(a[0].shape,
                                   [&](const Dims& i) { return a[0](i) * reference::sigmoid(a[0](i)) * a[1](i); });
         },
     .composite = [](Args a) { return silu(a[0]) * a[1]; },
     .samples = {{{real(3, 4), real(3, 4)}}, {{real(2, 1, 3), real(2, 1, 3)}}},
     .empty = {{real(0, 3), real(0, 3)}},
     .large = {{real(300, 401), real(300, 401)}},
     .errors = {{[] { (void)swiglu(zeros({2}), zeros({3})); },
                 "swiglu: gate is [2] f32, up is [3] f32; the shapes must be equal"}},
     .bounds = fused},
    {.name = "swiglu (x twice)",
     .fn = [](Args a) { return swiglu(a[0], 2 * a[0]); },
     .ref =
         [](const Arrays& a) {
           return reference::build(a[0].shape,
                                   [&](const Dims& i) { return 2 * a[0](i) * reference::sigmoid(a[0](i)) * a[0](i); });
         },
     .samples = {{{real(3, 2)}}},
     .empty = {{real(0, 3)}},
     .errors = {{[] { (void)swiglu(zeros({2}), zeros({2}, DType::f64)); }, "swiglu: dtypes differ: f32 and f64"}},
     .bounds = fused},
    {.name = "dropout",
     .fn = [](Args a) { return dropout(a[0], 0.4); },
     .ref = [](const Arrays& a) { return reference::dropped(a[0], 0.4); },
     .samples = {{{real(3, 40)}}, {{real(5)}}},
     .empty = {{real(0, 3)}},
     .large = {{real(300, 401)}},
     .errors = {{[] { (void)dropout(zeros({2}), 1.5); }, "dropout: p is 1.5; it must be from 0 to 1"}},
     .bounds = fused},
};

}  // namespace

std::span<const OpRow> attention_rows() { return rows; }

}  // namespace tapestry::op_table
