// Rows of views.
#include "../../ops/ops.h"
#include "op_table.h"

namespace tapestry::op_table {
namespace {

using reference::permuted;
using reference::piece;

Array reshaped(const Array& x, const Shape& shape) { return {shape, x.values}; }

Array expanded(const Array& x, const Shape& shape) {
  return reference::build(shape, [&](const Dims& i) { return x.broadcast(i); });
}

constexpr OpRow rows[] = {
    {.name = "reshape",
     .fn =
         [](Args a, const Params& p) {
           return reshape(a[0], {p.a, p.b});
         },
     .ref =
         [](const Arrays& a, const Params& p) {
           return reshaped(a[0], {p.a, p.c});
         },
     .samples = {{{real(3, 4)}, {2, 6, 6}}, {{real(2, 3, 2)}, {4, -1, 3}}},
     .empty = {{real(0, 3)}, {5, 0, 0}},
     .large = {{real(300, 401)}, {401, 300, 300}},
     .errors = {{[] {
                   (void)reshape(zeros({2, 3}), {4, -1});
                 },
                 "reshape: "},
                {[] {
                   (void)reshape(zeros({2, 3}), {7});
                 },
                 "reshape: [2, 3] f32 has 6 elements, [7] has 7"},
                {[] {
                   (void)reshape(zeros({2, 3}), {-1, -1});
                 },
                 "reshape: more than one -1 in [-1, -1]"}},
     .i64 = true},
    {.name = "view",
     .formula = "y = x in row-major order under another shape",
     .vjp = "reshape(g, x.shape)",
     .fn =
         [](Args a) {
           return view(a[0], {3, 2, -1});
         },
     .ref =
         [](const Arrays& a) {
           return reshaped(a[0], {3, 2, a[0].size(1) / 2});
         },
     .samples = {{{real(3, 4)}}},
     .empty = {{real(3, 0)}},
     .errors = {{[] {
                   (void)view(transpose(zeros({2, 3}), 0, 1), {6});
                 },
                 "view: [3, 2] f32 with strides [1, 3] cannot be seen as [6] without a copy; use reshape"}},
     .i64 = true},
    {.name = "flatten",
     .formula = "y = x with some neighbouring dims as one",
     .vjp = "reshape(g, x.shape)",
     .fn = [](Args a, const Params& p) { return flatten(a[0], p.a, p.b); },
     .ref =
         [](const Arrays& a, const Params& p) {
           return reshaped(a[0], p.c != 0 ? Shape{p.c, p.d} : Shape{numel(a[0].shape)});
         },
     .samples = {{{real(2, 3, 2)}, {0, 1, 6, 2}}, {{real(2, 3, 2)}, {0, -1, 0, 0}}, {{real()}, {0, -1, 0, 0}}},
     .empty = {{real(0, 3)}, {0, -1}},
     .errors = {{[] {
                   (void)flatten(zeros({2, 3, 4}), 2, 1);
                 },
                 "flatten: the first dim 2 comes after the last 1"}},
     .i64 = true},
    {.name = "transpose",
     .fn = [](Args a, const Params& p) { return transpose(a[0], p.a, p.b); },
     .ref =
         [](const Arrays& a, const Params& p) {
           Dims order;
           for (int d = 0; d < a[0].shape.rank(); ++d) order.push_back(d);
           std::swap(order[reference::wrap(p.a, order.rank())], order[reference::wrap(p.b, order.rank())]);
           return permuted(a[0], order);
         },
     .samples = {{{real(3, 4)}, {0, 1}}, {{real(2, 3, 4)}, {0, -1}}, {{real(2, 3)}, {1, 1}}},
     .empty = {{real(0, 3)}, {0, 1}},
     .large = {{real(300, 401)}, {0, 1}},
     .errors = {{[] {
                   (void)transpose(zeros({2, 3}), 0, 2);
                 },
                 "transpose: dim 2 is out of range for rank 2"}},
     .i64 = true},
    {.name = "permute",
     .fn =
         [](Args a) {
           return permute(a[0], {2, 0, -2});
         },
     .ref =
         [](const Arrays& a) {
           return permuted(a[0], {2, 0, 1});
         },
     .samples = {{{real(2, 3, 4)}}},
     .empty = {{real(0, 3, 2)}},
     .errors = {{[] {
                   (void)permute(zeros({2, 3}), {0, 0});
                 },
                 "permute: dim 0 is named twice"},
                {[] {
                   (void)permute(zeros({2, 3}), {0});
                 },
                 "permute: 1 dims [0] for [2, 3] f32"}},
     .i64 = true},
    {.name = "mT",
     .formula = "y[…i][j] = x[…j][i]",
     .vjp = "mT(g)",
     .fn = [](Args a) { return mT(a[0]); },
     .ref =
         [](const Arrays& a) {
           return a[0].shape.rank() == 2 ? permuted(a[0], {1, 0}) : permuted(a[0], {0, 2, 1});
         },
     .samples = {{{real(3, 4)}}, {{real(2, 3, 2)}}},
     .empty = {{real(0, 3)}},
     .errors = {{[] { (void)mT(zeros({3})); }, "mT: [3] f32 has rank 1; it needs two dims to swap"}},
     .i64 = true},
    {.name = "expand",
     .fn =
         [](Args a, const Params& p) {
           return p.c != 0 ? expand(a[0], {p.a, p.b, p.c}) : expand(a[0], {p.a, p.b});
         },
     .ref =
         [](const Arrays& a, const Params& p) {
           return expanded(a[0], p.c != 0 ? Shape{p.a, a[0].size(0), p.c} : Shape{p.a, p.d});
         },
     .samples = {{{real(3, 1)}, {3, 4, 0, 4}},
                 {{real(3, 1)}, {2, -1, 4, 0}},
                 {{real()}, {2, 3, 0, 3}},
                 {{real(3)}, {2, -1, 0, 3}}},
     .empty = {{real(1, 3)}, {0, 3, 0, 3}},
     .large = {{real(300, 1)}, {300, 401, 0, 401}},
     .errors = {{[] {
                   (void)expand(zeros({2, 3}), {2, 4});
                 },
                 "expand: cannot expand [2, 3]"},
                {[] {
                   (void)expand(zeros({2, 3}), {3});
                 },
                 "expand: cannot expand [2, 3]"}},
     .i64 = true},
    {.name = "sum_to",
     .formula = "y = Σ x over the dims expand() would repeat",
     .vjp = "expand(g, x.shape)",
     .fn =
         [](Args a, const Params& p) {
           return p.b != 0 ? sum_to(a[0], {p.a, p.b}) : sum_to(a[0], {p.a});
         },
     .ref =
         [](const Arrays& a, const Params& p) {
           Array y{p.b != 0 ? Shape{p.a, p.b} : Shape{p.a}, {}};
           y.values.resize(static_cast<size_t>(numel(y.shape)));
           reference::for_each(a[0].shape, [&](const Dims& i) {
             Dims own;
             for (int d = 0; d < y.shape.rank(); ++d)
               own.push_back(y.shape[d] == 1 ? 0 : i[d + i.rank() - y.shape.rank()]);
             y(own) += a[0](i);
           });
           return y;
         },
     .samples = {{{real(3, 4)}, {3, 1}}, {{real(2, 3, 4)}, {4, 0}}, {{real(2, 3)}, {2, 3}}},
     .empty = {{real(0, 3)}, {1, 3}},
     .large = {{real(300, 401)}, {1, 401}},
     .errors = {{[] {
                   (void)sum_to(zeros({2, 3}), {2, 2});
                 },
                 "sum_to: [2, 3] f32 cannot be summed to [2, 2] (dim -1: 3 vs 2)"}},
     .i64 = true},
    {.name = "squeeze",
     .fn = [](Args a, const Params& p) { return p.b != 0 ? squeeze(a[0]) : squeeze(a[0], p.a); },
     .ref =
         [](const Arrays& a, const Params& p) {
           Shape shape;
           for (int d = 0; d < a[0].shape.rank(); ++d)
             if (a[0].shape[d] != 1 || (p.b == 0 && d != reference::wrap(p.a, a[0].shape.rank())))
               shape.push_back(a[0].shape[d]);
           return reshaped(a[0], shape);
         },
     .samples = {{{real(3, 1, 4)}, {1}}, {{real(3, 1, 1)}, {0, 1}}, {{real(3, 4)}, {0}}, {{real(3, 1)}, {-1}}},
     .empty = {{real(0, 1)}, {1}},
     .errors = {{[] {
                   (void)squeeze(zeros({2, 3}), 2);
                 },
                 "squeeze: dim 2 is out of range for rank 2"}},
     .i64 = true},
    {.name = "unsqueeze",
     .fn = [](Args a, const Params& p) { return unsqueeze(a[0], p.a); },
     .ref =
         [](const Arrays& a, const Params& p) {
           Array y = a[0];
           y.shape.insert(static_cast<int>(p.b), 1);
           return y;
         },
     .samples = {{{real(3, 4)}, {0, 0}}, {{real(3, 4)}, {-1, 2}}, {{real()}, {0, 0}}},
     .empty = {{real(0, 3)}, {1, 1}},
     .errors = {{[] {
                   (void)unsqueeze(zeros({2, 3}), 4);
                 },
                 "unsqueeze: dim 4 is out of range for rank 3"}},
     .i64 = true},
    {.name = "slice",
     .fn = [](Args a, const Params& p) { return slice(a[0], p.a, p.b, p.c, p.d); },
     .ref =
         [](const Arrays& a, const Params& p) {
           const int dim = reference::wrap(p.a, a[0].shape.rank());
           const int64_t n = a[0].shape[dim], low = p.d > 0 ? 0 : -1, high = p.d > 0 ? n : n - 1;
           const auto clamped = [&](int64_t at) {
             at = at < 0 ? at + n : at;
             return at < low ? low : at > high ? high : at;
           };
           const int64_t start = clamped(p.b), stop = clamped(p.c);
           int64_t count = 0;
           for (int64_t at = start; p.d > 0 ? at < stop : at > stop; at += p.d) ++count;
           return piece(a[0], dim, start, count, p.d);
         },
     .samples = {{{real(5, 4)}, {0, 1, 4, 1}},
                 {{real(3, 7)}, {1, 0, 7, 3}},
                 {{real(3, 7)}, {-1, -2, -7, -2}},
                 {{real(3, 7)}, {1, -100, 100, 2}}},
     .empty = {{real(3, 4)}, {1, 2, 2, 1}},
     .large = {{real(300, 801)}, {1, 0, 801, 2}},
     .errors = {{[] {
                   (void)slice(zeros({2, 3}), 1, 0, 3, 0);
                 },
                 "slice: step 0 along dim 1 of [2, 3] f32"}},
     .i64 = true},
    {.name = "slice (open ends)",
     .fn = [](Args a, const Params& p) { return slice(a[0], 1, {}, {}, p.a); },
     .ref = [](const Arrays& a,
               const Params& p) { return piece(a[0], 1, p.a > 0 ? 0 : a[0].size(1) - 1, (a[0].size(1) + 1) / 2, p.a); },
     .samples = {{{real(3, 5)}, {2}}, {{real(3, 5)}, {-2}}},
     .empty = {{real(3, 0)}, {2}},
     .errors = {{[] {
                   (void)slice(zeros({2, 3}), 2, {}, {});
                 },
                 "slice: dim 2 is out of range for rank 2"}},
     .i64 = true},
    {.name = "select",
     .fn = [](Args a, const Params& p) { return select(a[0], p.a, p.b); },
     .ref =
         [](const Arrays& a, const Params& p) {
           const int dim = reference::wrap(p.a, a[0].shape.rank());
           Array y = piece(a[0], dim, p.b < 0 ? p.b + a[0].shape[dim] : p.b, 1);
           y.shape.erase(dim);
           return y;
         },
     .samples = {{{real(3, 4)}, {1, 2}}, {{real(3, 4)}, {-2, -1}}, {{real(3)}, {0, 1}}},
     .empty = {{real(0, 3)}, {1, 2}},
     .errors = {{[] {
                   (void)select(zeros({2, 3}), 1, 3);
                 },
                 "select: index 3 is out of range for dim 1 of [2, 3] f32; use -3 to 2"}},
     .i64 = true},
};

}  // namespace

std::span<const OpRow> view_rows() { return rows; }

}  // namespace tapestry::op_table
