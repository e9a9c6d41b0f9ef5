// Rows of the products: matmul in all combinations of ranks, and linear.
#include "../../ops/ops.h"
#include "op_table.h"

namespace tapestry::op_table {
namespace {

Array transposed(const Array& w) {
  return reference::build({w.shape[1], w.shape[0]}, [&](const Dims& i) { return w({i[1], i[0]}); });
}

Array linear_of(const Arrays& a) {
  Array y = reference::matmul(a[0], transposed(a[1]));
  if (a.size() > 2) reference::for_each(y.shape, [&](const Dims& i) { y(i) += a[2]({i[i.rank() - 1]}); });
  return y;
}

// Sums of products: what f32 and bf16 lose grows with the root of the length.
constexpr Bounds product_bounds = {1e-12, 4e-6, 0x1p-8};

constexpr OpRow rows[] = {
    {.name = "matmul",
     .fn = [](Args a) { return matmul(a[0], a[1]); },
     .ref = [](const Arrays& a) { return reference::matmul(a[0], a[1]); },
     .samples = {{{real(3, 4), real(4, 2)}},
                 {{real(2, 3, 4), real(2, 4, 2)}},
                 {{real(3, 1), real(1, 3)}},
                 {{real(1, 1), real(1, 1)}}},
     .empty = {{real(0, 4), real(4, 2)}},
     .large = {{real(512, 256), real(256, 300)}},
     .errors = {{[] {
                   (void)matmul(zeros({2, 3}), zeros({4, 5}));
                 },
                 "matmul: inner dimensions differ: a is [2, 3] f32, b is [4, 5] f32 (a.size(-1) = 3, b.size(-2) = 4)"},
                {[] {
                   (void)matmul(zeros({2, 3}), zeros({3, 5}, DType::f64));
                 },
                 "matmul: dtypes differ: a is [2, 3] f32, b is [3, 5] f64; convert with to(x, DType::"},
                {[] {
                   (void)matmul(zeros({2, 3}), zeros({}));
                 },
                 "matmul: a single number is no matrix: a is [2, 3] f32, b is [] f32; use a * b"}},
     .bounds = product_bounds,
     .i64 = true},
    {.name = "matmul (ranks)",
     .fn = [](Args a) { return matmul(a[0], a[1]); },
     .ref = [](const Arrays& a) { return reference::matmul(a[0], a[1]); },
     .samples = {{{real(4), real(4)}},
                 {{real(4), real(4, 3)}},
                 {{real(3, 4), real(4)}},
                 {{real(2, 1, 3, 2), real(3, 2, 2)}},
                 {{real(2, 2, 3), real(3, 2)}},
                 {{real(3), real(2, 3, 2)}}},
     .empty = {{real(3, 0), real(0, 2)}},
     .large = {{real(64, 32, 48), real(48, 40)}},
     .errors = {{[] {
                   (void)matmul(zeros({2, 2, 3}), zeros({3, 3, 2}));
                 },
                 "matmul: batch dimensions do not broadcast: a is [2, 2, 3] f32, b is [3, 3, 2] f32"},
                {[] {
                   (void)matmul(zeros({2, 2}, DType::boolean), zeros({2, 2}, DType::boolean));
                 },
                 "matmul: bool has no product"}},
     .bounds = product_bounds,
     .i64 = true},
    {.name = "linear",
     .fn = [](Args a) { return linear(a[0], a[1], a[2]); },
     .ref = [](const Arrays& a) { return linear_of(a); },
     .composite = [](Args a) { return matmul(a[0], mT(a[1])) + a[2]; },
     .samples = {{{real(3, 4), real(2, 4), real(2)}},
                 {{real(2, 2, 3), real(2, 3), real(2)}},
                 {{real(3), real(2, 3), real(2)}}},
     .empty = {{real(0, 3), real(2, 3), real(2)}},
     .large = {{real(512, 128), real(300, 128), real(300)}},
     .errors = {{[] {
                   (void)linear(zeros({2, 3}), zeros({5, 4}));
                 },
                 "linear: inner dimensions differ: x is [2, 3] f32, weight is [5, 4] f32 (x.size(-1) = 3, "
                 "weight.size(1) = 4)"},
                {[] {
                   (void)linear(zeros({2, 3}), zeros({5, 3}), zeros({4}));
                 },
                 "linear: bias is [4] f32, weight is [5, 3] f32; bias must be [5]"},
                {[] {
                   (void)linear(zeros({2, 3}), zeros({5, 3}, DType::bf16));
                 },
                 "linear: dtypes differ: x is [2, 3] f32, weight is [5, 3] bf16"}},
     .bounds = product_bounds},
    {.name = "linear (no bias)",
     .fn = [](Args a) { return linear(a[0], a[1]); },
     .ref = [](const Arrays& a) { return linear_of(a); },
     .composite = [](Args a) { return matmul(a[0], mT(a[1])); },
     .samples = {{{real(3, 4), real(2, 4)}}, {{real(2, 2, 3), real(2, 3)}}},
     .empty = {{real(0, 3), real(2, 3)}},
     .large = {{real(512, 128), real(300, 128)}},
     .errors = {{[] {
                   (void)linear(zeros({2, 3}), zeros({3}));
                 },
                 "linear: x is [2, 3] f32, weight is [3] f32; x needs a last dim, weight must be (out, in)"}},
     .bounds = product_bounds},
    {.name = "linear (x twice)",
     .formula = "y = x xᵀ",
     .vjp = "g x + gᵀ x",
     .fn = [](Args a) { return linear(a[0], 2.0 * a[0]); },
     .ref =
         [](const Arrays& a) {
           Arrays two = {a[0], a[0]};
           for (double& v : two[1].values) v *= 2;
           return linear_of(two);
         },
     .samples = {{{real(3, 4)}}},
     .empty = {{real(3, 0)}},
     .errors = {{[] {
                   (void)linear(zeros({}), zeros({1, 1}));
                 },
                 "linear: x is [] f32, weight is [1, 1] f32"}},
     .bounds = product_bounds},
};

}  // namespace

std::span<const OpRow> matmul_rows() { return rows; }

}  // namespace tapestry::op_table
