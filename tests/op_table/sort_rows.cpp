// Rows of sorting, picking by rank and searching.
#include <algorithm>
#include <numeric>

#include "../../ops/ops.h"
#include "op_table.h"

namespace tapestry::op_table {
namespace {

using Line = std::vector<double>;

/// Places in order, equal ones as they stood.
std::vector<size_t> order(const Line& x, bool descending) {
  std::vector<size_t> places(x.size());
  std::iota(places.begin(), places.end(), size_t{0});
  std::stable_sort(places.begin(), places.end(),
                   [&](size_t a, size_t b) { return descending ? x[a] > x[b] : x[a] < x[b]; });
  return places;
}

/// {values, places} number `first` to `first + count` of the order along dim.
Arrays ordered(const Array& x, int64_t dim, bool descending, int64_t first, int64_t count) {
  const int d = reference::wrap(dim, x.shape.rank());
  const Array places = reference::along(x, d, [&](const Line& xs) {
    const auto at = order(xs, descending);
    return Line(at.begin(), at.end());
  });
  const Array values = reference::along(x, d, [&](const Line& xs) {
    Line y;
    for (const size_t i : order(xs, descending)) y.push_back(xs[i]);
    return y;
  });
  return {reference::piece(values, d, first, count), reference::piece(places, d, first, count)};
}

Arrays without_dim(Arrays arrays, int64_t dim) {
  for (Array& a : arrays) a.shape.erase(reference::wrap(dim, a.shape.rank()));
  return arrays;
}

double quantile_of(Line x, double q) {
  std::sort(x.begin(), x.end());
  const double place = q * static_cast<double>(x.size() - 1);
  const auto low = static_cast<size_t>(place);
  const double rest = place - static_cast<double>(low);
  return rest == 0 ? x[low] : x[low] + rest * (x[low + 1] - x[low]);
}

constexpr OpRow rows[] = {
    {.name = "sort",
     .fn = [](Args a, const Params& p) { return sort(a[0], p.a, p.b != 0); },
     .ref = [](const Arrays& a,
               const Params& p) { return ordered(a[0], p.a, p.b != 0, 0, a[0].size(static_cast<int>(p.a))); },
     .samples = {{{real(3, 4)}, {1, 0}}, {{real(3, 4)}, {0, 1}}, {{real(2, 3, 2)}, {-2, 0}}, {{real(5)}, {-1, 1}}},
     .empty = {{real(0, 3)}, {1, 0}},
     .large = {{real(300, 401)}, {0, 0}},
     .errors = {{[] {
                   (void)sort(zeros({2, 3}), 2);
                 },
                 "sort: dim 2 is out of range for rank 2"}},
     .i64 = true},
    {.name = "sort (many)",
     .formula = "y = x in order along dim, and its places i",
     .fn = [](Args a, const Params& p) { return sort(a[0], 0, p.a != 0); },
     .ref = [](const Arrays& a, const Params& p) { return ordered(a[0], 0, p.a != 0, 0, a[0].size(0)); },
     .samples = {{{constant(520)}, {0}}, {{constant(3000)}, {1}}},
     .empty = {{constant(0)}, {0}},
     .errors = {{[] { (void)sort(scalar(1)); }, "sort: dim -1 is out of range for rank 0"}},
     .differentiable = false,
     .i64 = true},
    {.name = "argsort",
     .formula = "places of x in order along dim",
     .fn = [](Args a, const Params& p) { return argsort(a[0], p.a, p.b != 0); },
     .ref = [](const Arrays& a,
               const Params& p) { return ordered(a[0], p.a, p.b != 0, 0, a[0].size(static_cast<int>(p.a)))[1]; },
     .samples = {{{real(3, 4)}, {1, 0}}, {{real(3, 4)}, {0, 1}}},
     .empty = {{real(0, 3)}, {0, 0}},
     .errors = {{[] {
                   (void)argsort(zeros({2, 3}), -3);
                 },
                 "argsort: dim -3 is out of range for rank 2"}},
     .differentiable = false,
     .i64 = true},
    {.name = "topk",
     .fn = [](Args a, const Params& p) { return topk(a[0], p.a, p.b, p.c != 0); },
     .ref = [](const Arrays& a, const Params& p) { return ordered(a[0], p.b, p.c != 0, 0, p.a); },
     .samples = {{{real(3, 4)}, {2, 1, 1}},
                 {{real(3, 4)}, {3, 0, 0}},
                 {{real(2, 3, 2)}, {1, -2, 1}},
                 {{real(700)}, {5, 0, 1}},
                 {{real(700)}, {4, 0, 0}}},
     .empty = {{real(2, 3)}, {0, 1, 1}},
     .large = {{real(300, 401)}, {10, 0, 1}},
     .errors = {{[] {
                   (void)topk(zeros({2, 3}), 4, 1);
                 },
                 "topk: k is 4, [2, 3] f32 has 3 elements along dim 1; use 0 ≤ k ≤ 3"}},
     .i64 = true},
    {.name = "kthvalue",
     .fn = [](Args a, const Params& p) { return kthvalue(a[0], p.a, p.b, p.c != 0); },
     .ref =
         [](const Arrays& a, const Params& p) {
           const Arrays all = ordered(a[0], p.b, false, p.a - 1, 1);
           return p.c != 0 ? all : without_dim(all, p.b);
         },
     .samples = {{{real(3, 4)}, {2, 1, 0}}, {{real(3, 4)}, {3, 0, 1}}, {{real(2, 3, 2)}, {1, -2, 0}}},
     .empty = {{real(0, 3)}, {1, 1, 0}},
     .large = {{real(300, 401)}, {150, 0, 0}},
     .errors = {{[] {
                   (void)kthvalue(zeros({2, 3}), 0);
                 },
                 "kthvalue: k is 0, [2, 3] f32 has 3 elements along dim 1; k counts from 1"}},
     .i64 = true},
    {.name = "median",
     .formula = "y = the middle x along dim, the lower of two, and its place i",
     .vjp = "g at the place i",
     .fn = [](Args a, const Params& p) { return median(a[0], p.a, p.b != 0); },
     .ref =
         [](const Arrays& a, const Params& p) {
           const int64_t n = a[0].size(static_cast<int>(p.a));
           const Arrays all = ordered(a[0], p.a, false, (n - 1) / 2, 1);
           return p.b != 0 ? all : without_dim(all, p.a);
         },
     .samples = {{{real(3, 4)}, {1, 0}}, {{real(3, 4)}, {0, 1}}, {{real(2, 3, 2)}, {-2, 0}}},
     .empty = {{real(0, 3)}, {1, 0}},
     .errors = {{[] {
                   (void)median(zeros({2, 0}), 1);
                 },
                 "median: [2, 0] f32 has no elements along dims [1]; there is no median of nothing"}},
     .i64 = true},
    {.name = "median (all)",
     .formula = "the middle x of all, the lower of two",
     .vjp = "g there, else 0",
     .fn = [](Args a) { return median(a[0]); },
     .ref =
         [](const Arrays& a) {
           return reference::reduce(a[0], {}, false, [](Line x) {
             std::sort(x.begin(), x.end());
             return x[(x.size() - 1) / 2];
           });
         },
     .samples = {{{real(3, 4)}}, {{real()}}},
     .errors = {{[] { (void)median(zeros({0})); }, "median: [0] f32 has no elements"}},
     .i64 = true,
     .no_empty = "there is no median of nothing"},
    {.name = "quantile",
     .formula = "x[k] + w·(x[k + 1] − x[k]) of the sorted x, k + w = q·(n − 1)",
     .vjp = "(1 − w)·g and w·g at the two",
     .fn = [](Args a, const Params& p) { return quantile(a[0], static_cast<double>(p.a) / 100, p.b, p.c != 0); },
     .ref =
         [](const Arrays& a, const Params& p) {
           return reference::reduce(a[0], {p.b}, p.c != 0,
                                    [&](const Line& x) { return quantile_of(x, static_cast<double>(p.a) / 100); });
         },
     .samples = {{{real(3, 4)}, {30, 1, 0}},
                 {{real(3, 4)}, {90, 0, 1}},
                 {{real(2, 5, 2)}, {50, 1, 0}},
                 {{real(5)}, {0, 0, 0}},
                 {{real(5)}, {100, 0, 0}}},
     .empty = {{real(0, 3)}, {50, 1, 0}},
     .large = {{real(300, 401)}, {37, 0, 0}},
     .errors = {{[] { (void)quantile(zeros({2}), 1.5, 0); }, "quantile: q is 1.5; use 0 ≤ q ≤ 1"},
                {[] { (void)quantile(zeros({0}), 0.5, 0); }, "quantile: [0] f32 has no elements along dims [0]"}}},
    {.name = "searchsorted",
     .formula = "number of elements of the row that are smaller (right: not larger)",
     .fn = [](Args a, const Params& p) { return searchsorted(sort(a[0])[0], a[1], p.a != 0); },
     .ref =
         [](const Arrays& a, const Params& p) {
           return reference::build(a[1].shape, [&](const Dims& i) {
             Dims row = i;
             if (a[0].shape.rank() == 1) row = Dims{0};
             int64_t before = 0;
             for (const double x : reference::line(a[0], row.rank() - 1, row))
               before += p.a != 0 ? x <= a[1](i) : x < a[1](i);
             return before;
           });
         },
     .samples = {{{real(7), real(2, 3)}, {0}},
                 {{real(7), real(4)}, {1}},
                 {{real(2, 5), real(2, 3)}, {0}},
                 {{real(2, 5), real(2, 3)}, {1}}},
     .empty = {{real(0), real(3)}, {0}},
     .errors = {{[] {
                   (void)searchsorted(zeros({2, 5}), zeros({3, 1}));
                 },
                 "searchsorted: sorted is [2, 5] f32, values is [3, 1] f32; sorted has rank 1"},
                {[] { (void)searchsorted(zeros({2}), zeros({2}, DType::i64)); },
                 "searchsorted: dtypes differ: f32 and i64"}},
     .differentiable = false,
     .i64 = true},
};

}  // namespace

std::span<const OpRow> sort_rows() { return rows; }

}  // namespace tapestry::op_table
