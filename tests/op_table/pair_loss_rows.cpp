// Rows of the losses of two tensors of one shape, and gumbel_softmax.
// Not cross-entropy of integer targets (loss_rows.cpp). Next: attention_rows.cpp.
#include "../../ops/ops.h"
#include "nn_reference.h"
#include "op_table.h"

namespace tapestry::op_table {
namespace {

constexpr Bounds composed = {1e-12, 4e-6, 0x1p-5};  // every step rounds to bf16

Reduction reduction(int64_t r) { return r == 0 ? Reduction::none : r == 1 ? Reduction::sum : Reduction::mean; }

/// A loss of two tensors of one shape, reduced in every way; the second in [low, high).
constexpr OpRow pair(const char* name, const char* formula, const char* vjp, Function fn, Reference ref, Input x,
                     Input t, ErrorCase error, ErrorCase second = {}) {
  OpRow row;
  row.name = name;
  row.formula = formula;
  row.vjp = vjp;
  row.fn = fn;
  row.ref = ref;
  const auto sample = [&](int64_t r, auto... sizes) {
    Sample s = {{input(x.kind, sizes...).in(x.low, x.high), input(t.kind, sizes...).in(t.low, t.high)}};
    s.p.a = r;
    return s;
  };
  row.samples[0] = sample(2, 3, 4);
  row.samples[1] = sample(1, 3, 4);
  row.samples[2] = sample(0, 2, 1, 3);
  row.empty = sample(1, 0, 3);
  row.large = sample(2, 300, 401);
  row.errors[0] = error;
  row.errors[1] = second;
  row.bounds = composed;
  return row;
}

template <double (*term)(double, double)>
Array each(const Arrays& a, const Params& p) {
  return reference::pair_loss(a[0], a[1], p.a, term);
}

double bce(double p, double t) { return -t * std::log(p) - (1 - t) * std::log(1 - p); }
double absolute(double x, double t) { return std::fabs(x - t); }
double huber(double x, double t) {
  const double d = std::fabs(x - t);
  return d <= 0.7 ? d * d / 2 : 0.7 * (d - 0.35);
}
double smooth(double x, double t) { return huber(x, t) / 0.7; }
double hinge(double x, double t) { return std::max(0.0, 1 - t * x); }
double kl(double x, double t) { return t * (std::log(t) - x); }

constexpr OpRow rows[] = {
    {.name = "mse_loss",
     .formula = "y = (x − t)², summed or averaged",
     .vjp = "dx = 2 g (x − t)/count",
     .fn = [](Args a, const Params& p) { return mse_loss(a[0], a[1], reduction(p.a)); },
     .ref =
         [](const Arrays& a, const Params& p) {
           return reference::pair_loss(a[0], a[1], p.a, [](double x, double t) { return (x - t) * (x - t); });
         },
     .samples = {{{real(3, 4), real(3, 4)}, {2}}, {{real(3, 4), real(3, 4)}, {1}}, {{real(4), real(4)}, {0}}},
     .empty = {{real(0, 3), real(0, 3)}, {1}},
     .errors = {{[] { (void)mse_loss(zeros({2}), zeros({3})); },
                 "mse_loss: x is [2] f32, target is [3] f32; the shapes must be equal: expand(target, x.shape())"}},
     .bounds = composed},
    {.name = "binary_cross_entropy_with_logits",
     .formula = "y = max(x, 0) − x·t + ln(1 + e^(−|x|)), summed or averaged",
     .vjp = "dx = g (σ(x) − t)/count",
     .fn = [](Args a, const Params& p) { return binary_cross_entropy_with_logits(a[0], a[1], reduction(p.a)); },
     .ref =
         [](const Arrays& a, const Params& p) {
           return reference::pair_loss(a[0], a[1], p.a, [](double x, double t) {
             return (x > 0 ? x : 0) - x * t + std::log1p(std::exp(-std::fabs(x)));
           });
         },
     .samples = {{{real(3, 4), real(3, 4).in(0, 1)}, {2}},
                 {{real(3, 4), constant(3, 4).in(0, 1)}, {1}},
                 {{real(4), real(4).in(0, 1)}, {0}}},
     .empty = {{real(0, 3), constant(0, 3)}, {1}},
     .errors = {{[] { (void)binary_cross_entropy_with_logits(zeros({2}), zeros({3})); },
                 "binary_cross_entropy_with_logits: x is [2] f32, target is [3] f32; the shapes must be equal"}},
     .bounds = composed},
    pair(
        "binary_cross_entropy", nullptr, nullptr,
        [](Args a, const Params& p) { return binary_cross_entropy(a[0], a[1], reduction(p.a)); },
        [](const Arrays& a, const Params& p) { return each<bce>(a, p); }, real().in(0.1, 0.9), real().in(0, 1),
        {[] { (void)binary_cross_entropy(zeros({2}), zeros({3})); },
         "binary_cross_entropy: x is [2] f32, target is [3] f32; the shapes must be equal"}),
    pair(
        "l1_loss", "y = |x − t|, summed or averaged", "dx = g sign(x − t)/count",
        [](Args a, const Params& p) { return l1_loss(a[0], a[1], reduction(p.a)); },
        [](const Arrays& a, const Params& p) { return each<absolute>(a, p); }, real(), real(),
        {[] { (void)l1_loss(zeros({2}), zeros({3})); },
         "l1_loss: x is [2] f32, target is [3] f32; the shapes must be equal"}),
    pair(
        "huber_loss", "y = d²/2 where |d| ≤ δ, else δ(|d| − δ/2), d = x − t", "dx = g·min(max(d, −δ), δ)/count",
        [](Args a, const Params& p) { return huber_loss(a[0], a[1], 0.7, reduction(p.a)); },
        [](const Arrays& a, const Params& p) { return each<huber>(a, p); }, real(), real(),
        {[] { (void)huber_loss(zeros({2}), zeros({3})); },
         "huber_loss: x is [2] f32, target is [3] f32; the shapes must be equal"},
        {[] { (void)huber_loss(zeros({2}), zeros({2}), 0); }, "huber_loss: delta is 0; it must be positive"}),
    pair(
        "smooth_l1_loss", "y = huber(x, t, β)/β", "dx = g·min(max(d/β, −1), 1)/count",
        [](Args a, const Params& p) { return smooth_l1_loss(a[0], a[1], 0.7, reduction(p.a)); },
        [](const Arrays& a, const Params& p) { return each<smooth>(a, p); }, real(), real(),
        {[] { (void)smooth_l1_loss(zeros({2}), zeros({3})); },
         "smooth_l1_loss: x is [2] f32, target is [3] f32; the shapes must be equal"},
        {[] { (void)smooth_l1_loss(zeros({2}), zeros({2}), -1); },
         "smooth_l1_loss: beta is -1; it must not be negative"}),
    pair(
        "smooth_l1_loss (beta = 0)", "y = |x − t|", "dx = g sign(x − t)/count",
        [](Args a, const Params& p) { return smooth_l1_loss(a[0], a[1], 0, reduction(p.a)); },
        [](const Arrays& a, const Params& p) { return each<absolute>(a, p); }, real(), real(),
        {[] { (void)smooth_l1_loss(zeros({2}), zeros({2}, DType::f64), 0); }, "smooth_l1_loss: dtypes differ"}),
    pair(
        "kl_div", "y = Σ t (ln t − q), the mean divided by x.size(0)", "dq = −g t, dt = g (ln t + 1 − q)",
        [](Args a, const Params& p) { return kl_div(a[0], a[1], reduction(p.a)); },
        [](const Arrays& a, const Params& p) {
          Array y = reference::pair_loss(a[0], a[1], p.a == 0 ? 0 : 1, kl);
          if (p.a == 2) y.values[0] /= static_cast<double>(a[0].shape[0]);
          return y;
        },
        real(), real().in(0.1, 1),
        {[] { (void)kl_div(zeros({2}), zeros({3})); },
         "kl_div: x is [2] f32, target is [3] f32; the shapes must be equal"}),
    pair(
        "hinge_loss", "y = max(0, 1 − t·x)", "dx = −g t where t·x < 1",
        [](Args a, const Params& p) { return hinge_loss(a[0], a[1], reduction(p.a)); },
        [](const Arrays& a, const Params& p) { return each<hinge>(a, p); }, real(), real(),
        {[] { (void)hinge_loss(zeros({2}), zeros({3})); },
         "hinge_loss: x is [2] f32, target is [3] f32; the shapes must be equal"}),
    {.name = "gaussian_nll_loss",
     .formula = "y = (ln v + (x − t)²/v)/2",
     .vjp = "dx = g (x − t)/v, dv = g (1/v − (x − t)²/v²)/2",
     .fn = [](Args a, const Params& p) { return gaussian_nll_loss(a[0], a[1], a[2], 1e-6, reduction(p.a)); },
     .ref =
         [](const Arrays& a, const Params& p) {
           const Array ys = reference::build(a[0].shape, [&](const Dims& i) {
             const double d = a[0](i) - a[1](i), v = a[2](i);
             return (std::log(v) + d * d / v) / 2;
           });
           return p.a == 0 ? ys : reference::pair_loss(ys, ys, p.a, [](double y, double) { return y; });
         },
     .samples = {{{real(3, 4), real(3, 4), real(3, 4).in(0.5, 2)}, {2}},
                 {{real(4), real(4), real(4).in(0.5, 2)}, {1}},
                 {{real(4), constant(4), real(4).in(0.5, 2)}, {0}}},
     .empty = {{real(0, 3), real(0, 3), real(0, 3)}, {1}},
     .errors = {{[] { (void)gaussian_nll_loss(zeros({2}), zeros({2}), zeros({3})); },
                 "gaussian_nll_loss: x is [2] f32, variance is [3] f32; the shapes must be equal"},
                {[] { (void)gaussian_nll_loss(zeros({2}), zeros({2}), zeros({2}), 0); },
                 "gaussian_nll_loss: eps is 0; it must be positive"}},
     .bounds = {1e-12, 4e-6, 0x1p-4}},
    {.name = "gumbel_softmax",
     .formula = "y = softmax((x − ln(−ln u))/τ), u from a ticket",
     .vjp = "dx = y (g − Σ g y)/τ",
     .fn = [](Args a, const Params& p) { return gumbel_softmax(a[0], 0.8, false, p.a); },
     .ref =
         [](const Arrays& a, const Params& p) {
           return reference::gumbel_softmax(a[0], reference::wrap(p.a, a[0].shape.rank()), 0.8);
         },
     .samples = {{{real(3, 4)}, {-1}}, {{real(3, 4, 2)}, {1}}},
     .empty = {{real(0, 3)}, {-1}},
     .errors = {{[] { (void)gumbel_softmax(zeros({2}), 0); }, "gumbel_softmax: tau is 0; it must be positive"}},
     .bounds = {1e-12, 4e-6, 0x1p-7}},
};

}  // namespace

std::span<const OpRow> pair_loss_rows() { return rows; }

}  // namespace tapestry::op_table
