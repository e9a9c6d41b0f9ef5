// Rows of the convolutions. Attributes are stride, padding, dilation and groups; two digits are rows and columns.
// Next: pool_rows.cpp.
#include "../../ops/ops.h"
#include "conv_reference.h"
#include "op_table.h"

namespace tapestry::op_table {
namespace {

constexpr Bounds summed = {1e-12, 4e-6, 0x1p-7};

Pair pair(int64_t both) { return {reference::digit(both, 0), reference::digit(both, 1)}; }

/// Options of two dims; of one, where every number is the second digit.
ConvOptions options(const Params& p, bool line, int64_t output_padding = 0) {
  const auto of = [&](int64_t both) { return line ? Pair(reference::digit(both, 1)) : pair(both); };
  return {of(p.a), of(p.b), of(p.c), p.d, of(output_padding)};
}

Tensor bias_of(Args a) { return a.size() > 2 ? a[2] : Tensor{}; }

/// A transposed convolution of the op table always asks for one more row or column, where the stride allows it.
int64_t padding_for(const Params& p) { return p.a == 22 ? 11 : 0; }

Array convolution(const Arrays& a, const Params& p) { return reference::convolved(a, {p.a, p.b, p.c, p.d}, false); }
Array transposed(const Arrays& a, const Params& p) {
  return reference::convolved(a, {p.a, p.b, p.c, p.d}, true, padding_for(p));
}

constexpr OpRow rows[] = {
    {.name = "conv1d",
     .fn = [](Args a, const Params& p) { return conv1d(a[0], a[1], bias_of(a), options(p, true)); },
     .ref = [](const Arrays& a, const Params& p) { return convolution(a, p); },
     .samples = {{{real(2, 2, 7), real(3, 2, 3), real(3)}, {1, 0, 1, 1}},
                 {{real(2, 4, 8), real(6, 2, 3), real(6)}, {2, 1, 1, 2}},
                 {{real(1, 1, 3), real(2, 1, 5)}, {1, 2, 1, 1}},
                 {{real(1, 2, 9), real(1, 2, 3)}, {3, 2, 2, 1}}},
     .empty = {{real(0, 2, 7), real(3, 2, 3), real(3)}, {1, 0, 1, 1}},
     .errors = {{[] {
                   (void)conv1d(zeros({2, 3, 4, 4}), zeros({2, 3, 3, 3}));
                 },
                 "conv1d: x is [2, 3, 4, 4] f32, weight is [2, 3, 3, 3] f32; both must have rank 3: x (B, C, L), "
                 "weight (out, C/groups, K)"},
                {[] {
                   (void)conv1d(zeros({2, 3, 4}), zeros({2, 3, 3}), zeros({3}));
                 },
                 "conv1d: bias is [3] f32, weight [2, 3, 3] with groups 1 gives 2 channels; bias must be [2]"},
                {[] {
                   (void)conv1d(zeros({2, 3, 4}), zeros({2, 3, 3}), {}, {.stride = 0});
                 },
                 "conv1d: stride is 0; it must be at least 1"}},
     .bounds = summed},
    {.name = "conv2d",
     .fn = [](Args a, const Params& p) { return conv2d(a[0], a[1], bias_of(a), options(p, false)); },
     .ref = [](const Arrays& a, const Params& p) { return convolution(a, p); },
     .samples = {{{real(2, 2, 4, 5), real(3, 2, 3, 2), real(3)}, {11, 0, 11, 1}},
                 {{real(1, 2, 5, 4), real(2, 2, 3, 3), real(2)}, {21, 12, 11, 1}},
                 {{real(2, 4, 4, 3), real(4, 1, 2, 3), real(4)}, {11, 11, 12, 4}},
                 {{real(1, 1, 2, 3), real(1, 1, 3, 5)}, {12, 12, 11, 1}},
                 {{real(2, 2, 5, 5), real(2, 2, 2, 2)}, {23, 11, 22, 1}},
                 {{real(2, 3, 2, 3), real(4, 3, 1, 1), real(4)}, {11, 0, 11, 1}}},
     .empty = {{real(0, 2, 4, 5), real(3, 2, 3, 2), real(3)}, {11, 0, 11, 1}},
     .large = {{real(64, 6, 14, 14), real(16, 6, 5, 5), real(16)}, {11, 0, 11, 1}},
     .errors = {{[] {
                   (void)conv2d(zeros({2, 3, 5, 5}), zeros({8, 4, 3, 3}));
                 },
                 "conv2d: x has 3 channels, weight [8, 4, 3, 3] with groups 1 wants 4; x is [2, 3, 5, 5] f32"},
                {[] {
                   (void)conv2d(zeros({2, 4, 5, 5}), zeros({8, 4, 3, 7}));
                 },
                 "conv2d: nothing is left along dim 3: x is [2, 4, 5, 5] f32, weight [8, 4, 3, 7] spans 7 there, "
                 "padding 0, stride 1"},
                {[] {
                   (void)conv2d(zeros({2, 4, 5, 5}), zeros({8, 4, 3, 3}, DType::f64));
                 },
                 "conv2d: dtypes differ: x is [2, 4, 5, 5] f32, weight is [8, 4, 3, 3] f64"}},
     .bounds = summed},
    {.name = "conv2d (x twice)",
     .formula = "y = x ⋆ (2x)",
     .vjp = "of both operands",
     .fn = [](Args a) { return conv2d(a[0], 2 * a[0], {}, {.padding = 1}); },
     .ref =
         [](const Arrays& a) {
           Arrays two = {a[0], a[0]};
           for (double& v : two[1].values) v *= 2;
           return reference::convolved(two, {11, 11, 11, 1}, false);
         },
     .samples = {{{real(2, 2, 3, 3)}}},
     .empty = {{real(0, 2, 3, 3)}},
     .errors = {{[] {
                   (void)conv2d(zeros({2, 4, 5, 5}), zeros({3, 2, 3, 3}), {}, {.groups = 2});
                 },
                 "conv2d: weight [3, 2, 3, 3] does not fall into 2 groups (3 channels)"},
                {[] {
                   (void)conv2d(zeros({2, 4, 5, 5}), zeros({3, 4, 3, 3}), {}, {.output_padding = 1});
                 },
                 "conv2d: output_padding is for conv_transpose2d; leave it 0"}},
     .bounds = summed},
    {.name = "conv_transpose1d",
     .fn = [](Args a,
              const Params& p) { return conv_transpose1d(a[0], a[1], bias_of(a), options(p, true, padding_for(p))); },
     .ref = [](const Arrays& a, const Params& p) { return transposed(a, p); },
     .samples = {{{real(2, 2, 4), real(2, 3, 3), real(3)}, {1, 0, 1, 1}},
                 {{real(1, 4, 4), real(4, 1, 3), real(2)}, {22, 1, 1, 2}},
                 {{real(2, 1, 3), real(1, 2, 2)}, {3, 1, 2, 1}}},
     .empty = {{real(0, 2, 4), real(2, 3, 3), real(3)}, {1, 0, 1, 1}},
     .errors = {{[] {
                   (void)conv_transpose1d(zeros({2, 3, 4}), zeros({2, 3, 3}));
                 },
                 "conv_transpose1d: x has 3 channels, weight [2, 3, 3] with groups 1 wants 2; x is [2, 3, 4] f32"},
                {[] {
                   (void)conv_transpose1d(zeros({2, 2, 1}), zeros({2, 3, 3}), {}, {.padding = 2});
                 },
                 "conv_transpose1d: nothing is left along dim 2: x is [2, 2, 1] f32, weight [2, 3, 3] spans 3 there, "
                 "padding 2, stride 1"}},
     .bounds = summed},
    {.name = "conv_transpose2d",
     .fn = [](Args a,
              const Params& p) { return conv_transpose2d(a[0], a[1], bias_of(a), options(p, false, padding_for(p))); },
     .ref = [](const Arrays& a, const Params& p) { return transposed(a, p); },
     .samples = {{{real(2, 2, 3, 4), real(2, 3, 3, 2), real(3)}, {11, 0, 11, 1}},
                 {{real(1, 2, 3, 2), real(2, 2, 3, 3), real(2)}, {22, 11, 11, 1}},
                 {{real(2, 4, 3, 3), real(4, 1, 2, 3), real(4)}, {21, 11, 12, 4}},
                 {{real(2, 3, 2, 3), real(3, 4, 1, 1), real(4)}, {11, 0, 11, 1}}},
     .empty = {{real(0, 2, 3, 4), real(2, 3, 3, 2), real(3)}, {11, 0, 11, 1}},
     .large = {{real(64, 16, 10, 10), real(16, 6, 5, 5), real(6)}, {11, 0, 11, 1}},
     .errors =
         {{[] {
             (void)conv_transpose2d(zeros({2, 2, 3, 3}), zeros({2, 3, 3, 3}), {}, {.output_padding = 1});
           },
           "conv_transpose2d: output_padding 1 must be less than stride 1 or dilation 1"},
          {[] {
             (void)conv_transpose2d(zeros({2, 2, 3}), zeros({2, 3, 3}));
           },
           "conv_transpose2d: x is [2, 2, 3] f32, weight is [2, 3, 3] f32; both must have rank 4: x (B, C, H, W), "
           "weight (C, out/groups, Kh, Kw)"}},
     .bounds = summed},
};

}  // namespace

std::span<const OpRow> conv_rows() { return rows; }

}  // namespace tapestry::op_table
