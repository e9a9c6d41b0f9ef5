// Rows of pooling and resizing. Attributes are window, stride and padding (two digits: rows and columns) and flags.
// Next: channel_norm_rows.cpp.
#include "../../ops/ops.h"
#include "conv_reference.h"
#include "op_table.h"

namespace tapestry::op_table {
namespace {

using reference::digit;

constexpr Bounds averaged = {1e-14, 1e-6, 0x1p-8};
constexpr int64_t ceil_mode = 1, exclude_padding = 2, dilated = 4;  // bits of p.d

PoolOptions options(const Params& p, bool line) {
  const auto of = [&](int64_t both) { return line ? Pair(digit(both, 1)) : Pair(digit(both, 0), digit(both, 1)); };
  PoolOptions o;
  o.stride = of(p.b);
  o.padding = of(p.c);
  o.dilation = (p.d & dilated) != 0 ? 2 : 1;
  o.count_include_pad = (p.d & exclude_padding) == 0;
  o.ceil_mode = (p.d & ceil_mode) != 0;
  return o;
}

Array pooled(const Arrays& a, const Params& p, bool mean) {
  const reference::Window window{p.b, p.c, (p.d & dilated) != 0 ? 22 : 11, 1};
  return reference::pooled(a[0], p.a, window, (p.d & ceil_mode) != 0,
                           [&](const std::vector<double>& inside, double padded) {
                             if (!mean) return reference::largest(inside);
                             const bool all = (p.d & exclude_padding) == 0;
                             return reference::total(inside) / (all ? padded : static_cast<double>(inside.size()));
                           });
}

Array adaptive(const Arrays& a, const Params& p, bool mean) {
  return reference::adaptively_pooled(a[0], digit(p.a, 0), digit(p.a, 1), [&](const std::vector<double>& inside) {
    return mean ? reference::total(inside) / static_cast<double>(inside.size()) : reference::largest(inside);
  });
}

constexpr OpRow rows[] = {
    {.name = "max_pool1d",
     .fn = [](Args a, const Params& p) { return max_pool1d(a[0], p.a, options(p, true)); },
     .ref = [](const Arrays& a, const Params& p) { return pooled(a, p, false); },
     .samples = {{{real(2, 2, 7)}, {2, 2, 0, 0}},
                 {{real(1, 2, 8)}, {3, 2, 1, ceil_mode}},
                 {{real(1, 1, 7)}, {3, 1, 1, dilated}},
                 {{real(1, 1, 4)}, {2, 3, 1, ceil_mode}},
                 {{real(1, 2, 2)}, {5, 1, 2, 0}}},
     .empty = {{real(0, 2, 7)}, {2, 2, 0, 0}},
     .errors = {{[] {
                   (void)max_pool1d(zeros({2, 3, 4, 4}), 2);
                 },
                 "max_pool1d: x is [2, 3, 4, 4] f32; it must be (B, C, L)"},
                {[] {
                   (void)max_pool1d(zeros({2, 3, 4}), 2, {.padding = 2});
                 },
                 "max_pool1d: padding 2 must be at least 0 and at most half the window of 2"}}},
    {.name = "max_pool2d",
     .fn =
         [](Args a, const Params& p) {
           return max_pool2d(a[0], {digit(p.a, 0), digit(p.a, 1)}, options(p, false));
         },
     .ref = [](const Arrays& a, const Params& p) { return pooled(a, p, false); },
     .samples = {{{real(2, 2, 4, 6)}, {22, 22, 0, 0}},
                 {{real(1, 2, 5, 4)}, {32, 21, 11, 0}},
                 {{real(1, 1, 5, 6)}, {23, 22, 1, ceil_mode}},
                 {{real(1, 2, 5, 5)}, {22, 12, 11, dilated}}},
     .empty = {{real(0, 2, 4, 6)}, {22, 22, 0, 0}},
     .large = {{real(64, 6, 28, 28)}, {22, 22, 0, 0}},
     .errors = {{[] {
                   (void)max_pool2d(zeros({2, 3, 4, 4}), {2, 5});
                 },
                 "max_pool2d: no window fits along dim 3 of x [2, 3, 4, 4] f32: window 5, padding 0, dilation 1"},
                {[] {
                   (void)max_pool2d(zeros({2, 3, 1, 1}), 2, {.padding = 1, .dilation = 2});
                 },
                 "max_pool2d: window 0 along dim 2 of x [2, 3, 1, 1] f32 holds padding only"},
                {[] {
                   (void)max_pool2d(zeros({2, 3, 4, 4}, DType::i64), 2);
                 },
                 "max_pool2d: needs a floating dtype, got [2, 3, 4, 4] i64"}}},
    {.name = "avg_pool1d",
     .fn = [](Args a, const Params& p) { return avg_pool1d(a[0], p.a, options(p, true)); },
     .ref = [](const Arrays& a, const Params& p) { return pooled(a, p, true); },
     .samples = {{{real(2, 2, 7)}, {2, 2, 0, 0}},
                 {{real(1, 2, 8)}, {3, 2, 1, ceil_mode}},
                 {{real(1, 1, 7)}, {3, 4, 1, exclude_padding}},
                 {{real(1, 1, 4)}, {2, 3, 1, ceil_mode}}},
     .empty = {{real(0, 2, 7)}, {2, 2, 0, 0}},
     .errors = {{[] {
                   (void)avg_pool1d(zeros({2, 3}), 2);
                 },
                 "avg_pool1d: x is [2, 3] f32; it must be (B, C, L)"},
                {[] {
                   (void)avg_pool1d(zeros({2, 3, 4}), 2, {.dilation = 2});
                 },
                 "avg_pool1d: dilation is for max pooling; leave it 1"}},
     .bounds = averaged},
    {.name = "avg_pool2d",
     .fn =
         [](Args a, const Params& p) {
           return avg_pool2d(a[0], {digit(p.a, 0), digit(p.a, 1)}, options(p, false));
         },
     .ref = [](const Arrays& a, const Params& p) { return pooled(a, p, true); },
     .samples = {{{real(2, 2, 4, 6)}, {22, 22, 0, 0}},
                 {{real(1, 2, 5, 4)}, {32, 21, 11, 0}},
                 {{real(1, 1, 5, 6)}, {23, 22, 1, ceil_mode}},
                 {{real(1, 1, 5, 6)}, {33, 22, 11, ceil_mode + exclude_padding}},
                 {{real(1, 1, 5, 6)}, {12, 23, 0, 0}}},
     .empty = {{real(0, 2, 4, 6)}, {22, 22, 0, 0}},
     .large = {{real(64, 6, 28, 28)}, {22, 22, 0, 0}},
     .errors = {{[] {
                   (void)avg_pool2d(zeros({2, 3, 4, 4}), 2, {.stride = Pair(0)});
                 },
                 "avg_pool2d: window 2, stride 0 and dilation 1 must be at least 1"}},
     .bounds = averaged},
    {.name = "adaptive_avg_pool1d",
     .fn = [](Args a, const Params& p) { return adaptive_avg_pool1d(a[0], p.a); },
     .ref = [](const Arrays& a, const Params& p) { return adaptive(a, p, true); },
     .samples = {{{real(2, 2, 7)}, {3}}, {{real(1, 1, 3)}, {5}}, {{real(1, 2, 300)}, {1}}},
     .empty = {{real(0, 2, 7)}, {3}},
     .errors = {{[] {
                   (void)adaptive_avg_pool1d(zeros({2, 3, 4}), 0);
                 },
                 "adaptive_avg_pool1d: dim 2 of x [2, 3, 4] f32 cannot be pooled to 0; both must be at least 1"}},
     .bounds = averaged},
    {.name = "adaptive_avg_pool2d",
     .fn =
         [](Args a, const Params& p) {
           return adaptive_avg_pool2d(a[0], {digit(p.a, 0), digit(p.a, 1)});
         },
     .ref = [](const Arrays& a, const Params& p) { return adaptive(a, p, true); },
     .samples = {{{real(2, 2, 4, 5)}, {23}}, {{real(1, 1, 3, 7)}, {11}}},
     .empty = {{real(0, 2, 4, 5)}, {23}},
     .errors = {{[] {
                   (void)adaptive_avg_pool2d(zeros({2, 3, 0, 4}), 2);
                 },
                 "adaptive_avg_pool2d: dim 2 of x [2, 3, 0, 4] f32 cannot be pooled to 2; both must be at least 1"}},
     .bounds = averaged},
    {.name = "adaptive_max_pool1d",
     .fn = [](Args a, const Params& p) { return adaptive_max_pool1d(a[0], p.a); },
     .ref = [](const Arrays& a, const Params& p) { return adaptive(a, p, false); },
     .samples = {{{real(2, 2, 7)}, {3}}, {{real(1, 1, 3)}, {5}}},
     .empty = {{real(0, 2, 7)}, {3}},
     .errors = {{[] {
                   (void)adaptive_max_pool1d(zeros({2, 3}), 1);
                 },
                 "adaptive_max_pool1d: x is [2, 3] f32; it must be (B, C, L)"}}},
    {.name = "adaptive_max_pool2d",
     .fn =
         [](Args a, const Params& p) {
           return adaptive_max_pool2d(a[0], {digit(p.a, 0), digit(p.a, 1)});
         },
     .ref = [](const Arrays& a, const Params& p) { return adaptive(a, p, false); },
     .samples = {{{real(2, 2, 4, 5)}, {23}}, {{real(1, 1, 3, 7)}, {11}}},
     .empty = {{real(0, 2, 4, 5)}, {23}},
     .errors = {{[] {
                   (void)adaptive_max_pool2d(zeros({2, 3, 4}), 1);
                 },
                 "adaptive_max_pool2d: x is [2, 3, 4] f32; it must be (B, C, H, W)"}}},
    {.name = "interpolate",
     .fn =
         [](Args a, const Params& p) {
           const Pair size = a[0].dim() == 3 ? Pair(p.b) : Pair(p.a, p.b);
           return interpolate(a[0], size, p.c == 0 ? Interpolation::nearest : Interpolation::bilinear, p.c == 2);
         },
     .ref = [](const Arrays& a, const Params& p) { return reference::resized(a[0], p.a, p.b, p.c); },
     .samples = {{{real(2, 2, 3, 4)}, {6, 7, 1}},
                 {{real(1, 2, 3, 4)}, {6, 8, 0}},
                 {{real(1, 1, 5, 4)}, {3, 9, 2}},
                 {{real(1, 1, 5, 7)}, {2, 3, 0}},
                 {{real(1, 2, 5)}, {0, 3, 1}},
                 {{real(1, 2, 4)}, {0, 7, 2}}},
     .empty = {{real(0, 2, 3, 4)}, {6, 7, 1}},
     .large = {{real(16, 6, 14, 14)}, {28, 28, 1}},
     .errors = {{[] {
                   (void)interpolate(zeros({2, 3, 4}), 0);
                 },
                 "interpolate: dim 2 of x [2, 3, 4] f32 cannot become 0; both must be at least 1"},
                {[] {
                   (void)interpolate(zeros({2, 3}), 2);
                 },
                 "interpolate: x is [2, 3] f32; it must be (B, C, L) or (B, C, H, W)"},
                {[] {
                   (void)interpolate(zeros({2, 3, 4}), 2, Interpolation::nearest, true);
                 },
                 "interpolate: align_corners is for Interpolation::bilinear"}},
     .bounds = averaged},
};

}  // namespace

std::span<const OpRow> pool_rows() { return rows; }

}  // namespace tapestry::op_table
