// Rows of splitting, joining, copies and padding.
#include "../../ops/ops.h"
#include "op_table.h"

namespace tapestry::op_table {
namespace {

using reference::build;
using reference::permuted;
using reference::piece;

Array joined(const Arrays& xs, int dim) {
  Shape shape = xs[0].shape;
  shape[dim] = 0;
  for (const Array& x : xs) shape[dim] += x.shape[dim];
  return build(shape, [&](Dims i) {
    size_t k = 0;
    while (i[dim] >= xs[k].shape[dim]) i[dim] -= xs[k++].shape[dim];
    return xs[k](i);
  });
}

Arrays unsqueezed(Arrays xs, int dim) {
  for (Array& x : xs) x.shape.insert(dim, 1);
  return xs;
}

constexpr OpRow rows[] = {
    {.name = "split",
     .fn = [](Args a, const Params& p) { return split(a[0], p.a, p.b); },
     .ref =
         [](const Arrays& a, const Params& p) {
           Arrays ys;
           const int dim = reference::wrap(p.b, a[0].shape.rank());
           for (int64_t at = 0; at < a[0].shape[dim]; at += p.a)
             ys.push_back(piece(a[0], dim, at, std::min(p.a, a[0].shape[dim] - at)));
           return ys;
         },
     .samples = {{{real(5, 2)}, {2, 0}}, {{real(2, 4)}, {2, -1}}, {{real(2, 4)}, {9, 1}}},
     .empty = {{real(0, 4)}, {2, 1}},
     .errors = {{[] { (void)split(zeros({4}), 0); }, "split: pieces of size 0 along dim 0 of [4] f32"}},
     .i64 = true},
    {.name = "split (sizes)",
     .fn =
         [](Args a, const Params& p) {
           return split(a[0], {p.a, 0, p.b}, 1);
         },
     .ref =
         [](const Arrays& a, const Params& p) {
           return Arrays{piece(a[0], 1, 0, p.a), piece(a[0], 1, p.a, 0), piece(a[0], 1, p.a, p.b)};
         },
     .samples = {{{real(2, 5)}, {2, 3}}},
     .empty = {{real(0, 5)}, {2, 3}},
     .errors = {{[] {
                   (void)split(zeros({4}), std::vector<int64_t>{1, 2}, 0);
                 },
                 "split: sizes [1, 2] sum to 3, dim 0 of [4] f32 has 4; they must agree"}},
     .i64 = true},
    {.name = "chunk",
     .formula = "y₀, y₁, … = at most n equal pieces of x along dim",
     .vjp = "cat(g₀, g₁, …)",
     .fn = [](Args a, const Params& p) { return chunk(a[0], p.a, p.b); },
     .ref =
         [](const Arrays& a, const Params& p) {
           Arrays ys;
           const int dim = reference::wrap(p.b, a[0].shape.rank());
           const int64_t n = a[0].shape[dim], size = (n + p.a - 1) / p.a;
           for (int64_t at = 0; at < n; at += size) ys.push_back(piece(a[0], dim, at, std::min(size, n - at)));
           return ys;
         },
     .samples = {{{real(4, 2)}, {2, 0}}, {{real(2, 5)}, {3, -1}}},
     .empty = {{real(0, 4)}, {2, 1}},
     .errors = {{[] { (void)chunk(zeros({4}), 0); }, "chunk: 0 chunks of [4] f32; ask for at least one"}},
     .i64 = true},
    {.name = "unbind",
     .formula = "y₀, y₁, … = the slices of x along dim",
     .vjp = "stack(g₀, g₁, …)",
     .fn = [](Args a, const Params& p) { return unbind(a[0], p.a); },
     .ref =
         [](const Arrays& a, const Params& p) {
           Arrays ys;
           const int dim = reference::wrap(p.a, a[0].shape.rank());
           for (int64_t at = 0; at < a[0].shape[dim]; ++at) {
             ys.push_back(piece(a[0], dim, at, 1));
             ys.back().shape.erase(dim);
           }
           return ys;
         },
     .samples = {{{real(3, 2)}, {0}}, {{real(2, 3)}, {-1}}},
     .empty = {{real(0, 2)}, {1}},
     .errors = {{[] { (void)unbind(zeros({})); }, "unbind: dim 0 is out of range for rank 0"}},
     .i64 = true},
    {.name = "cat",
     .fn = [](Args a, const Params& p) { return cat(a, p.a); },
     .ref = [](const Arrays& a, const Params& p) { return joined(a, reference::wrap(p.a, a[0].shape.rank())); },
     .samples = {{{real(2, 3), real(1, 3), real(3, 3)}, {0}}, {{real(2, 3), real(2, 2)}, {-1}}, {{real(3)}, {0}}},
     .empty = {{real(0, 3), real(2, 3)}, {0}},
     .large = {{real(150, 401), real(150, 401)}, {1}},
     .errors = {{[] {
                   (void)cat({zeros({2, 3}), zeros({2, 4})});
                 },
                 "cat: shapes differ outside dim 0: input 0 is [2, 3] f32, input 1 is [2, 4] f32"},
                {[] {
                   (void)cat({zeros({2}), zeros({2}, DType::f64)});
                 },
                 "cat: dtypes differ: input 0 is [2] f32, input 1 is [2] f64"},
                {[] { (void)cat(std::span<const Tensor>()); }, "cat: no tensors; pass at least one"}},
     .i64 = true},
    {.name = "stack",
     .formula = "y[…k…] = xₖ, along a new dim",
     .vjp = "the slices of g",
     .fn = [](Args a, const Params& p) { return stack(a, p.a); },
     .ref =
         [](const Arrays& a, const Params& p) {
           const int d = reference::wrap(p.a, a[0].shape.rank() + 1);
           return joined(unsqueezed(a, d), d);
         },
     .samples = {{{real(2, 3), real(2, 3)}, {0}}, {{real(2), real(2), real(2)}, {-1}}, {{real(), real()}, {0}}},
     .empty = {{real(0, 3), real(0, 3)}, {1}},
     .errors = {{[] {
                   (void)stack({zeros({2, 3}), zeros({2, 4})});
                 },
                 "stack: shapes differ: input 0 is [2, 3] f32, input 1 is [2, 4] f32; all must be equal"}},
     .i64 = true},
    {.name = "contiguous",
     .formula = "y = x, or a row-major copy",
     .vjp = "g",
     .fn = [](Args a) { return contiguous(transpose(a[0], 0, 1)); },
     .ref =
         [](const Arrays& a) {
           return permuted(a[0], {1, 0});
         },
     .samples = {{{real(3, 4)}}},
     .empty = {{real(0, 3)}},
     .large = {{real(300, 401)}},
     .errors = {{[] { (void)contiguous(Tensor{}); }, "contiguous: the tensor is undefined"}},
     .i64 = true},
    {.name = "clone",
     .fn = [](Args a) { return clone(a[0]); },
     .ref = [](const Arrays& a) { return a[0]; },
     .samples = {{{real(3, 4)}}, {{real()}}},
     .empty = {{real(0, 3)}},
     .large = {{real(300, 401)}},
     .errors = {{[] { (void)clone(Tensor{}); }, "clone: the tensor is undefined"}},
     .i64 = true},
    {.name = "pad",
     .fn = [](Args a, const Params& p) { return pad(a[0], p.a, p.b, p.c, 2); },
     .ref =
         [](const Arrays& a, const Params& p) {
           const int dim = reference::wrap(p.a, a[0].shape.rank());
           Shape shape = a[0].shape;
           shape[dim] += p.b + p.c;
           return build(shape, [&](const Dims& i) {
             const int64_t at = i[dim] - p.b;
             return at < 0 || at >= a[0].shape[dim] ? 2 : a[0](reference::replaced(i, dim, at));
           });
         },
     .samples = {{{real(3, 4)}, {1, 2, 1}}, {{real(3, 4)}, {0, -1, 2}}, {{real(4)}, {-1, -1, -1}}},
     .empty = {{real(0, 3)}, {0, 1, 1}},
     .large = {{real(300, 401)}, {1, 3, 4}},
     .errors = {{[] { (void)pad(zeros({3}), 0, -2, -2); },
                 "pad: before = -2 and after = -2 cut more than dim 0 of [3] f32 has"}},
     .i64 = true},
    {.name = "tril",
     .fn = [](Args a, const Params& p) { return tril(a[0], p.a); },
     .ref =
         [](const Arrays& a, const Params& p) {
           return build(a[0].shape,
                        [&](const Dims& i) { return i[i.rank() - 1] - i[i.rank() - 2] <= p.a ? a[0](i) : 0; });
         },
     .samples = {{{real(3, 4)}, {0}}, {{real(2, 3, 3)}, {-1}}, {{real(3, 3)}, {1}}},
     .empty = {{real(0, 3)}, {0}},
     .large = {{real(300, 401)}, {0}},
     .errors = {{[] { (void)tril(zeros({3})); }, "tril: [3] f32 has rank 1; it needs the two dims of a matrix"}},
     .i64 = true},
    {.name = "triu",
     .fn = [](Args a, const Params& p) { return triu(a[0], p.a); },
     .ref =
         [](const Arrays& a, const Params& p) {
           return build(a[0].shape,
                        [&](const Dims& i) { return i[i.rank() - 1] - i[i.rank() - 2] >= p.a ? a[0](i) : 0; });
         },
     .samples = {{{real(3, 4)}, {0}}, {{real(2, 3, 3)}, {-1}}, {{real(3, 3)}, {1}}},
     .empty = {{real(0, 3)}, {0}},
     .large = {{real(300, 401)}, {0}},
     .errors = {{[] { (void)triu(zeros({3})); }, "triu: [3] f32 has rank 1; it needs the two dims of a matrix"}},
     .i64 = true},
};

}  // namespace

std::span<const OpRow> join_rows() { return rows; }

}  // namespace tapestry::op_table
