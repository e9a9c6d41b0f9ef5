// Rows of what writes at indices and keeps the last, counts, and reduces over segments.
#include <algorithm>

#include "../../ops/ops.h"
#include "op_table.h"

namespace tapestry::op_table {
namespace {

using reference::build;
using reference::replaced;
using reference::wrap;

/// One array a segment: the entries of row k with ids[k] = s.
template <class F>
Array segments_of(const Array& x, const Array& ids, int64_t segments, F&& f) {
  Shape shape = x.shape;
  shape[0] = segments;
  return build(shape, [&](const Dims& i) {
    std::vector<double> members;
    for (int64_t k = 0; k < x.shape[0]; ++k)
      if (ids.number({k}) == i[0]) members.push_back(x(replaced(i, 0, k)));
    return f(members);
  });
}

Tensor ids(std::initializer_list<NestedList> values) { return tensor<int64_t>(values); }

constexpr OpRow rows[] = {
    {.name = "scatter",
     .fn = [](Args a, const Params& p) { return scatter(a[0], p.a, a[1], a[2]); },
     .ref =
         [](const Arrays& a, const Params& p) {
           Array y = a[0];
           const int dim = wrap(p.a, y.shape.rank());
           reference::for_each(a[1].shape, [&](const Dims& i) { y(replaced(i, dim, a[1].number(i))) = a[2](i); });
           return y;
         },
     .samples = {{{real(4, 3), index(4, 5, 3), real(5, 3)}, {0}},
                 {{real(3, 4), index(4, 3, 2), real(3, 2)}, {-1}},
                 {{real(2, 3, 2), index(3, 2, 4, 1), real(2, 4, 1)}, {1}}},
     .empty = {{real(4, 3), index(4, 0, 3), real(0, 3)}, {0}},
     .large = {{real(100, 64), index(100, 1000, 64), real(1000, 64)}, {0}},
     .errors = {{[] {
                   (void)scatter(zeros({3}), 0, ids({0, 3}), zeros({2}));
                 },
                 "scatter: index 3 at [1] is out of range for dim 0 of [3] f32"},
                {[] { (void)scatter(zeros({3}), 0, ids({1}), zeros({2})); },
                 "scatter: index is [1] i64, src is [2] f32; they must have one shape"},
                {[] { (void)scatter(zeros({3}), 0, ids({1}), zeros({1}, DType::f64)); },
                 "scatter: dtypes differ: x is [3] f32, src is [1] f64"}},
     .i64 = true},
    {.name = "take_along_dim",
     .formula = "y[…i…] = x[…index[…i…]…], x and index broadcast outside dim",
     .vjp = "scatter_add(0, dim, index, g), summed to x.shape",
     .fn = [](Args a, const Params& p) { return take_along_dim(a[0], a[1], p.a); },
     .ref =
         [](const Arrays& a, const Params& p) {
           const int dim = wrap(p.a, a[0].shape.rank());
           Shape shape = a[0].shape;
           for (int d = 0; d < shape.rank(); ++d)
             shape[d] = d == dim ? a[1].shape[d] : std::max(shape[d], a[1].shape[d]);
           return build(shape, [&](const Dims& i) {
             Dims own = i;
             for (int d = 0; d < own.rank(); ++d) own[d] = a[1].shape[d] == 1 ? 0 : i[d];
             Dims from = replaced(i, dim, a[1].number(own));
             for (int d = 0; d < own.rank(); ++d) from[d] = a[0].shape[d] == 1 ? 0 : from[d];
             return a[0](from);
           });
         },
     .samples = {{{real(3, 4), index(3, 2, 1)}, {0}},
                 {{real(1, 3), index(3, 2, 4)}, {-1}},
                 {{real(2, 3, 2), index(3, 1, 2, 2)}, {1}}},
     .empty = {{real(3, 4), index(3, 0, 4)}, {0}},
     .errors = {{[] {
                   (void)take_along_dim(zeros({2, 3}), ids({{0, 3}}), 1);
                 },
                 "take_along_dim: index 3 at [0, 1] is out of range for dim 1 of [2, 3] f32"},
                {[] {
                   (void)take_along_dim(zeros({2, 3}), ids({0}), 1);
                 },
                 "take_along_dim: index is [1] i64, x is [2, 3] f32; they must have one rank"},
                {[] {
                   (void)take_along_dim(zeros({2, 3}), zeros({3, 1}, DType::i64), 1);
                 },
                 "take_along_dim: cannot broadcast [2, 1] with [3, 1]"}},
     .i64 = true},
    {.name = "bincount",
     .formula = "y[k] = how many ids are k",
     .fn = [](Args a, const Params& p) { return bincount(a[0], p.a); },
     .ref =
         [](const Arrays& a, const Params& p) {
           double length = static_cast<double>(p.a);
           for (const double id : a[0].values) length = std::max(length, id + 1);
           return build({static_cast<int64_t>(length)}, [&](const Dims& k) {
             return std::count(a[0].values.begin(), a[0].values.end(), static_cast<double>(k[0]));
           });
         },
     .samples = {{{index(5, 7)}, {0}}, {{index(3, 2, 4)}, {8}}},
     .empty = {{index(5, 0)}, {2}},
     .errors = {{[] {
                   (void)bincount(ids({{1, -2}}));
                 },
                 "bincount: index -2 at [0, 1] is out of range for counting"},
                {[] { (void)bincount(ids({1}), -1); }, "bincount: min_length -1; it must not be negative"}},
     .differentiable = false},
    {.name = "segment_sum",
     .formula = "y[s…] = Σ x[k…] over ids[k] = s",
     .vjp = "g[ids]",
     .fn = [](Args a, const Params& p) { return segment_sum(a[0], a[1], p.a); },
     .ref = [](const Arrays& a, const Params& p) { return segments_of(a[0], a[1], p.a, reference::total); },
     .samples = {{{real(5, 3), index(3, 5)}, {3}}, {{real(6), index(2, 6)}, {4}}},
     .empty = {{real(0, 3), index(3, 0)}, {3}},
     .large = {{real(5000, 64), index(100, 5000)}, {100}},
     .errors = {{[] {
                   (void)segment_sum(zeros({2, 3}), ids({0, 2}), 2);
                 },
                 "segment_sum: index 2 at [1] is out of range for 2 segments"},
                {[] {
                   (void)segment_sum(zeros({2, 3}), ids({0}), 2);
                 },
                 "segment_sum: ids are [1] i64, x is [2, 3] f32; x needs rows, and one id for each"}},
     .i64 = true},
    {.name = "segment_mean",
     .formula = "y[s…] = Σ x[k…]/n over the n rows with ids[k] = s",
     .vjp = "(g/n)[ids]",
     .fn = [](Args a, const Params& p) { return segment_mean(a[0], a[1], p.a); },
     .ref =
         [](const Arrays& a, const Params& p) {
           return segments_of(a[0], a[1], p.a, [](const std::vector<double>& xs) {
             return xs.empty() ? 0 : reference::total(xs) / static_cast<double>(xs.size());
           });
         },
     .samples = {{{real(5, 3), index(3, 5)}, {3}}, {{real(6), index(2, 6)}, {4}}},
     .empty = {{real(0, 3), index(3, 0)}, {3}},
     .errors = {{[] { (void)segment_mean(zeros({1}), ids({-1}), 2); },
                 "segment_mean: index -1 at [0] is out of range for 2 segments"},
                {[] { (void)segment_mean(zeros({1}, DType::i64), ids({0}), 2); }, "segment_mean: needs a floating"}}},
    {.name = "segment_max",
     .fn = [](Args a, const Params& p) { return segment_max(a[0], a[1], p.a); },
     .ref = [](const Arrays& a, const Params& p) { return segments_of(a[0], a[1], p.a, reference::largest); },
     .samples = {{{real(9, 3), index(2, 9)}, {2}}, {{real(6), index(1, 6)}, {1}}},
     .empty = {{real(0, 3), index(3, 0)}, {3}},
     .large = {{real(5000, 64), index(100, 5000)}, {100}},
     .errors = {{[] { (void)segment_max(scalar(0), ids({0}), 2); },
                 "segment_max: ids are [1] i64, x is [] f32; x needs rows"},
                {[] { (void)segment_max(zeros({1}), ids({0}), -2); },
                 "segment_max: -2 segments; the number must not"}}},
};

}  // namespace

std::span<const OpRow> scatter_rows() { return rows; }

}  // namespace tapestry::op_table
