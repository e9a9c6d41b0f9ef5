// Rows of cross-entropy and nll_loss.
// Not losses of two tensors of one shape (pair_loss_rows.cpp). Next: pair_loss_rows.cpp.
#include "../../ops/ops.h"
#include "nn_reference.h"
#include "op_table.h"

namespace tapestry::op_table {
namespace {

constexpr Bounds fused = {1e-12, 4e-6, 0x1p-7};
constexpr Bounds composed = {1e-12, 4e-6, 0x1p-5};  // every step rounds to bf16

Reduction reduction(int64_t r) { return r == 0 ? Reduction::none : r == 1 ? Reduction::sum : Reduction::mean; }

/// -ln softmax(x)[t] in plain ops.
Tensor plain_cross_entropy(Args a, const Params& p) {
  const Tensor &x = a[0], &t = a[1];
  const Tensor kept = t != static_cast<double>(p.b);
  const Tensor at = where(kept, t, 0.0);
  const Tensor loss = where(kept, logsumexp(x, {-1}) - squeeze(gather(x, -1, unsqueeze(at, -1)), -1), 0.0);
  if (p.a == 0) return loss;
  return p.a == 1 ? sum(loss) : sum(loss) / sum(to(kept, x.dtype()));
}

/// Σ_c q_c w_c (−ln softmax(x)_c), every class a product: nothing picked, nothing fused. smoothing in tenths.
Tensor plain_weighted_cross_entropy(Args a, const Params& p) {
  const Tensor &x = a[0], &t = a[1];
  const int64_t classes = x.size(-1);
  const double s = static_cast<double>(p.b) / 10;
  const Tensor w = a.size() > 2 ? a[2] : ones({classes}, x.dtype()), kept = to(t != -100.0, x.dtype());
  const Tensor hit = to(unsqueeze(t, -1) == arange(classes), x.dtype());
  const Tensor q = (1 - s) * hit + s / static_cast<double>(classes);
  const Tensor loss = kept * sum(q * w * (logsumexp(x, {-1}, true) - x), {-1});
  if (p.a == 0) return loss;
  return p.a == 1 ? sum(loss) : sum(loss) / sum(hit * w);
}

/// cross_entropy with class weights (three inputs) and label smoothing (p.b tenths).
Tensor weighted_cross_entropy(Args a, const Params& p) {
  return cross_entropy(a[0], a[1],
                       {.reduction = reduction(p.a),
                        .label_smoothing = static_cast<double>(p.b) / 10,
                        .weight = a.size() > 2 ? a[2] : Tensor{}});
}

Array weighted_reference(const Arrays& a, const Params& p) {
  return reference::weighted_loss(a[0], a[1], a.size() > 2 ? &a[2] : nullptr, static_cast<double>(p.b) / 10, p.a);
}

/// cross_entropy with a z-loss of p.c tenths.
Tensor z_cross_entropy(Args a, const Params& p) {
  return cross_entropy(a[0], a[1],
                       {.reduction = reduction(p.a),
                        .label_smoothing = static_cast<double>(p.b) / 10,
                        .weight = a.size() > 2 ? a[2] : Tensor{},
                        .z_loss = static_cast<double>(p.c) / 10});
}
Array z_reference(const Arrays& a, const Params& p) {
  return reference::weighted_loss(a[0], a[1], a.size() > 2 ? &a[2] : nullptr, static_cast<double>(p.b) / 10, p.a,
                                  static_cast<double>(p.c) / 10);
}

/// Smoothing, soft cap and z-loss of p.b, p.c and p.d tenths; the small chunk cuts the rows of every sample.
LinearCrossEntropyOptions linear_options(const Params& p, int64_t chunk = 2) {
  return {.reduction = reduction(p.a),
          .label_smoothing = static_cast<double>(p.b) / 10,
          .z_loss = static_cast<double>(p.d) / 10,
          .soft_cap = static_cast<double>(p.c) / 10,
          .chunk = chunk};
}
/// The same of logits that exist, in plain ops.
Tensor plain_linear_cross_entropy(Args a, const Params& p) {
  Tensor x = matmul(a[0], mT(a[1]));
  if (a[2].defined()) x = x + a[2];
  const double s = static_cast<double>(p.b) / 10, cap = static_cast<double>(p.c) / 10,
               z = static_cast<double>(p.d) / 10;
  if (cap > 0) x = cap * tanh(x / cap);
  const Tensor hit = to(unsqueeze(a[3], -1) == arange(x.size(-1)), x.dtype()), lse = logsumexp(x, {-1}, true),
               q = (1 - s) * hit + s / static_cast<double>(x.size(-1));
  const Tensor loss = sum(q * (lse - x), {-1}) + z * square(squeeze(lse, -1));
  return p.a == 1 ? sum(loss) : mean(loss);
}
Array linear_reference(const Arrays& a, const Params& p) {
  const Array logits = reference::layer(a[0], a[1], a[2], static_cast<double>(p.c) / 10);
  return reference::weighted_loss(logits, a[3], nullptr, static_cast<double>(p.b) / 10, p.a,
                                  static_cast<double>(p.d) / 10);
}

constexpr OpRow rows[] = {
    {.name = "cross_entropy (label smoothing)",
     .vjp = "dx = g (softmax(x) − q)/count, 0 in ignored rows",
     .fn = [](Args a, const Params& p) { return weighted_cross_entropy(a, p); },
     .ref = [](const Arrays& a, const Params& p) { return weighted_reference(a, p); },
     .composite = [](Args a, const Params& p) { return plain_weighted_cross_entropy(a, p); },
     .samples = {{{real(4, 3), index(3, 4)}, {2, 1}},
                 {{real(4, 3), index(3, 4)}, {0, 5}},
                 {{real(2, 3, 3), index(3, 2, 3)}, {1, 10}}},
     .empty = {{real(0, 3), index(3, 0)}, {2, 1}},
     .large = {{real(1000, 256), index(256, 1000)}, {2, 1}},
     .errors = {{[] {
                   (void)cross_entropy(zeros({1, 3}), tensor<int64_t>({0}), {.label_smoothing = 1.5});
                 },
                 "cross_entropy: label_smoothing is 1.5; it must be from 0 to 1"}},
     .bounds = fused},
    {.name = "cross_entropy (class weights)",
     .vjp = "dx = g w[t] (softmax(x) − [j = t])/Σ w[t], 0 in ignored rows",
     .fn = [](Args a, const Params& p) { return weighted_cross_entropy(a, p); },
     .ref = [](const Arrays& a, const Params& p) { return weighted_reference(a, p); },
     .composite = [](Args a, const Params& p) { return plain_weighted_cross_entropy(a, p); },
     .samples = {{{real(4, 3), index(3, 4), constant(3).in(0.5, 2)}, {2, 0}},
                 {{real(4, 3), index(3, 4), constant(3).in(0.5, 2)}, {0, 0}},
                 {{real(2, 3, 3), index(3, 2, 3), constant(3).in(0.5, 2)}, {1, 0}}},
     .empty = {{real(0, 3), index(3, 0), constant(3)}, {2, 0}},
     .errors = {{[] {
                   (void)cross_entropy(zeros({1, 3}), tensor<int64_t>({0}), {.weight = ones({2})});
                 },
                 "cross_entropy: weight is [2] f32, but there are 3 classes; it must hold one number per class"},
                {[] {
                   (void)cross_entropy(zeros({1, 3}), tensor<int64_t>({0}), {.weight = ones({3}, DType::f64)});
                 },
                 "cross_entropy: weight is [3] f64, the rows are [1, 3] f32; convert with to(weight, DType::f32)"}},
     .bounds = fused},
    {.name = "cross_entropy (class weights and label smoothing)",
     .formula = "y = −Σ q w ln softmax(x), q = (1 − s)·[j = t] + s/V",
     .vjp = "dx = g (softmax(x) Σ q w − q w)/Σ w[t], 0 in ignored rows",
     .fn = [](Args a, const Params& p) { return weighted_cross_entropy(a, p); },
     .ref = [](const Arrays& a, const Params& p) { return weighted_reference(a, p); },
     .composite = [](Args a, const Params& p) { return plain_weighted_cross_entropy(a, p); },
     .samples = {{{real(4, 3), index(3, 4), constant(3).in(0.5, 2)}, {2, 1}},
                 {{real(4, 3), index(3, 4), constant(3).in(0.5, 2)}, {0, 2}},
                 {{real(2, 3, 3), index(3, 2, 3), constant(3).in(0.5, 2)}, {1, 3}}},
     .empty = {{real(0, 3), index(3, 0), constant(3)}, {2, 1}},
     .errors =
         {{[] {
             (void)cross_entropy(zeros({2, 3}), tensor<int64_t>({0, 3}), {.label_smoothing = 0.1, .weight = ones({3})});
           },
           "cross_entropy: target 3 at [1] is out of range for 3 classes"}},
     .bounds = fused},
    {.name = "cross_entropy (x twice)",
     .fn = [](Args a) { return cross_entropy(2 * a[0] * a[0], a[1], {.label_smoothing = 0.1}); },
     .ref =
         [](const Arrays& a) {
           Array x = a[0];
           for (double& v : x.values) v *= 2 * v;
           return reference::weighted_loss(x, a[1], nullptr, 0.1, 2);
         },
     .samples = {{{real(4, 3), index(3, 4)}}},
     .empty = {{real(0, 3), index(3, 0)}},
     .errors = {{[] { (void)cross_entropy(zeros({2}), zeros({2})); }, "cross_entropy: logits is [2] f32"}},
     .bounds = composed},
    {.name = "cross_entropy (z-loss)",
     .formula = "y = l − x[t] + z l², l = ln Σ e^x, summed or averaged over kept rows",
     .vjp = "dx = g ((1 + 2 z l) softmax(x) − [j = t])/count, 0 in ignored rows",
     .fn = [](Args a, const Params& p) { return z_cross_entropy(a, p); },
     .ref = [](const Arrays& a, const Params& p) { return z_reference(a, p); },
     .composite =
         [](Args a, const Params& p) {
           const Tensor z = static_cast<double>(p.c) / 10 * square(logsumexp(a[0], {-1}));
           return plain_weighted_cross_entropy(a, p) + (p.a == 0 ? z : p.a == 1 ? sum(z) : mean(z));
         },
     .samples = {{{real(4, 3), index(3, 4)}, {2, 0, 1}},
                 {{real(4, 3), index(3, 4)}, {0, 2, 5}},
                 {{real(2, 3, 3), index(3, 2, 3)}, {1, 10, 3}}},
     .empty = {{real(0, 3), index(3, 0)}, {2, 0, 1}},
     .large = {{real(1000, 256), index(256, 1000)}, {2, 1, 1}},
     .errors = {{[] {
                   (void)cross_entropy(zeros({1, 3}), tensor<int64_t>({0}), {.z_loss = -1});
                 },
                 "cross_entropy: z_loss is -1; it must be finite and not negative"},
                {[] {
                   (void)nll_loss(zeros({1, 3}), tensor<int64_t>({0}), {.z_loss = 1});
                 },
                 "nll_loss: z_loss is 1, which needs the logits; use cross_entropy"}},
     .bounds = fused},
    {.name = "cross_entropy (z-loss and class weights)",
     .formula = "y = w[t] (l − x[t] + z l²), l = ln Σ e^x, summed or averaged over kept rows",
     .vjp = "dx = g w[t] ((1 + 2 z l) softmax(x) − [j = t])/Σ w[t], 0 in ignored rows",
     .fn = [](Args a, const Params& p) { return z_cross_entropy(a, p); },
     .ref = [](const Arrays& a, const Params& p) { return z_reference(a, p); },
     .samples = {{{real(4, 3), index(3, 4), constant(3).in(0.5, 2)}, {2, 0, 1}},
                 {{real(4, 3), index(3, 4), constant(3).in(0.5, 2)}, {0, 2, 5}}},
     .empty = {{real(0, 3), index(3, 0), constant(3)}, {2, 0, 1}},
     .errors = {{[] {
                   (void)cross_entropy(zeros({1, 3}), tensor<int64_t>({0}), {.z_loss = reference::inf});
                 },
                 "cross_entropy: z_loss is inf; it must be finite and not negative"}},
     .bounds = fused},
    {.name = "cross_entropy (z-loss, x twice)",
     .formula = "y = l − x[t] + z l², l = ln Σ e^x, summed or averaged over kept rows",
     .vjp = "dx = g ((1 + 2 z l) softmax(x) − [j = t])/count, 0 in ignored rows",
     .fn =
         [](Args a) {
           const Tensor both[] = {2 * a[0] * a[0], a[1]};
           return z_cross_entropy(both, {2, 1, 2});
         },
     .ref =
         [](const Arrays& a) {
           Array x = a[0];
           for (double& v : x.values) v *= 2 * v;
           return z_reference({x, a[1]}, {2, 1, 2});
         },
     .samples = {{{real(4, 3), index(3, 4)}}},
     .empty = {{real(0, 3), index(3, 0)}},
     .errors = {{[] { (void)cross_entropy(zeros({2}), zeros({2}), {.z_loss = 1}); },
                 "cross_entropy: logits is [2] f32"}},
     .bounds = composed},
    {.name = "linear_cross_entropy",
     .fn = [](Args a, const Params& p) { return linear_cross_entropy(a[0], a[1], a[2], a[3], linear_options(p)); },
     .ref = [](const Arrays& a, const Params& p) { return linear_reference(a, p); },
     .composite = [](Args a, const Params& p) { return plain_linear_cross_entropy(a, p); },
     .samples = {{{real(5, 2), real(3, 2), real(3), index(3, 5)}, {2}},
                 {{real(5, 2), real(3, 2), undefined, index(3, 5)}, {2, 1, 15, 2}},
                 {{real(2, 3, 2), real(4, 2), real(4), index(4, 2, 3)}, {1, 0, 10}},
                 {{real(3, 2), real(4, 2), undefined, index(4, 3)}, {1, 3, 0, 1}}},
     .empty = {{real(0, 3), real(4, 3), real(4), index(4, 0)}, {2}},
     .large = {{real(700, 64), real(300, 64), real(300), index(300, 700)}, {2, 1, 300, 1}},
     .errors = {{[] {
                   (void)linear_cross_entropy(zeros({2, 3}), zeros({4, 3}), {}, tensor<int64_t>({0, 4}));
                 },
                 "linear_cross_entropy: target 4 at [1] is out of range for 4 classes"},
                {[] {
                   (void)linear_cross_entropy(zeros({2, 3}), zeros({4, 5}), {}, tensor<int64_t>({0, 0}));
                 },
                 "linear_cross_entropy: inner dimensions differ: x is [2, 3] f32, weight is [4, 5] f32"},
                {[] {
                   (void)linear_cross_entropy(zeros({2, 3}), zeros({4, 3}), {}, tensor<int64_t>({0, 0}),
                                              {.reduction = Reduction::none});
                 },
                 "linear_cross_entropy: reduction is none; it must be sum or mean: cross_entropy gives each row's "
                 "loss"}},
     .bounds = {1e-12, 1e-5, 0x1p-7}},
    {.name = "linear_cross_entropy (x twice)",
     .fn =
         [](Args a) {
           return linear_cross_entropy(2 * a[0], a[0] * a[0], sum(a[0], {1}), a[1], linear_options({2, 1, 15, 2}));
         },
     .ref =
         [](const Arrays& a) {
           Array x = a[0], w = a[0], b{{a[0].shape[0]}, std::vector<double>(static_cast<size_t>(a[0].shape[0]))};
           for (double& v : x.values) v *= 2;
           for (double& v : w.values) v *= v;
           reference::for_each(a[0].shape, [&](const Dims& i) { b({i[0]}) += a[0](i); });
           return linear_reference({x, w, b, a[1]}, {2, 1, 15, 2});
         },
     .samples = {{{real(4, 3), index(4, 4)}}},
     .empty = {{real(0, 3), index(4, 0)}},
     .errors =
         {{[] {
             (void)linear_cross_entropy(zeros({2, 3}), zeros({4, 3}), {}, tensor<int64_t>({0}));
           },
           "linear_cross_entropy: x is [2, 3] f32, targets is [1] i64; targets must have the shape of x without "
           "its last dim"},
          {[] {
             (void)linear_cross_entropy(zeros({2, 3}), zeros({4, 3}), {}, tensor<int64_t>({0, 0}), {.chunk = -1});
           },
           "linear_cross_entropy: chunk is -1; it must be 0 (any) or more"},
          {[] {
             (void)linear_cross_entropy(zeros({2, 3}), zeros({4, 3}), {}, tensor<int64_t>({0, 0}), {.soft_cap = -1});
           },
           "linear_cross_entropy: soft_cap is -1; it must be 0 (none) or positive and finite"}},
     .bounds = composed},
    {.name = "nll_loss (class weights)",
     .formula = "y = −w[t] x[t], summed or averaged over kept rows",
     .vjp = "dx = −g w[t] [j = t]/Σ w[t], 0 in ignored rows",
     .fn = [](Args a, const Params& p) { return nll_loss(a[0], a[1], {.reduction = reduction(p.a), .weight = a[2]}); },
     .ref =
         [](const Arrays& a, const Params& p) {
           double sum = 0, kept = 0;
           const Array each = reference::build(a[1].shape, [&](const Dims& i) {
             const int64_t t = a[1].number(i);
             sum -= a[2]({t}) * a[0]({i[0], t});
             kept += a[2]({t});
             return -a[2]({t}) * a[0]({i[0], t});
           });
           return p.a == 0 ? each : Array{{}, {p.a == 1 ? sum : sum / kept}};
         },
     .samples = {{{real(4, 3), index(3, 4), constant(3).in(0.5, 2)}, {2}},
                 {{real(4, 3), index(3, 4), constant(3).in(0.5, 2)}, {0}}},
     .empty = {{real(0, 3), index(3, 0), constant(3)}, {1}},
     .errors = {{[] {
                   (void)nll_loss(zeros({1, 3}), tensor<int64_t>({0}), {.label_smoothing = 0.1});
                 },
                 "nll_loss: label_smoothing is 0.1, which needs all classes; use cross_entropy"},
                {[] {
                   (void)nll_loss(zeros({1, 3}), tensor<int64_t>({0}), {.weight = ones({3}).requires_grad_()});
                 },
                 "nll_loss: weight has no derivative, but requires a gradient; pass weight.detach()"}},
     .bounds = composed},
    {.name = "cross_entropy",
     .fn =
         [](Args a, const Params& p) {
           return cross_entropy(a[0], a[1], {.ignore_index = p.b, .reduction = reduction(p.a)});
         },
     .ref = [](const Arrays& a, const Params& p) { return reference::picked_loss(a[0], a[1], p.b, p.a, true); },
     .composite = [](Args a, const Params& p) { return plain_cross_entropy(a, p); },
     .samples = {{{real(4, 3), index(3, 4)}, {2, -100}},
                 {{real(4, 3), index(3, 4)}, {0, -100}},
                 {{real(2, 3, 3), index(3, 2, 3)}, {1, 1}},
                 {{real(5, 3), index(3, 5)}, {2, 0}}},
     .empty = {{real(0, 3), index(3, 0)}, {2, -100}},
     .large = {{real(1000, 256), index(256, 1000)}, {2, -100}},
     .errors = {{[] {
                   (void)cross_entropy(zeros({2, 3}), tensor<int64_t>({0, 3}));
                 },
                 "cross_entropy: target 3 at [1] is out of range for 3 classes"},
                {[] {
                   (void)cross_entropy(zeros({2, 3}), tensor<int64_t>({0, -4}));
                 },
                 "cross_entropy: target -4 at [1] is out of range for 3 classes"},
                {[] {
                   (void)cross_entropy(zeros({2, 3}), tensor<int64_t>({0}));
                 },
                 "cross_entropy: logits is [2, 3] f32, targets is [1] i64; targets must have the shape of logits "
                 "without its last dim"}},
     .bounds = fused},
    {.name = "nll_loss",
     .formula = "y = −x[t], summed or averaged over kept rows",
     .vjp = "dx = −g [j = t]/count, 0 in ignored rows",
     .fn = [](Args a,
              const Params& p) { return nll_loss(a[0], a[1], {.ignore_index = p.b, .reduction = reduction(p.a)}); },
     .ref = [](const Arrays& a, const Params& p) { return reference::picked_loss(a[0], a[1], p.b, p.a, false); },
     .samples = {{{real(4, 3), index(3, 4)}, {2, -100}},
                 {{real(2, 3, 3), index(3, 2, 3)}, {1, 1}},
                 {{real(4, 3), index(3, 4)}, {0, 2}}},
     .empty = {{real(0, 3), index(3, 0)}, {2, -100}},
     .errors = {{[] {
                   (void)nll_loss(zeros({2, 3}), tensor<int64_t>({0, 3}));
                 },
                 "nll_loss: target 3 at [1] is out of range for 3 classes"}},
     .bounds = composed},
};

}  // namespace

std::span<const OpRow> loss_rows() { return rows; }

}  // namespace tapestry::op_table
