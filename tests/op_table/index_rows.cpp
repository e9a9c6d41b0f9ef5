// Rows of indexing.
#include "../../ops/ops.h"
#include "op_table.h"

namespace tapestry::op_table {
namespace {

using reference::build;
using reference::replaced;
using reference::wrap;

/// An index that counts from the end where negative.
int64_t counted(double index, int64_t size) { return static_cast<int64_t>(index) + (index < 0 ? size : 0); }

Array embedded(const Array& table, const Array& ids) {
  Shape shape = ids.shape;
  shape.push_back(table.shape[1]);
  return build(shape, [&](const Dims& i) {
    return table({ids.number(reference::erased(i, i.rank() - 1)), i[i.rank() - 1]});
  });
}

Array scattered(Array x, int dim, const Array& index, const Array& src) {
  reference::for_each(index.shape, [&](const Dims& i) { x(replaced(i, dim, index.number(i))) += src(i); });
  return x;
}

Array selected(const Array& x, int dim, const Array& index) {
  Shape shape = x.shape;
  shape[dim] = index.shape[0];
  return build(shape, [&](const Dims& i) { return x(replaced(i, dim, counted(index({i[dim]}), x.shape[dim]))); });
}

Array added(Array x, int dim, const Array& index, const Array& src) {
  reference::for_each(src.shape,
                      [&](const Dims& i) { x(replaced(i, dim, counted(index({i[dim]}), x.shape[dim]))) += src(i); });
  return x;
}

Tensor ids(std::initializer_list<NestedList> values) { return tensor<int64_t>(values); }

constexpr OpRow rows[] = {
    {.name = "embedding",
     .fn = [](Args a) { return embedding(a[0], a[1]); },
     .ref = [](const Arrays& a) { return embedded(a[0], a[1]); },
     .samples = {{{real(5, 3), index(5, 4)}}, {{real(5, 2), index(5, 2, 3)}}, {{real(3, 2), index(3)}}},
     .empty = {{real(5, 3), index(5, 0)}},
     .large = {{real(100, 64), index(100, 5000)}},
     .errors = {{[] {
                   (void)embedding(zeros({5, 2}), ids({{1, 5}}));
                 },
                 "embedding: index 5 at [0, 1] is out of range for a table of 5 rows"},
                {[] {
                   (void)embedding(zeros({5, 2}), ids({-1}));
                 },
                 "embedding: index -1 at [0] is out of range for a table of 5 rows"},
                {[] {
                   (void)embedding(zeros({5, 2}), zeros({2}));
                 },
                 "embedding: indices must be i64, got [2] f32"}}},
    {.name = "gather",
     .fn = [](Args a, const Params& p) { return gather(a[0], p.a, a[1]); },
     .ref =
         [](const Arrays& a, const Params& p) {
           const int dim = wrap(p.a, a[0].shape.rank());
           return build(a[1].shape, [&](const Dims& i) { return a[0](replaced(i, dim, a[1].number(i))); });
         },
     .samples = {{{real(4, 3), index(4, 2, 3)}, {0}},
                 {{real(3, 4), index(4, 3, 5)}, {-1}},
                 {{real(5), index(5, 3)}, {0}}},
     .empty = {{real(4, 3), index(4, 0, 3)}, {0}},
     .large = {{real(300, 401), index(401, 300, 401)}, {1}},
     .errors = {{[] {
                   (void)gather(zeros({2, 3}), 1, ids({{0, 3}, {0, 0}}));
                 },
                 "gather: index 3 at [0, 1] is out of range"},
                {[] {
                   (void)gather(zeros({2, 3}), 1, ids({0}));
                 },
                 "gather: index [1] i64 does not fit x [2, 3] f32"}},
     .i64 = true},
    {.name = "scatter_add",
     .fn = [](Args a, const Params& p) { return scatter_add(a[0], p.a, a[1], a[2]); },
     .ref = [](const Arrays& a, const Params& p) { return scattered(a[0], wrap(p.a, a[0].shape.rank()), a[1], a[2]); },
     .samples = {{{real(4, 3), index(4, 5, 3), real(5, 3)}, {0}}, {{real(3, 4), index(4, 3, 2), real(3, 2)}, {-1}}},
     .empty = {{real(4, 3), index(4, 0, 3), real(0, 3)}, {0}},
     .large = {{real(100, 64), index(100, 1000, 64), real(1000, 64)}, {0}},
     .errors = {{[] { (void)scatter_add(zeros({3}), 0, ids({3}), zeros({1})); },
                 "scatter_add: index 3 at [0] is out of range"},
                {[] { (void)scatter_add(zeros({3}), 0, ids({1}), zeros({2})); },
                 "scatter_add: index is [1] i64, src is [2] f32; they must have one shape"}},
     .i64 = true},
    {.name = "index_select",
     .fn = [](Args a, const Params& p) { return index_select(a[0], p.a, a[1]); },
     .ref = [](const Arrays& a, const Params& p) { return selected(a[0], wrap(p.a, a[0].shape.rank()), a[1]); },
     .samples = {{{real(4, 3), index(4, 5)}, {0}},
                 {{real(3, 4), index(4, 3).in(-4, 4)}, {-1}},
                 {{real(2, 3, 2), index(3, 2)}, {1}}},
     .empty = {{real(4, 3), index(4, 0)}, {0}},
     .large = {{real(100, 64), index(100, 5000)}, {0}},
     .errors = {{[] { (void)index_select(zeros({3}), 0, ids({-4})); }, "index_select: index -4 at [0] is out of range"},
                {[] { (void)index_select(zeros({3}), 0, ids({{1}})); },
                 "index_select: index is [1, 1] i64; it must have rank 1"}},
     .i64 = true},
    {.name = "index_add",
     .fn = [](Args a, const Params& p) { return index_add(a[0], p.a, a[1], a[2]); },
     .ref = [](const Arrays& a, const Params& p) { return added(a[0], wrap(p.a, a[0].shape.rank()), a[1], a[2]); },
     .samples = {{{real(4, 3), index(4, 5), real(5, 3)}, {0}}, {{real(3, 4), index(4, 2).in(-4, 4), real(3, 2)}, {-1}}},
     .empty = {{real(4, 3), index(4, 0), real(0, 3)}, {0}},
     .large = {{real(100, 64), index(100, 3000), real(3000, 64)}, {0}},
     .errors = {{[] {
                   (void)index_add(zeros({3, 2}), 0, ids({0, 1}), zeros({1, 2}));
                 },
                 "index_add: src is [1, 2] f32, with x [3, 2] f32 and index [2] i64 along dim 0 it must be"}},
     .i64 = true},
    {.name = "one_hot",
     .formula = "y[…k] = 1 where k = ids[…], else 0",
     .fn = [](Args a, const Params& p) { return one_hot(a[0], p.a, DType::f64); },
     .ref =
         [](const Arrays& a, const Params& p) {
           Shape shape = a[0].shape;
           shape.push_back(p.a);
           return build(shape, [&](const Dims& i) {
             return a[0].number(reference::erased(i, i.rank() - 1)) == i[i.rank() - 1];
           });
         },
     .samples = {{{index(3, 4)}, {3}}, {{index(3, 2, 2)}, {4}}, {{index(3)}, {3}}},
     .empty = {{index(3, 0)}, {3}},
     .errors = {{[] {
                   (void)one_hot(ids({0, 3}), 3);
                 },
                 "one_hot: index 3 at [1] is out of range for 3 classes"}},
     .differentiable = false},
};

}  // namespace

std::span<const OpRow> index_rows() { return rows; }

}  // namespace tapestry::op_table
