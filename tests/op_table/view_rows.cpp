// Rows of views, joins and copies.
#include "../../ops/ops.h"
#include "op_table.h"

namespace tapestry::op_table {
namespace {

using reference::build;

Array reshaped(const Array& x, const Shape& shape) { return {shape, x.values}; }

Array permuted(const Array& x, const Dims& dims) {
  Shape shape = x.shape;
  for (int d = 0; d < dims.rank(); ++d) shape[d] = x.size(static_cast<int>(dims[d]));
  return build(shape, [&](const Dims& i) {
    Dims from = i;
    for (int d = 0; d < dims.rank(); ++d) from[reference::wrap(dims[d], dims.rank())] = i[d];
    return x(from);
  });
}

Array expanded(const Array& x, const Shape& shape) {
  return build(shape, [&](const Dims& i) { return x.broadcast(i); });
}

/// count elements of dim from start on, step apart.
Array piece(const Array& x, int dim, int64_t start, int64_t count, int64_t step = 1) {
  Shape shape = x.shape;
  shape[dim] = count;
  return build(shape, [&](const Dims& i) { return x(reference::replaced(i, dim, start + i[dim] * step)); });
}

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

// clang-format off
constexpr OpRow rows[] = {
    {.name = "reshape", .fn = [](Args a, const Params& p) { return reshape(a[0], {p.a, p.b}); },
     .ref = [](const Arrays& a, const Params& p) { return reshaped(a[0], {p.a, p.c}); },
     .samples = {{{real(3, 4)}, {2, 6, 6}}, {{real(2, 3, 2)}, {4, -1, 3}}}, .empty = {{real(0, 3)}, {5, 0, 0}}, .large = {{real(300, 401)}, {401, 300, 300}},
     .errors = {{[] { (void)reshape(zeros({2, 3}), {4, -1}); }, "reshape: "}, {[] { (void)reshape(zeros({2, 3}), {7}); }, "reshape: [2, 3] f32 has 6 elements, [7] has 7"},
                {[] { (void)reshape(zeros({2, 3}), {-1, -1}); }, "reshape: more than one -1 in [-1, -1]"}}, .i64 = true},
    {.name = "view", .formula = "y = x in row-major order under another shape", .vjp = "reshape(g, x.shape)",
     .fn = [](Args a) { return view(a[0], {3, 2, -1}); }, .ref = [](const Arrays& a) { return reshaped(a[0], {3, 2, a[0].size(1) / 2}); },
     .samples = {{{real(3, 4)}}}, .empty = {{real(3, 0)}},
     .errors = {{[] { (void)view(transpose(zeros({2, 3}), 0, 1), {6}); }, "view: [3, 2] f32 with strides [1, 3] cannot be seen as [6] without a copy; use reshape"}}, .i64 = true},
    {.name = "flatten", .formula = "y = x with some neighbouring dims as one", .vjp = "reshape(g, x.shape)",
     .fn = [](Args a, const Params& p) { return flatten(a[0], p.a, p.b); },
     .ref = [](const Arrays& a, const Params& p) { return reshaped(a[0], p.c != 0 ? Shape{p.c, p.d} : Shape{numel(a[0].shape)}); },
     .samples = {{{real(2, 3, 2)}, {0, 1, 6, 2}}, {{real(2, 3, 2)}, {0, -1, 0, 0}}, {{real()}, {0, -1, 0, 0}}}, .empty = {{real(0, 3)}, {0, -1}},
     .errors = {{[] { (void)flatten(zeros({2, 3, 4}), 2, 1); }, "flatten: the first dim 2 comes after the last 1"}}, .i64 = true},
    {.name = "transpose", .fn = [](Args a, const Params& p) { return transpose(a[0], p.a, p.b); },
     .ref = [](const Arrays& a, const Params& p) {
       Dims order;
       for (int d = 0; d < a[0].shape.rank(); ++d) order.push_back(d);
       std::swap(order[reference::wrap(p.a, order.rank())], order[reference::wrap(p.b, order.rank())]);
       return permuted(a[0], order);
     },
     .samples = {{{real(3, 4)}, {0, 1}}, {{real(2, 3, 4)}, {0, -1}}, {{real(2, 3)}, {1, 1}}}, .empty = {{real(0, 3)}, {0, 1}}, .large = {{real(300, 401)}, {0, 1}},
     .errors = {{[] { (void)transpose(zeros({2, 3}), 0, 2); }, "transpose: dim 2 is out of range for rank 2"}}, .i64 = true},
    {.name = "permute", .fn = [](Args a) { return permute(a[0], {2, 0, -2}); }, .ref = [](const Arrays& a) { return permuted(a[0], {2, 0, 1}); },
     .samples = {{{real(2, 3, 4)}}}, .empty = {{real(0, 3, 2)}},
     .errors = {{[] { (void)permute(zeros({2, 3}), {0, 0}); }, "permute: dim 0 is named twice"}, {[] { (void)permute(zeros({2, 3}), {0}); }, "permute: 1 dims [0] for [2, 3] f32"}}, .i64 = true},
    {.name = "mT", .formula = "y[…i][j] = x[…j][i]", .vjp = "mT(g)", .fn = [](Args a) { return mT(a[0]); }, .ref = [](const Arrays& a) {
       return a[0].shape.rank() == 2 ? permuted(a[0], {1, 0}) : permuted(a[0], {0, 2, 1}); },
     .samples = {{{real(3, 4)}}, {{real(2, 3, 2)}}}, .empty = {{real(0, 3)}}, .errors = {{[] { (void)mT(zeros({3})); }, "mT: [3] f32 has rank 1; it needs two dims to swap"}}, .i64 = true},
    {.name = "expand", .fn = [](Args a, const Params& p) { return p.c != 0 ? expand(a[0], {p.a, p.b, p.c}) : expand(a[0], {p.a, p.b}); },
     .ref = [](const Arrays& a, const Params& p) { return expanded(a[0], p.c != 0 ? Shape{p.a, a[0].size(0), p.c} : Shape{p.a, p.d}); },
     .samples = {{{real(3, 1)}, {3, 4, 0, 4}}, {{real(3, 1)}, {2, -1, 4, 0}}, {{real()}, {2, 3, 0, 3}}, {{real(3)}, {2, -1, 0, 3}}}, .empty = {{real(1, 3)}, {0, 3, 0, 3}},
     .large = {{real(300, 1)}, {300, 401, 0, 401}},
     .errors = {{[] { (void)expand(zeros({2, 3}), {2, 4}); }, "expand: cannot expand [2, 3]"}, {[] { (void)expand(zeros({2, 3}), {3}); }, "expand: cannot expand [2, 3]"}}, .i64 = true},
    {.name = "sum_to", .formula = "y = Σ x over the dims expand() would repeat", .vjp = "expand(g, x.shape)",
     .fn = [](Args a, const Params& p) { return p.b != 0 ? sum_to(a[0], {p.a, p.b}) : sum_to(a[0], {p.a}); },
     .ref = [](const Arrays& a, const Params& p) {
       Array y{p.b != 0 ? Shape{p.a, p.b} : Shape{p.a}, {}};
       y.values.resize(static_cast<size_t>(numel(y.shape)));
       reference::for_each(a[0].shape, [&](const Dims& i) {
         Dims own;
         for (int d = 0; d < y.shape.rank(); ++d) own.push_back(y.shape[d] == 1 ? 0 : i[d + i.rank() - y.shape.rank()]);
         y(own) += a[0](i);
       });
       return y;
     },
     .samples = {{{real(3, 4)}, {3, 1}}, {{real(2, 3, 4)}, {4, 0}}, {{real(2, 3)}, {2, 3}}}, .empty = {{real(0, 3)}, {1, 3}}, .large = {{real(300, 401)}, {1, 401}},
     .errors = {{[] { (void)sum_to(zeros({2, 3}), {2, 2}); }, "sum_to: [2, 3] f32 cannot be summed to [2, 2] (dim -1: 3 vs 2)"}}, .i64 = true},
    {.name = "squeeze", .fn = [](Args a, const Params& p) { return p.b != 0 ? squeeze(a[0]) : squeeze(a[0], p.a); },
     .ref = [](const Arrays& a, const Params& p) {
       Shape shape;
       for (int d = 0; d < a[0].shape.rank(); ++d)
         if (a[0].shape[d] != 1 || (p.b == 0 && d != reference::wrap(p.a, a[0].shape.rank()))) shape.push_back(a[0].shape[d]);
       return reshaped(a[0], shape);
     },
     .samples = {{{real(3, 1, 4)}, {1}}, {{real(3, 1, 1)}, {0, 1}}, {{real(3, 4)}, {0}}, {{real(3, 1)}, {-1}}}, .empty = {{real(0, 1)}, {1}},
     .errors = {{[] { (void)squeeze(zeros({2, 3}), 2); }, "squeeze: dim 2 is out of range for rank 2"}}, .i64 = true},
    {.name = "unsqueeze", .fn = [](Args a, const Params& p) { return unsqueeze(a[0], p.a); },
     .ref = [](const Arrays& a, const Params& p) { Arrays y = {a[0]}; return unsqueezed(y, static_cast<int>(p.b))[0]; },
     .samples = {{{real(3, 4)}, {0, 0}}, {{real(3, 4)}, {-1, 2}}, {{real()}, {0, 0}}}, .empty = {{real(0, 3)}, {1, 1}},
     .errors = {{[] { (void)unsqueeze(zeros({2, 3}), 4); }, "unsqueeze: dim 4 is out of range for rank 3"}}, .i64 = true},
    {.name = "slice", .fn = [](Args a, const Params& p) { return slice(a[0], p.a, p.b, p.c, p.d); },
     .ref = [](const Arrays& a, const Params& p) {
       const int dim = reference::wrap(p.a, a[0].shape.rank());
       const int64_t n = a[0].shape[dim], low = p.d > 0 ? 0 : -1, high = p.d > 0 ? n : n - 1;
       const auto clamped = [&](int64_t at) { at = at < 0 ? at + n : at; return at < low ? low : at > high ? high : at; };
       const int64_t start = clamped(p.b), stop = clamped(p.c);
       int64_t count = 0;
       for (int64_t at = start; p.d > 0 ? at < stop : at > stop; at += p.d) ++count;
       return piece(a[0], dim, start, count, p.d);
     },
     .samples = {{{real(5, 4)}, {0, 1, 4, 1}}, {{real(3, 7)}, {1, 0, 7, 3}}, {{real(3, 7)}, {-1, -2, -7, -2}}, {{real(3, 7)}, {1, -100, 100, 2}}},
     .empty = {{real(3, 4)}, {1, 2, 2, 1}}, .large = {{real(300, 801)}, {1, 0, 801, 2}},
     .errors = {{[] { (void)slice(zeros({2, 3}), 1, 0, 3, 0); }, "slice: step 0 along dim 1 of [2, 3] f32"}}, .i64 = true},
    {.name = "slice (open ends)", .fn = [](Args a, const Params& p) { return slice(a[0], 1, {}, {}, p.a); },
     .ref = [](const Arrays& a, const Params& p) { return piece(a[0], 1, p.a > 0 ? 0 : a[0].size(1) - 1, (a[0].size(1) + 1) / 2, p.a); },
     .samples = {{{real(3, 5)}, {2}}, {{real(3, 5)}, {-2}}}, .empty = {{real(3, 0)}, {2}},
     .errors = {{[] { (void)slice(zeros({2, 3}), 2, {}, {}); }, "slice: dim 2 is out of range for rank 2"}}, .i64 = true},
    {.name = "select", .fn = [](Args a, const Params& p) { return select(a[0], p.a, p.b); },
     .ref = [](const Arrays& a, const Params& p) {
       const int dim = reference::wrap(p.a, a[0].shape.rank());
       Array y = piece(a[0], dim, p.b < 0 ? p.b + a[0].shape[dim] : p.b, 1);
       y.shape.erase(dim);
       return y;
     },
     .samples = {{{real(3, 4)}, {1, 2}}, {{real(3, 4)}, {-2, -1}}, {{real(3)}, {0, 1}}}, .empty = {{real(0, 3)}, {1, 2}},
     .errors = {{[] { (void)select(zeros({2, 3}), 1, 3); }, "select: index 3 is out of range for dim 1 of [2, 3] f32; use -3 to 2"}}, .i64 = true},
    {.name = "split", .fn = [](Args a, const Params& p) { return split(a[0], p.a, p.b); },
     .ref = [](const Arrays& a, const Params& p) {
       Arrays ys;
       const int dim = reference::wrap(p.b, a[0].shape.rank());
       for (int64_t at = 0; at < a[0].shape[dim]; at += p.a) ys.push_back(piece(a[0], dim, at, std::min(p.a, a[0].shape[dim] - at)));
       return ys;
     },
     .samples = {{{real(5, 2)}, {2, 0}}, {{real(2, 4)}, {2, -1}}, {{real(2, 4)}, {9, 1}}}, .empty = {{real(0, 4)}, {2, 1}},
     .errors = {{[] { (void)split(zeros({4}), 0); }, "split: pieces of size 0 along dim 0 of [4] f32"}}, .i64 = true},
    {.name = "split (sizes)", .fn = [](Args a, const Params& p) { return split(a[0], {p.a, 0, p.b}, 1); },
     .ref = [](const Arrays& a, const Params& p) { return Arrays{piece(a[0], 1, 0, p.a), piece(a[0], 1, p.a, 0), piece(a[0], 1, p.a, p.b)}; },
     .samples = {{{real(2, 5)}, {2, 3}}}, .empty = {{real(0, 5)}, {2, 3}},
     .errors = {{[] { (void)split(zeros({4}), std::vector<int64_t>{1, 2}, 0); }, "split: sizes [1, 2] sum to 3, dim 0 of [4] f32 has 4; they must agree"}}, .i64 = true},
    {.name = "chunk", .formula = "y₀, y₁, … = at most n equal pieces of x along dim", .vjp = "cat(g₀, g₁, …)", .fn = [](Args a, const Params& p) { return chunk(a[0], p.a, p.b); },
     .ref = [](const Arrays& a, const Params& p) {
       Arrays ys;
       const int dim = reference::wrap(p.b, a[0].shape.rank());
       const int64_t n = a[0].shape[dim], size = (n + p.a - 1) / p.a;
       for (int64_t at = 0; at < n; at += size) ys.push_back(piece(a[0], dim, at, std::min(size, n - at)));
       return ys;
     },
     .samples = {{{real(4, 2)}, {2, 0}}, {{real(2, 5)}, {3, -1}}}, .empty = {{real(0, 4)}, {2, 1}},
     .errors = {{[] { (void)chunk(zeros({4}), 0); }, "chunk: 0 chunks of [4] f32; ask for at least one"}}, .i64 = true},
    {.name = "unbind", .formula = "y₀, y₁, … = the slices of x along dim", .vjp = "stack(g₀, g₁, …)", .fn = [](Args a, const Params& p) { return unbind(a[0], p.a); },
     .ref = [](const Arrays& a, const Params& p) {
       Arrays ys;
       const int dim = reference::wrap(p.a, a[0].shape.rank());
       for (int64_t at = 0; at < a[0].shape[dim]; ++at) {
         ys.push_back(piece(a[0], dim, at, 1));
         ys.back().shape.erase(dim);
       }
       return ys;
     },
     .samples = {{{real(3, 2)}, {0}}, {{real(2, 3)}, {-1}}}, .empty = {{real(0, 2)}, {1}},
     .errors = {{[] { (void)unbind(zeros({})); }, "unbind: dim 0 is out of range for rank 0"}}, .i64 = true},
    {.name = "cat", .fn = [](Args a, const Params& p) { return cat(a, p.a); },
     .ref = [](const Arrays& a, const Params& p) { return joined(a, reference::wrap(p.a, a[0].shape.rank())); },
     .samples = {{{real(2, 3), real(1, 3), real(3, 3)}, {0}}, {{real(2, 3), real(2, 2)}, {-1}}, {{real(3)}, {0}}}, .empty = {{real(0, 3), real(2, 3)}, {0}},
     .large = {{real(150, 401), real(150, 401)}, {1}},
     .errors = {{[] { (void)cat({zeros({2, 3}), zeros({2, 4})}); }, "cat: shapes differ outside dim 0: input 0 is [2, 3] f32, input 1 is [2, 4] f32"},
                {[] { (void)cat({zeros({2}), zeros({2}, DType::f64)}); }, "cat: dtypes differ: input 0 is [2] f32, input 1 is [2] f64"},
                {[] { (void)cat(std::span<const Tensor>()); }, "cat: no tensors; pass at least one"}}, .i64 = true},
    {.name = "stack", .formula = "y[…k…] = xₖ, along a new dim", .vjp = "the slices of g", .fn = [](Args a, const Params& p) { return stack(a, p.a); },
     .ref = [](const Arrays& a, const Params& p) { const int d = reference::wrap(p.a, a[0].shape.rank() + 1); return joined(unsqueezed(a, d), d); },
     .samples = {{{real(2, 3), real(2, 3)}, {0}}, {{real(2), real(2), real(2)}, {-1}}, {{real(), real()}, {0}}}, .empty = {{real(0, 3), real(0, 3)}, {1}},
     .errors = {{[] { (void)stack({zeros({2, 3}), zeros({2, 4})}); }, "stack: shapes differ: input 0 is [2, 3] f32, input 1 is [2, 4] f32; all must be equal"}}, .i64 = true},
    {.name = "contiguous", .formula = "y = x, or a row-major copy", .vjp = "g", .fn = [](Args a) { return contiguous(transpose(a[0], 0, 1)); },
     .ref = [](const Arrays& a) { return permuted(a[0], {1, 0}); }, .samples = {{{real(3, 4)}}}, .empty = {{real(0, 3)}}, .large = {{real(300, 401)}},
     .errors = {{[] { (void)contiguous(Tensor{}); }, "strides: the tensor is undefined"}}, .i64 = true},
    {.name = "clone", .fn = [](Args a) { return clone(a[0]); }, .ref = [](const Arrays& a) { return a[0]; }, .samples = {{{real(3, 4)}}, {{real()}}},
     .empty = {{real(0, 3)}}, .large = {{real(300, 401)}}, .errors = {{[] { (void)clone(Tensor{}); }, "dtype: the tensor is undefined"}}, .i64 = true},
    {.name = "pad", .fn = [](Args a, const Params& p) { return pad(a[0], p.a, p.b, p.c, 2); },
     .ref = [](const Arrays& a, const Params& p) {
       const int dim = reference::wrap(p.a, a[0].shape.rank());
       Shape shape = a[0].shape;
       shape[dim] += p.b + p.c;
       return build(shape, [&](const Dims& i) {
         const int64_t at = i[dim] - p.b;
         return at < 0 || at >= a[0].shape[dim] ? 2 : a[0](reference::replaced(i, dim, at));
       });
     },
     .samples = {{{real(3, 4)}, {1, 2, 1}}, {{real(3, 4)}, {0, -1, 2}}, {{real(4)}, {-1, -1, -1}}}, .empty = {{real(0, 3)}, {0, 1, 1}}, .large = {{real(300, 401)}, {1, 3, 4}},
     .errors = {{[] { (void)pad(zeros({3}), 0, -2, -2); }, "pad: before = -2 and after = -2 cut more than dim 0 of [3] f32 has"}}, .i64 = true},
    {.name = "tril", .fn = [](Args a, const Params& p) { return tril(a[0], p.a); },
     .ref = [](const Arrays& a, const Params& p) { return build(a[0].shape, [&](const Dims& i) { return i[i.rank() - 1] - i[i.rank() - 2] <= p.a ? a[0](i) : 0; }); },
     .samples = {{{real(3, 4)}, {0}}, {{real(2, 3, 3)}, {-1}}, {{real(3, 3)}, {1}}}, .empty = {{real(0, 3)}, {0}}, .large = {{real(300, 401)}, {0}},
     .errors = {{[] { (void)tril(zeros({3})); }, "tril: [3] f32 has rank 1; it needs the two dims of a matrix"}}, .i64 = true},
    {.name = "triu", .fn = [](Args a, const Params& p) { return triu(a[0], p.a); },
     .ref = [](const Arrays& a, const Params& p) { return build(a[0].shape, [&](const Dims& i) { return i[i.rank() - 1] - i[i.rank() - 2] >= p.a ? a[0](i) : 0; }); },
     .samples = {{{real(3, 4)}, {0}}, {{real(2, 3, 3)}, {-1}}, {{real(3, 3)}, {1}}}, .empty = {{real(0, 3)}, {0}}, .large = {{real(300, 401)}, {0}},
     .errors = {{[] { (void)triu(zeros({3})); }, "triu: [3] f32 has rank 1; it needs the two dims of a matrix"}}, .i64 = true},
};
// clang-format on

}  // namespace

std::span<const OpRow> view_rows() { return rows; }

}  // namespace tapestry::op_table
