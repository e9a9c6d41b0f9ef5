// Rows of softmax and the norms.
// "(x twice)" rows feed one input computed from another: a fused op whose recorded walk did not stop at its inputs
// would count twice.
#include "../../ops/ops.h"
#include "nn_reference.h"
#include "op_table.h"

namespace tapestry::op_table {
namespace {

constexpr Bounds fused = {1e-12, 4e-6, 0x1p-7};
constexpr Bounds composed = {1e-12, 4e-6, 0x1p-5};  // every step rounds to bf16

constexpr OpRow rows[] = {
    {.name = "softmax",
     .fn = [](Args a, const Params& p) { return softmax(a[0], p.a); },
     .ref = [](const Arrays& a, const Params& p) { return reference::along(a[0], p.a, reference::soft_max); },
     .composite = [](Args a, const Params& p) { return exp(a[0] - logsumexp(a[0], {p.a}, true)); },
     .samples = {{{real(3, 4)}, {1}}, {{real(2, 3, 2)}, {-2}}, {{real(5)}, {0}}},
     .empty = {{real(0, 3)}, {1}},
     .large = {{real(1000, 301)}, {-1}},
     .errors = {{[] {
                   (void)softmax(zeros({2, 3}), 2);
                 },
                 "softmax: dim 2 is out of range for rank 2"},
                {[] { (void)softmax(zeros({2}, DType::i64), 0); }, "softmax: needs a floating dtype, got [2] i64"}},
     .bounds = fused},
    {.name = "log_softmax",
     .fn = [](Args a, const Params& p) { return log_softmax(a[0], p.a); },
     .ref =
         [](const Arrays& a, const Params& p) {
           return reference::along(a[0], p.a, [](reference::Line x) {
             const double lse = reference::log_sum_exp(x);
             for (double& v : x) v -= lse;
             return x;
           });
         },
     .composite = [](Args a, const Params& p) { return a[0] - logsumexp(a[0], {p.a}, true); },
     .samples = {{{real(3, 4)}, {1}}, {{real(2, 3, 2)}, {-2}}, {{real(5)}, {0}}},
     .empty = {{real(0, 3)}, {1}},
     .large = {{real(1000, 301)}, {-1}},
     .errors = {{[] {
                   (void)log_softmax(zeros({2, 3}), -3);
                 },
                 "log_softmax: dim -3 is out of range for rank 2"}},
     .bounds = fused},
    {.name = "softmax (x twice)",
     .formula = "y = x softmax(x)",
     .vjp = "g y/x + softmax(x) (g x − Σ g y)",
     .fn = [](Args a) { return softmax(a[0], -1) * a[0]; },
     .ref =
         [](const Arrays& a) {
           Array y = reference::along(a[0], -1, reference::soft_max);
           for (size_t i = 0; i < y.values.size(); ++i) y.values[i] *= a[0].values[i];
           return y;
         },
     .samples = {{{real(3, 4)}}},
     .empty = {{real(0, 3)}},
     .errors = {{[] { (void)softmax(zeros({}), 1); }, "softmax: dim 1 is out of range for rank 0"}},
     .bounds = composed},
    {.name = "log_softmax (x twice)",
     .formula = "y = x log_softmax(x)",
     .vjp = "g y/x + g x − softmax(x) Σ g x",
     .fn = [](Args a) { return log_softmax(a[0], -1) * a[0]; },
     .ref =
         [](const Arrays& a) {
           Array y = reference::along(a[0], -1, reference::soft_max);
           for (size_t i = 0; i < y.values.size(); ++i) y.values[i] = std::log(y.values[i]) * a[0].values[i];
           return y;
         },
     .samples = {{{real(3, 4)}}},
     .empty = {{real(0, 3)}},
     .errors = {{[] { (void)log_softmax(zeros({2}, DType::i64), 0); },
                 "log_softmax: needs a floating dtype, got [2] i64"}},
     .bounds = composed},
    {.name = "layer_norm",
     .fn = [](Args a) { return layer_norm(a[0], a[1], a[2], 1e-3); },
     .ref = [](const Arrays& a) { return reference::normalised(a, true, 1e-3); },
     .composite =
         [](Args a) {
           const Tensor d = a[0] - mean(a[0], {-1}, true);
           return d * rsqrt(mean(d * d, {-1}, true) + 1e-3) * a[1] + a[2];
         },
     .samples = {{{real(3, 4), real(4), real(4)}}, {{real(2, 2, 3), real(3), real(3)}}},
     .empty = {{real(0, 3), real(3), real(3)}},
     .large = {{real(1000, 256), real(256), real(256)}},
     .errors = {{[] {
                   (void)layer_norm(zeros({2, 3}), zeros({4}));
                 },
                 "layer_norm: weight is [4] f32, x is [2, 3] f32; weight must be [3]"},
                {[] { (void)layer_norm(zeros({})); },
                 "layer_norm: x is [] f32; it needs a last dim to normalise over"}},
     .bounds = fused},
    {.name = "layer_norm (no weight)",
     .fn = [](Args a) { return layer_norm(a[0], {}, {}, 1e-3); },
     .ref = [](const Arrays& a) { return reference::normalised(a, true, 1e-3); },
     .samples = {{{real(3, 4)}}, {{real(5)}}},
     .empty = {{real(0, 3)}},
     .large = {{real(1000, 256)}},
     .errors = {{[] {
                   (void)layer_norm(zeros({2, 3}), {}, {}, -1);
                 },
                 "layer_norm: eps is -1; it must be 0 or more"}},
     .bounds = fused},
    {.name = "layer_norm (no bias)",
     .fn = [](Args a) { return layer_norm(a[0], a[1], {}, 1e-3); },
     .ref = [](const Arrays& a) { return reference::normalised(a, true, 1e-3); },
     .samples = {{{real(3, 4), real(4)}}},
     .empty = {{real(0, 3), real(3)}},
     .errors = {{[] {
                   (void)layer_norm(zeros({2, 3}), zeros({3}, DType::f64));
                 },
                 "layer_norm: dtypes differ: x is [2, 3] f32, weight is [3] f64"}},
     .bounds = fused},
    {.name = "layer_norm (x twice)",
     .fn = [](Args a) { return layer_norm(a[0], 2 * a[0], a[0] * a[0], 1e-3); },
     .ref =
         [](const Arrays& a) {
           Arrays three = {a[0], a[0], a[0]};
           for (double& v : three[1].values) v *= 2;
           for (double& v : three[2].values) v *= v;
           return reference::normalised(three, true, 1e-3);
         },
     .samples = {{{real(5)}}},
     .empty = {{real(0)}},
     .errors = {{[] {
                   (void)layer_norm(zeros({2, 3}), zeros({3}), zeros({2}));
                 },
                 "layer_norm: bias is [2] f32, x is [2, 3] f32; bias must be [3]"}},
     .bounds = composed},
    {.name = "rms_norm",
     .fn = [](Args a) { return rms_norm(a[0], a[1], 1e-3); },
     .ref = [](const Arrays& a) { return reference::normalised(a, false, 1e-3); },
     .composite = [](Args a) { return a[0] * rsqrt(mean(a[0] * a[0], {-1}, true) + 1e-3) * a[1]; },
     .samples = {{{real(3, 4), real(4)}}, {{real(2, 2, 3), real(3)}}},
     .empty = {{real(0, 3), real(3)}},
     .large = {{real(1000, 256), real(256)}},
     .errors = {{[] {
                   (void)rms_norm(zeros({2, 3}), zeros({4}));
                 },
                 "rms_norm: weight is [4] f32, x is [2, 3] f32; weight must be [3]"}},
     .bounds = fused},
    {.name = "rms_norm (no weight)",
     .fn = [](Args a) { return rms_norm(a[0], {}, 1e-3); },
     .ref = [](const Arrays& a) { return reference::normalised(a, false, 1e-3); },
     .samples = {{{real(3, 4)}}},
     .empty = {{real(0, 3)}},
     .errors = {{[] { (void)rms_norm(zeros({})); }, "rms_norm: x is [] f32; it needs a last dim to normalise over"}},
     .bounds = fused},
    {.name = "rms_norm (x twice)",
     .fn = [](Args a) { return rms_norm(a[0], 2 * a[0], 1e-3); },
     .ref =
         [](const Arrays& a) {
           Arrays two = {a[0], a[0]};
           for (double& v : two[1].values) v *= 2;
           return reference::normalised(two, false, 1e-3);
         },
     .samples = {{{real(5)}}},
     .empty = {{real(0)}},
     .errors = {{[] {
                   (void)rms_norm(zeros({2, 3}), zeros({3}), -1);
                 },
                 "rms_norm: eps is -1; it must be 0 or more"}},
     .bounds = composed},
};

}  // namespace

std::span<const OpRow> norm_rows() { return rows; }

}  // namespace tapestry::op_table
