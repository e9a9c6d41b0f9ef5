// Rows of what sees a tensor through other strides: diagonals, windows, as_strided; and of their adjoints.
#include <algorithm>
#include <cstdlib>

#include "../../ops/ops.h"
#include "op_table.h"

namespace tapestry::op_table {
namespace {

using reference::build;
using reference::erased;
using reference::replaced;
using reference::wrap;

Array diagonal_of(const Array& x, int64_t offset, int rows, int columns) {
  int64_t length = 0;
  for (int64_t i = 0; i < x.shape[rows]; ++i) length += i + offset >= 0 && i + offset < x.shape[columns] ? 1 : 0;
  const Shape rest = erased(erased(x.shape, std::max(rows, columns)), std::min(rows, columns));
  Shape shape = rest;
  shape.push_back(length);
  return build(shape, [&](const Dims& i) {
    const int64_t k = i[i.rank() - 1], row = offset < 0 ? k - offset : k;
    Dims from = erased(i, i.rank() - 1);
    const bool rows_first = rows < columns;
    from.insert(std::min(rows, columns), rows_first ? row : row + offset);
    from.insert(std::max(rows, columns), rows_first ? row + offset : row);
    return x(from);
  });
}

Array strided(const Array& x, const Shape& shape, const Dims& strides, int64_t offset) {
  return build(shape, [&](const Dims& i) {
    int64_t at = offset;
    for (int d = 0; d < i.rank(); ++d) at += i[d] * strides[d];
    return x.values[static_cast<size_t>(at)];
  });
}

Array windows_of(const Array& x, int dim, int64_t size, int64_t step) {
  Shape shape = x.shape;
  shape[dim] = (x.shape[dim] - size) / step + 1;
  shape.push_back(size);
  return build(shape, [&](const Dims& i) {
    const int last = i.rank() - 1;
    return x(replaced(erased(i, last), dim, i[dim] * step + i[last]));
  });
}

Array folded(const Array& windows, int dim, int64_t length, int64_t step) {
  Shape shape = erased(windows.shape, windows.shape.rank() - 1);
  shape[dim] = length;
  Array y = build(shape, [](const Dims&) { return 0.0; });
  reference::for_each(windows.shape, [&](const Dims& i) {
    const int last = i.rank() - 1;
    y(replaced(erased(i, last), dim, i[dim] * step + i[last])) += windows(i);
  });
  return y;
}

constexpr OpRow rows[] = {
    {.name = "diagonal",
     .fn = [](Args a, const Params& p) { return diagonal(a[0], p.a, p.b, p.c); },
     .ref =
         [](const Arrays& a, const Params& p) {
           return diagonal_of(a[0], p.a, wrap(p.b, a[0].shape.rank()), wrap(p.c, a[0].shape.rank()));
         },
     .samples = {{{real(3, 4)}, {0, -2, -1}},
                 {{real(3, 4)}, {2, 0, 1}},
                 {{real(2, 3, 4)}, {-1, 2, 0}},
                 {{real(4, 2, 3)}, {-1, 0, 2}}},
     .empty = {{real(0, 3)}, {0, 0, 1}},
     .errors = {{[] {
                   (void)diagonal(zeros({2, 3}), 0, 1, -1);
                 },
                 "diagonal: dim0 and dim1 are both dim 1 of [2, 3] f32; name two dims"},
                {[] { (void)diagonal(zeros({3})); }, "diagonal: [3] f32 has rank 1"}},
     .i64 = true},
    {.name = "diag_embed",
     .fn = [](Args a, const Params& p) { return diag_embed(a[0], p.a); },
     .ref =
         [](const Arrays& a, const Params& p) {
           Shape shape = a[0].shape;
           shape[shape.rank() - 1] += std::abs(p.a);
           shape.push_back(shape[shape.rank() - 1]);
           return build(shape, [&](const Dims& i) {
             const int r = i.rank() - 2;
             const int64_t k = std::min(i[r], i[r + 1]);
             return i[r + 1] - i[r] == p.a ? a[0](replaced(erased(i, r + 1), r, k)) : 0.0;
           });
         },
     .samples = {{{real(3)}, {0}}, {{real(2, 3)}, {-2}}, {{real(2, 1, 2)}, {1}}},
     .empty = {{real(0)}, {1}},
     .errors = {{[] { (void)diag_embed(scalar(1)); }, "diag_embed: [] f32 has rank 0"},
                {[] { (void)diag_embed(zeros({2}), INT64_MAX); }, "diag_embed: offset 9223372036854775807 makes"}},
     .i64 = true},
    {.name = "as_strided",
     .fn =
         [](Args a, const Params& p) {
           return as_strided(contiguous(a[0]), {p.a, p.b}, {p.c, p.d}, 1);
         },
     .ref =
         [](const Arrays& a, const Params& p) {
           return strided(a[0], {p.a, p.b}, {p.c, p.d}, 1);
         },
     .samples = {{{real(3, 4)}, {5, 3, 2, 1}}, {{real(3, 4)}, {2, 3, 0, 3}}},
     .empty = {{real(3, 4)}, {0, 3, 2, 1}},
     .errors =
         {{[] {
             (void)as_strided(zeros({2, 3}), {4}, {2}, 0);
           },
           "as_strided: [4] with strides [2] and offset 0 leaves the storage of [2, 3] f32: it holds 6 elements"},
          {[] {
             (void)as_strided(zeros({2, 3}), {2}, {-1}, 0);
           },
           "as_strided: [2] with strides [-1] and offset 0 leaves the storage"},
          {[] { (void)as_strided(slice(zeros({6}).requires_grad_(), 0, 0, {}, 2), {2}, {1}, 0); },
           "as_strided: the view reads position 1 of the storage, counted from x's first element, where x [3] f32 "
           "with strides [2] has none"}},
     .i64 = true},
    {.name = "as_strided (of a view)",
     .formula = "y[j…] = x's storage at offset + Σ j·strides",
     .vjp = "g added up at its positions; elements of x on one position share the sum",
     .fn =
         [](Args a, const Params& p) {
           const Tensor x = p.a == 0 ? expand(unsqueeze(contiguous(a[0]), -1), {3, 4, 2})  // 2 elements a position
                                     : flip(mT(contiguous(a[0])), {0});                    // begins at the last column
           return as_strided(x, {2, 3}, {p.b, p.c}, p.d);
         },
     .ref =
         [](const Arrays& a, const Params& p) {
           return strided(a[0], {2, 3}, {p.b, p.c}, p.d + (p.a == 0 ? 0 : 3));
         },
     .samples = {{{real(3, 4)}, {0, 4, 2, 1}}, {{real(3, 4)}, {1, -1, 4, 0}}, {{real(3, 4)}, {0, 2, 2, 0}}},
     .errors = {{[] {
                   (void)as_strided(zeros({2, 3}), {4, 1}, {2}, 0);
                 },
                 "as_strided: shape [4, 1] has 2 dims, strides [2] 1; give one stride a dim"}},
     .i64 = true,
     .no_empty = "its sizes are given"},
    {.name = "unfold",
     .fn = [](Args a, const Params& p) { return unfold(a[0], p.a, p.b, p.c); },
     .ref = [](const Arrays& a, const Params& p) { return windows_of(a[0], wrap(p.a, a[0].shape.rank()), p.b, p.c); },
     .samples =
         {{{real(6)}, {0, 3, 1}}, {{real(2, 7, 2)}, {1, 3, 2}}, {{real(2, 9)}, {-1, 2, 3}}, {{real(3)}, {0, 3, 5}}},
     .empty = {{real(0, 5)}, {1, 2, 1}},
     .large = {{real(40, 400)}, {1, 32, 3}},
     .errors = {{[] {
                   (void)unfold(zeros({2, 3}), 1, 4, 1);
                 },
                 "unfold: windows of size 4 are longer than dim 1 of [2, 3] f32; use at most 3"},
                {[] { (void)unfold(zeros({3}), 0, 2, 0); }, "unfold: step 0; it must be 1 or more"}},
     .i64 = true},
    {.name = "fold",
     .fn = [](Args a, const Params& p) { return fold(a[0], p.a, p.b, p.c); },
     .ref = [](const Arrays& a, const Params& p) { return folded(a[0], wrap(p.a, a[0].shape.rank() - 1), p.b, p.c); },
     .samples = {{{real(4, 3)}, {0, 6, 1}}, {{real(2, 3, 2, 3)}, {1, 7, 2}}, {{real(2, 3, 2)}, {-1, 9, 3}}},
     .empty = {{real(0, 4, 2)}, {1, 5, 1}},
     .large = {{real(40, 124, 32)}, {1, 401, 3}},
     .errors = {{[] {
                   (void)fold(zeros({4, 3}), 0, 7, 1);
                 },
                 "fold: a dim of 7 has 5 windows of 3 every 1, but dim 0 of [4, 3] f32 holds 4"},
                {[] { (void)fold(zeros({4}), 0, 7, 1); }, "fold: [4] f32 has rank 1"}},
     .i64 = true},
};

}  // namespace

std::span<const OpRow> stride_rows() { return rows; }

}  // namespace tapestry::op_table
