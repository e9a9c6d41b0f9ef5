// Rows of batch, group and instance norm.
// Not norms over the last dim (norm_rows.cpp).
#include "../../ops/ops.h"
#include "op_table.h"

namespace tapestry::op_table {
namespace {

constexpr Bounds fused = {1e-12, 4e-6, 0x1p-7};
constexpr Bounds composed = {1e-12, 8e-6, 0x1p-4};  // every step rounds to bf16, squares of x among them
constexpr double eps = 1e-3;

/// x̂ w + b with x̂ by the moments of the elements for which same(i, j) holds.
template <class F>
Array normalised(const Arrays& a, F&& same) {
  const Array& x = a[0];
  return reference::build(x.shape, [&](const Dims& i) {
    double n = 0, mean = 0, square = 0;
    reference::for_each(x.shape, [&](const Dims& j) {
      if (same(i, j)) n += 1, mean += x(j);
    });
    mean /= n;
    reference::for_each(x.shape, [&](const Dims& j) {
      if (same(i, j)) square += (x(j) - mean) * (x(j) - mean);
    });
    const double w = a.size() > 1 && !a[1].values.empty() ? a[1]({i[1]}) : 1;
    const double b = a.size() > 2 && !a[2].values.empty() ? a[2]({i[1]}) : 0;
    return (x(i) - mean) / std::sqrt(square / n + eps) * w + b;
  });
}
Array over_batch(const Arrays& a) {
  return normalised(a, [](const Dims& i, const Dims& j) { return i[1] == j[1]; });
}
Array over_groups(const Arrays& a, int64_t groups) {
  const int64_t width = a[0].shape[1] / groups;
  return normalised(a, [&](const Dims& i, const Dims& j) { return i[0] == j[0] && i[1] / width == j[1] / width; });
}

Tensor along_channels(const Tensor& p, const Tensor& x) {
  Shape shape{x.size(1)};
  for (int d = 2; d < x.dim(); ++d) shape.push_back(1);
  return reshape(p, shape);
}
/// The definition.
Tensor plain(const Tensor& x, const Dims& dims) {
  const Tensor d = x - mean(x, dims, true);
  return d / sqrt(mean(d * d, dims, true) + eps);
}
Tensor plain_batch(Args a) {
  const Tensor hat = plain(a[0], a[0].dim() == 2 ? Dims{0} : a[0].dim() == 3 ? Dims{0, 2} : Dims{0, 2, 3});
  return hat * along_channels(a[1], hat) + along_channels(a[2], hat);
}
Tensor plain_groups(Args a, int64_t groups) {
  const Tensor hat = reshape(plain(reshape(a[0], {a[0].size(0), groups, -1}), {2}), a[0].shape());
  return hat * along_channels(a[1], hat) + along_channels(a[2], hat);
}

constexpr BatchNormOptions training = {.training = true, .eps = eps}, evaluation = {.eps = eps};

constexpr OpRow rows[] = {
    {.name = "batch_norm",
     .fn = [](Args a) { return batch_norm(a[0], {}, {}, a[1], a[2], training); },
     .ref = [](const Arrays& a) { return over_batch(a); },
     .composite = [](Args a) { return plain_batch(a); },
     .samples = {{{real(3, 2, 2, 3), real(2), real(2)}},
                 {{real(4, 3), real(3), real(3)}},
                 {{real(2, 3, 2), real(3), real(3)}}},
     .empty = {{real(0, 2, 3), real(2), real(2)}},
     .large = {{real(64, 16, 14, 14), real(16), real(16)}},
     .errors = {{[] {
                   (void)batch_norm(zeros({1, 3}), {}, {}, {}, {}, training);
                 },
                 "batch_norm: expected more than 1 value per channel when training, x is [1, 3] f32"},
                {[] {
                   (void)batch_norm(zeros({2, 3}), {}, {}, zeros({2}), {}, training);
                 },
                 "batch_norm: weight is [2] f32, x is [2, 3] f32; weight must be [3]"},
                {[] { (void)batch_norm(zeros({2}), {}, {}, {}, {}, training); },
                 "batch_norm: x is [2] f32; it must be (B, C, ...)"}},
     .bounds = fused},
    {.name = "batch_norm (evaluation)",
     .formula = "y = (x − running_mean)/√(running_var + ε) w + b",
     .vjp = "dx = g w/√(running_var + ε), dw = Σ g x̂, db = Σ g",
     .fn = [](Args a) { return batch_norm(a[0], a[3], square(a[3]) + 0.5, a[1], a[2], evaluation); },
     .ref =
         [](const Arrays& a) {
           return reference::build(a[0].shape, [&](const Dims& i) {
             const Dims c = {i[1]};
             return (a[0](i) - a[3](c)) / std::sqrt(a[3](c) * a[3](c) + 0.5 + eps) * a[1](c) + a[2](c);
           });
         },
     .composite =
         [](Args a) {
           const Tensor m = along_channels(a[3], a[0]);
           return (a[0] - m) / sqrt(m * m + 0.5 + eps) * along_channels(a[1], a[0]) + along_channels(a[2], a[0]);
         },
     .samples = {{{real(3, 2, 2, 3), real(2), real(2), constant(2)}}, {{real(4, 3), real(3), real(3), constant(3)}}},
     .empty = {{real(0, 2, 3), real(2), real(2), constant(2)}},
     .errors = {{[] {
                   (void)batch_norm(zeros({2, 3}), {}, {});
                 },
                 "batch_norm: running_mean is undefined; it is needed unless training is true (x is [2, 3] f32)"},
                {[] {
                   (void)batch_norm(zeros({2, 3}), zeros({3}), zeros({2}));
                 },
                 "batch_norm: running_var is [2] f32, x is [2, 3] f32; running_var must be [3]"},
                {[] {
                   (void)batch_norm(zeros({2, 3}), zeros({3}).requires_grad_(), zeros({3}));
                 },
                 "batch_norm: running_mean requires a gradient, but running statistics have none"}},
     .bounds = composed},
    {.name = "batch_norm (x twice)",
     .fn = [](Args a) { return batch_norm(a[0], {}, {}, select(a[0], 0, 0), select(a[0] * a[0], 0, 1), training); },
     .ref =
         [](const Arrays& a) {
           const int64_t c = a[0].shape[1];
           Arrays three = {a[0], {{c}, {}}, {{c}, {}}};
           for (int64_t i = 0; i < c; ++i) {
             three[1].values.push_back(a[0]({0, i}));
             three[2].values.push_back(a[0]({1, i}) * a[0]({1, i}));
           }
           return over_batch(three);
         },
     .samples = {{{real(3, 4)}}},
     .empty = {{real(2, 0)}},
     .errors = {{[] {
                   (void)batch_norm(zeros({2, 3}), zeros({3}), {}, {}, {}, training);
                 },
                 "batch_norm: running_mean and running_var belong together; give both or neither"},
                {[] {
                   (void)batch_norm(zeros({2, 3}), {}, {}, {}, {}, {.training = true, .momentum = 2});
                 },
                 "batch_norm: momentum is 2; it must be in [0, 1]"}},
     .bounds = composed},
    {.name = "group_norm",
     .fn = [](Args a, const Params& p) { return group_norm(a[0], p.a, a[1], a[2], eps); },
     .ref = [](const Arrays& a, const Params& p) { return over_groups(a, p.a); },
     .composite = [](Args a, const Params& p) { return plain_groups(a, p.a); },
     .samples = {{{real(2, 4, 2, 3), real(4), real(4)}, {2}},
                 {{real(2, 6), real(6), real(6)}, {2}},
                 {{real(2, 3, 5), real(3), real(3)}, {1}}},
     .empty = {{real(0, 4, 3), real(4), real(4)}, {2}},
     .large = {{real(64, 16, 14, 14), real(16), real(16)}, {4}},
     .errors = {{[] {
                   (void)group_norm(zeros({2, 4, 3}), 3);
                 },
                 "group_norm: 3 groups do not divide the 4 channels of x [2, 4, 3] f32"},
                {[] {
                   (void)group_norm(zeros({2, 4, 3}), 2, zeros({4}), zeros({4}, DType::f64));
                 },
                 "group_norm: dtypes differ: x is [2, 4, 3] f32, bias is [4] f64"}},
     .bounds = fused},
    {.name = "group_norm (x twice)",
     .fn = [](Args a) { return group_norm(a[0], 2, select(a[0], 0, 0), select(a[0] * a[0], 0, 1), eps); },
     .ref =
         [](const Arrays& a) {
           const int64_t c = a[0].shape[1];
           Arrays three = {a[0], {{c}, {}}, {{c}, {}}};
           for (int64_t i = 0; i < c; ++i) {
             three[1].values.push_back(a[0]({0, i}));
             three[2].values.push_back(a[0]({1, i}) * a[0]({1, i}));
           }
           return over_groups(three, 2);
         },
     .samples = {{{real(2, 6)}}},
     .empty = {{real(2, 0)}},
     .errors = {{[] {
                   (void)group_norm(zeros({2, 4, 3}), 2, {}, {}, -1);
                 },
                 "group_norm: eps is -1; it must be 0 or more"}},
     .bounds = composed},
    {.name = "instance_norm",
     .fn = [](Args a) { return instance_norm(a[0], a[1], a[2], eps); },
     .ref = [](const Arrays& a) { return over_groups(a, a[0].shape[1]); },
     .composite = [](Args a) { return plain_groups(a, a[0].size(1)); },
     .samples = {{{real(2, 3, 2, 3), real(3), real(3)}}, {{real(2, 2, 5), real(2), real(2)}}},
     .empty = {{real(0, 3, 4), real(3), real(3)}},
     .errors = {{[] { (void)instance_norm(zeros({3})); }, "instance_norm: x is [3] f32; it must be (B, C, ...)"}},
     .bounds = fused},
};

}  // namespace

std::span<const OpRow> channel_norm_rows() { return rows; }

}  // namespace tapestry::op_table
