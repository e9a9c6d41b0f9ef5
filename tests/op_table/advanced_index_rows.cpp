// Rows of NumPy's indexing. The references spell out the loops of each expression.
#include "../../ops/ops.h"
#include "op_table.h"

namespace tapestry::op_table {
namespace {

using reference::build;

/// An index that counts from the end where negative.
int64_t counted(double index, int64_t size) { return static_cast<int64_t>(index) + (index < 0 ? size : 0); }

/// Positions at which the mask, of x's leading sizes or broadcast to all of them, is true.
std::vector<Dims> where_true(const Array& mask, const Shape& shape) {
  std::vector<Dims> places;
  reference::for_each(shape, [&](const Dims& i) {
    if (mask.broadcast(i) != 0) places.push_back(i);
  });
  return places;
}

Tensor ids(std::initializer_list<NestedList> values) { return tensor<int64_t>(values); }

constexpr OpRow rows[] = {
    {.name = "index",
     .formula = "y = x[indices…] as in NumPy",
     .vjp = "zeros like x with g added at the indices",
     .fn =
         [](Args a) {
           return index(a[0], {Index(), a[1], a[2]});  // x[:, i, j]
         },
     .ref =
         [](const Arrays& a) {
           Shape shape = {a[0].shape[0], a[1].shape[0], a[2].shape[0]};
           return build(shape, [&](const Dims& i) {
             return a[0]({i[0], counted(a[1]({i[1], 0}), a[0].shape[1]), counted(a[2]({i[2]}), a[0].shape[2])});
           });
         },
     .samples = {{{real(2, 3, 4), index(3, 2, 1).in(-3, 3), index(4, 3)}}},
     .empty = {{real(2, 3, 4), index(3, 2, 1), index(4, 0)}},
     .errors = {{[] {
                   (void)index(zeros({2, 3}), {Index(), ids({0, 3})});
                 },
                 "index: index 3 at [1] is out of range for dim 1 of [2, 3] f32"},
                {[] {
                   (void)index(zeros({2, 3}), {ids({0, 1}), ids({0, 1, 2})});
                 },
                 "index: cannot broadcast [2] with [3] (dim -1: 2 vs 3)"},
                {[] {
                   (void)index(zeros({2, 3}), {zeros({2})});
                 },
                 "index: indices must be i64, got [2] f32"}},
     .i64 = true},
    {.name = "index (parted)",
     .formula = "y = x[i, :, j], the dims of i and j first",
     .vjp = "zeros like x with g added at the indices",
     .fn =
         [](Args a) {
           return index(a[0], {a[1], Index(), a[2]});
         },
     .ref =
         [](const Arrays& a) {
           return build({a[1].shape[0], a[0].shape[1]}, [&](const Dims& i) {
             return a[0]({a[1].number({i[0]}), i[1], a[2].number({i[0]})});
           });
         },
     .samples = {{{real(2, 3, 4), index(2, 3), index(4, 3)}}},
     .empty = {{real(2, 0, 4), index(2, 3), index(4, 3)}},
     .errors = {{[] {
                   (void)index(zeros({2, 3}), {0, 0, 0});
                 },
                 "index: 3 indices for [2, 3] f32, which has 2 dims; give at most one a dim"}},
     .i64 = true},
    {.name = "index (numbers and ranges)",
     .formula = "y = x[−1, i, 4:0:−2], a number beside a tensor being one of the indices",
     .vjp = "zeros like x with g added at the indices",
     .fn =
         [](Args a) {
           return index(a[0], {-1, a[1], range(4, 0, -2)});
         },
     .ref =
         [](const Arrays& a) {
           return build({a[1].shape[0], 2}, [&](const Dims& i) {
             return a[0]({a[0].shape[0] - 1, a[1].number({i[0]}), 4 - 2 * i[1]});
           });
         },
     .samples = {{{real(2, 3, 5), index(3, 4)}}},
     .empty = {{real(2, 3, 5), index(3, 0)}},
     .errors = {{[] {
                   (void)index(zeros({2, 3}), {0, 3});
                 },
                 "index: index 3 is out of range for dim 1 of [2, 3] f32; use -3 to 2"},
                {[] { (void)range(0, 1, 0); }, "range: step 0; use a positive or negative step"}},
     .i64 = true},
    {.name = "index (mask)",
     .formula = "y = x[mask, 1:], the mask standing for the dims whose sizes it has",
     .vjp = "zeros like x with g at the places where the mask is true",
     .fn =
         [](Args a) {
           return index(a[0], {a[1], range(1, {})});
         },
     .ref =
         [](const Arrays& a) {
           const auto places = where_true(a[1], a[1].shape);
           return build({static_cast<int64_t>(places.size()), a[0].shape[2] - 1}, [&](const Dims& i) {
             const Dims& at = places[static_cast<size_t>(i[0])];
             return a[0]({at[0], at[1], i[1] + 1});
           });
         },
     .samples = {{{real(3, 2, 3), mask(3, 2)}}},
     .empty = {{real(0, 2, 3), mask(0, 2)}},
     .errors = {{[] {
                   (void)index(zeros({2, 3}), {zeros({3}, DType::boolean)});
                 },
                 "index: the mask [3] bool does not fit [2, 3] f32 from dim 0 on"}},
     .i64 = true},
    {.name = "index_put",
     .vjp = "x: g, 0 where written; values: g at the indices where it stayed, else 0",
     .fn =
         [](Args a, const Params& p) {
           return index_put(a[0], {Index(), a[1]}, a[2], p.a != 0);
         },
     .ref =
         [](const Arrays& a, const Params& p) {
           Array y = a[0];
           reference::for_each({y.shape[0], a[1].shape[0]}, [&](const Dims& i) {
             double& at = y({i[0], counted(a[1]({i[1]}), y.shape[1])});
             at = a[2].broadcast(i) + (p.a != 0 ? at : 0);
           });
           return y;
         },
     .samples = {{{real(3, 4), index(4, 6).in(-4, 4), real(3, 6)}, {0}}, {{real(3, 4), index(4, 3), real(3, 1)}, {0}}},
     .empty = {{real(3, 4), index(4, 0), real(3, 0)}, {0}},
     .large = {{real(100, 64), index(64, 400), real(100, 400)}, {0}},
     .errors = {{[] {
                   (void)index_put(zeros({2, 3}), {ids({0, 2})}, zeros({3}));
                 },
                 "index_put: index 2 at [1] is out of range for dim 0 of [2, 3] f32"},
                {[] {
                   (void)index_put(zeros({2, 3}), {ids({0, 1})}, zeros({2}));
                 },
                 "index_put: cannot expand [2] to [2, 3] (dim -1: 2 vs 3)"},
                {[] { (void)index_put(zeros({2}), {0}, scalar(1, DType::i64)); },
                 "index_put: dtypes differ: x is [2] f32, values is [] i64"}},
     .i64 = true},
    {.name = "index_put (accumulate)",
     .formula = "y = x; y[indices…] += values",
     .vjp = "x: g; values: g at the indices",
     .fn =
         [](Args a) {
           return index_put(a[0], {a[1], range(0, {}, 2), a[1]}, a[2], true);
         },
     .ref =
         [](const Arrays& a) {
           Array y = a[0];
           reference::for_each({a[1].shape[0], (y.shape[1] + 1) / 2}, [&](const Dims& i) {
             y({a[1].number({i[0]}), 2 * i[1], a[1].number({i[0]})}) += a[2].broadcast(i);
           });
           return y;
         },
     .samples = {{{real(2, 3, 2), index(2, 4), real(2)}}, {{real(2, 3, 2), index(2, 3), real(3, 2)}}},
     .empty = {{real(2, 3, 2), index(2, 0), real(2)}},
     .errors = {{[] { (void)index_put(zeros({2}, DType::boolean), {0}, zeros({}, DType::boolean), true); },
                 "index_put: bool elements cannot be added"}},
     .i64 = true},
    {.name = "masked_select",
     .formula = "y = the x where mask, in row-major order",
     .vjp = "zeros like x with g where mask",
     .fn = [](Args a) { return masked_select(a[0], a[1]); },
     .ref =
         [](const Arrays& a) {
           Array y{{0}, {}};
           for (const Dims& i : where_true(a[1], broadcast_shapes("reference", a[0].shape, a[1].shape)))
             y.values.push_back(a[0].broadcast(i));
           y.shape[0] = static_cast<int64_t>(y.values.size());
           return y;
         },
     .samples = {{{real(3, 4), mask(3, 4)}}, {{real(3, 1), mask(4)}}, {{real(5), mask(3, 1)}}},
     .empty = {{real(0, 4), mask(0, 4)}},
     .large = {{real(300, 401), mask(300, 401)}},
     .errors = {{[] { (void)masked_select(zeros({2}), zeros({2})); },
                 "masked_select: the mask must be bool, got [2] f32"},
                {[] { (void)masked_select(zeros({2}), zeros({3}, DType::boolean)); },
                 "masked_select: cannot broadcast [2] with [3]"}},
     .i64 = true},
    {.name = "masked_scatter",
     .formula = "y = x, the elements where mask replaced by those of src in order",
     .vjp = "x: g, 0 where mask; src: g where mask, in order",
     .fn = [](Args a) { return masked_scatter(a[0], a[1], a[2]); },
     .ref =
         [](const Arrays& a) {
           Array y = a[0];
           size_t k = 0;
           for (const Dims& i : where_true(a[1], y.shape)) y(i) = a[2].values[k++];
           return y;
         },
     .samples = {{{real(3, 4), mask(3, 4), real(12)}}, {{real(3, 2), mask(3, 1), real(2, 3)}}},
     .empty = {{real(0, 4), mask(0, 4), real(0)}},
     .errors = {{[] { (void)masked_scatter(zeros({2}), ones({2}, DType::boolean), zeros({1})); },
                 "masked_scatter: the mask is true 2 times, src [1] f32 has 1 elements; give as many"}},
     .i64 = true},
    {.name = "nonzero",
     .formula = "y[k] = position of the k-th nonzero element",
     .fn = [](Args a) { return nonzero(a[0]); },
     .ref =
         [](const Arrays& a) {
           const auto places = where_true(a[0], a[0].shape);
           return build({static_cast<int64_t>(places.size()), a[0].shape.rank()},
                        [&](const Dims& i) { return places[static_cast<size_t>(i[0])][static_cast<int>(i[1])]; });
         },
     .samples = {{{mask(3, 4)}}, {{constant(2, 3)}}, {{index(2, 2, 2, 3)}}, {{mask()}}},
     .empty = {{mask(0, 4)}},
     .errors = {{[] { (void)nonzero(Tensor{}); }, "nonzero: the tensor is undefined"}},
     .differentiable = false},
};

}  // namespace

std::span<const OpRow> advanced_index_rows() { return rows; }

}  // namespace tapestry::op_table
