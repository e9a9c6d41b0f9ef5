// Rows of what puts elements in another order or repeats them.
#include "../../ops/ops.h"
#include "op_table.h"

namespace tapestry::op_table {
namespace {

using reference::build;
using reference::replaced;
using reference::wrap;

Array flipped(const Array& x, int dim) {
  return build(x.shape, [&](const Dims& i) { return x(replaced(i, dim, x.shape[dim] - 1 - i[dim])); });
}

Array rolled(const Array& x, int64_t shift, int dim) {
  const int64_t n = x.shape[dim];
  return build(x.shape, [&](const Dims& i) { return x(replaced(i, dim, ((i[dim] - shift) % n + n) % n)); });
}

/// Each element of y along dim is the one of x that `source` names.
Array picked(const Array& x, int dim, const std::vector<int64_t>& source) {
  Shape shape = x.shape;
  shape[dim] = static_cast<int64_t>(source.size());
  return build(shape, [&](const Dims& i) { return x(replaced(i, dim, source[static_cast<size_t>(i[dim])])); });
}

Array tiled(Array x, const std::vector<int64_t>& repeats) {
  while (x.shape.size() < repeats.size()) x.shape.insert(0, 1);
  for (int d = 0; d < x.shape.rank(); ++d) {
    std::vector<int64_t> source;
    for (int64_t k = 0; k < repeats[static_cast<size_t>(d)] * x.shape[d]; ++k) source.push_back(k % x.shape[d]);
    x = picked(x, d, source);
  }
  return x;
}

constexpr OpRow rows[] = {
    {.name = "flip",
     .fn =
         [](Args a, const Params& p) {
           return flip(a[0], {p.a, p.b});
         },
     .ref =
         [](const Arrays& a, const Params& p) {
           const int rank = a[0].shape.rank();
           return flipped(flipped(a[0], wrap(p.a, rank)), wrap(p.b, rank));
         },
     .samples = {{{real(3, 4)}, {0, 1}}, {{real(2, 3, 4)}, {-1, 0}}, {{real(1, 3)}, {0, 1}}},
     .empty = {{real(0, 3)}, {0, 1}},
     .large = {{real(300, 401)}, {0, 1}},
     .errors = {{[] {
                   (void)flip(zeros({2, 3}), {1, -1});
                 },
                 "flip: dim 1 is named twice in [1, -1] for [2, 3] f32; name each dim once"},
                {[] {
                   (void)flip(zeros({2, 3}), {2});
                 },
                 "flip: dim 2 is out of range for rank 2"}},
     .i64 = true},
    {.name = "roll",
     .formula = "y[…i + shift…] = x[…i…], around the end",
     .vjp = "roll(g, −shifts, dims)",
     .fn =
         [](Args a, const Params& p) {
           return roll(a[0], {p.a, p.b}, {p.c, p.d});
         },
     .ref =
         [](const Arrays& a, const Params& p) {
           const int rank = a[0].shape.rank();
           return rolled(rolled(a[0], p.a, wrap(p.c, rank)), p.b, wrap(p.d, rank));
         },
     .samples = {{{real(3, 4)}, {1, -1, 0, 1}}, {{real(2, 3)}, {7, 0, -1, 0}}, {{real(2, 5)}, {-12, 4, 1, 1}}},
     .empty = {{real(0, 3)}, {1, 1, 0, 1}},
     .errors = {{[] {
                   (void)roll(zeros({2, 3}), {1}, {0, 1});
                 },
                 "roll: 1 shifts for 2 dims of [2, 3] f32; give one shift a dim"}},
     .i64 = true},
    {.name = "movedim",
     .formula = "y = x with dim `from` at place `to`",
     .vjp = "movedim(g, to, from)",
     .fn = [](Args a, const Params& p) { return movedim(a[0], p.a, p.b); },
     .ref =
         [](const Arrays& a, const Params& p) {
           Dims order;
           for (int d = 0; d < a[0].shape.rank(); ++d)
             if (d != wrap(p.a, a[0].shape.rank())) order.push_back(d);
           order.insert(wrap(p.b, a[0].shape.rank()), wrap(p.a, a[0].shape.rank()));
           return reference::permuted(a[0], order);
         },
     .samples = {{{real(2, 3, 4)}, {0, -1}}, {{real(2, 3, 4)}, {2, 0}}, {{real(2, 3)}, {1, 1}}},
     .empty = {{real(0, 3)}, {0, 1}},
     .errors = {{[] {
                   (void)movedim(zeros({2, 3}), 2, 0);
                 },
                 "movedim: dim 2 is out of range for rank 2"}},
     .i64 = true},
    {.name = "repeat",
     .formula = "y = x laid side by side repeats[d] times along each dim",
     .vjp = "Σ of the copies of g",
     .fn =
         [](Args a, const Params& p) {
           return p.c != 0 ? repeat(a[0], {p.a, p.b, p.c}) : repeat(a[0], {p.a, p.b});
         },
     .ref =
         [](const Arrays& a, const Params& p) {
           return p.c != 0 ? tiled(a[0], {p.a, p.b, p.c}) : tiled(a[0], {p.a, p.b});
         },
     .samples = {{{real(2, 3)}, {2, 3}}, {{real(3)}, {2, 2}}, {{real(2, 2)}, {3, 1, 2}}},
     .empty = {{real(2, 0)}, {2, 3}},
     .large = {{real(30, 401)}, {5, 2}},
     .errors = {{[] {
                   (void)repeat(zeros({2, 3}), {2});
                 },
                 "repeat: 1 repeats [2] for [2, 3] f32; give one for each dim"},
                {[] { (void)repeat(zeros({2}), {-1}); }, "repeat: negative repeats in [-1]; use 0 or more"},
                {[] { (void)repeat(zeros({2}), {INT64_MAX}); }, "repeat: dim 0 of [2] f32 becomes longer than 2^63"}},
     .i64 = true},
    {.name = "repeat_interleave",
     .formula = "y = each slice of x along dim, `repeats` times",
     .vjp = "Σ of the copies of g",
     .fn = [](Args a, const Params& p) { return repeat_interleave(a[0], p.a, p.b); },
     .ref =
         [](const Arrays& a, const Params& p) {
           const int dim = wrap(p.b, a[0].shape.rank());
           std::vector<int64_t> source;
           for (int64_t k = 0; k < a[0].shape[dim] * p.a; ++k) source.push_back(k / p.a);
           return picked(a[0], dim, source);
         },
     .samples = {{{real(3, 4)}, {2, 0}}, {{real(2, 3)}, {3, -1}}, {{real(2, 2, 2)}, {2, 1}}},
     .empty = {{real(3, 0)}, {2, 0}},
     .errors = {{[] { (void)repeat_interleave(zeros({2}), -1, 0); },
                 "repeat_interleave: -1 repeats of dim 0 of [2] f32; use 0 or more"}},
     .i64 = true},
    {.name = "repeat_interleave (each)",
     .formula = "y = slice i of x along dim, repeats[i] times",
     .vjp = "Σ of the copies of g",
     .fn = [](Args a, const Params& p) { return repeat_interleave(a[0], a[1], p.a); },
     .ref =
         [](const Arrays& a, const Params& p) {
           std::vector<int64_t> source;
           for (int64_t k = 0; k < a[1].shape[0]; ++k)
             for (int64_t r = 0; r < a[1].number({k}); ++r) source.push_back(k);
           return picked(a[0], wrap(p.a, a[0].shape.rank()), source);
         },
     .samples = {{{real(4, 2), index(3, 4).in(1, 4)}, {0}}, {{real(2, 3), index(3, 3)}, {-1}}},
     .empty = {{real(0, 3), index(3, 0)}, {0}},
     .errors = {{[] {
                   (void)repeat_interleave(zeros({3}), tensor<int64_t>({1, 2}), 0);
                 },
                 "repeat_interleave: repeats are [2] i64, dim 0 of [3] f32 needs [3]"},
                {[] {
                   (void)repeat_interleave(zeros({2}), tensor<int64_t>({1, -2}), 0);
                 },
                 "repeat_interleave: -2 repeats at [1]; use 0 or more"}},
     .i64 = true},
    {.name = "meshgrid",
     .formula = "yₖ[i₀, i₁, …] = xₖ[iₖ]",
     .vjp = "Σ of gₖ over the dims other than k",
     .fn = [](Args a) { return meshgrid(a); },
     .ref =
         [](const Arrays& a) {
           Shape shape;
           for (const Array& x : a) shape.push_back(x.shape[0]);
           Arrays ys;
           for (int k = 0; k < shape.rank(); ++k)
             ys.push_back(build(shape, [&](const Dims& i) { return a[static_cast<size_t>(k)]({i[k]}); }));
           return ys;
         },
     .samples = {{{real(2), real(3)}}, {{real(3)}}, {{real(2), real(1), real(3)}}},
     .empty = {{real(2), real(0)}},
     .errors = {{[] {
                   (void)meshgrid(std::vector<Tensor>{zeros({2}), zeros({2, 2})});
                 },
                 "meshgrid: input 1 is [2, 2] f32; it must have rank 1"},
                {[] { (void)meshgrid({}); }, "meshgrid: no tensors; pass at least one"}},
     .i64 = true},
};

}  // namespace

std::span<const OpRow> rearrange_rows() { return rows; }

}  // namespace tapestry::op_table
