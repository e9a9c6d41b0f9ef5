// Rows of the losses.
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

constexpr OpRow rows[] = {
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
};

}  // namespace

std::span<const OpRow> loss_rows() { return rows; }

}  // namespace tapestry::op_table
