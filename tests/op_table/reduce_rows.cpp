// Rows of the reductions.
#include <algorithm>

#include "../../ops/ops.h"
#include "op_table.h"

namespace tapestry::op_table {
namespace {

using reference::reduce;

// p.c says how many of p.a, p.b are dims; p.d is keepdim.
Dims dims(const Params& p) {
  Dims list;
  if (p.c > 0) list.push_back(p.a);
  if (p.c > 1) list.push_back(p.b);
  return list;
}

using Line = std::vector<double>;

double smallest(const Line& xs) {
  double best = reference::inf;
  for (const double x : xs) best = x < best ? x : best;
  return best;
}
double place_of_largest(const Line& xs) {
  size_t best = 0;
  for (size_t i = 1; i < xs.size(); ++i)
    if (xs[i] > xs[best]) best = i;
  return static_cast<double>(best);
}
double place_of_smallest(Line xs) {
  for (double& x : xs) x = -x;
  return place_of_largest(xs);
}

template <class F>
constexpr OpRow reduction(const char* name, Function fn, F, const char* error, void (*wrong)(), bool i64,
                          bool of_nothing) {
  OpRow row;
  row.name = name;
  row.fn = fn;
  row.ref = [](const Arrays& a, const Params& p) { return reduce(a[0], dims(p), p.d != 0, F{}); };
  row.samples[0] = {{real(3, 4)}, {1, 0, 1, 0}};
  row.samples[1] = {{real(2, 3, 2)}, {0, -1, 2, 1}};
  row.samples[2] = {{real(3, 4)}, {0, 0, 0, 0}};
  row.samples[3] = {{real()}, {0, 0, 0, 0}};
  row.samples[4] = {{real(2, 3, 2)}, {1, 0, 1, 1}};
  row.empty = of_nothing ? Sample{{real(0, 3)}, {0, 0, 1, 0}} : Sample{{real(0, 3)}, {1, 0, 1, 0}};
  row.large = {{real(300, 401)}, {0, 0, 1, 0}};
  row.errors[0] = {wrong, error};
  row.i64 = i64;
  return row;
}

constexpr OpRow bools(OpRow row, const char* formula) {
  row.differentiable = false;
  row.formula = formula;
  return row;
}

constexpr OpRow along(const char* name, Function fn, Reference ref, const char* error, void (*wrong)(),
                      bool differentiable, const char* formula = nullptr) {
  OpRow row;
  row.name = name;
  row.formula = formula;
  row.fn = fn;
  row.ref = ref;
  row.samples[0] = {{real(3, 4)}, {1, 0}};
  row.samples[1] = {{real(3, 4)}, {0, 1}};
  row.samples[2] = {{real(2, 3, 2)}, {-2, 0}};
  row.samples[3] = {{real(5)}, {0, 0}};
  row.empty = {{real(0, 3)}, {1, 0}};
  row.large = {{real(300, 401)}, {0, 0}};
  row.errors[0] = {wrong, error};
  row.i64 = true;
  row.differentiable = differentiable;
  return row;
}

template <class V, class I>
Arrays value_and_place(const Arrays& a, const Params& p, V value, I place) {
  return {reduce(a[0], {p.a}, p.b != 0, value), reduce(a[0], {p.a}, p.b != 0, place)};
}

constexpr OpRow rows[] = {
    reduction(
        "sum", [](Args a, const Params& p) { return sum(a[0], dims(p), p.d != 0); },
        [](const Line& x) { return reference::total(x); }, "sum: dim 2 is out of range for rank 2",
        [] {
          (void)sum(zeros({2, 3}), {2});
        },
        true, true),
    reduction(
        "mean", [](Args a, const Params& p) { return mean(a[0], dims(p), p.d != 0); },
        [](const Line& x) { return reference::total(x) / static_cast<double>(x.size()); }, "mean: ",
        [] {
          (void)mean(zeros({2, 3}, DType::i64));
        },
        false, true),
    reduction(
        "amax", [](Args a, const Params& p) { return amax(a[0], dims(p), p.d != 0); },
        [](const Line& x) { return reference::largest(x); }, "amax: [0] f32 has no elements along dims",
        [] { (void)amax(zeros({0})); }, true, false),
    reduction(
        "amin", [](Args a, const Params& p) { return amin(a[0], dims(p), p.d != 0); },
        [](const Line& x) { return smallest(x); },
        "amin: dim 1 is named twice in [1, -1] for [2, 3] f32; name each dim once",
        [] {
          (void)amin(zeros({2, 3}), {1, -1});
        },
        true, false),
    {.name = "max",
     .formula = "largest x of all",
     .vjp = "g/(number of ties) where x = y, else 0",
     .fn = [](Args a) { return max(a[0]); },
     .ref = [](const Arrays& a) { return reduce(a[0], {}, false, reference::largest); },
     .samples = {{{real(3, 4)}}, {{real()}}},
     .errors = {{[] {
                   (void)max(zeros({0, 2}));
                 },
                 "max: [0, 2] f32 has no elements along dims"}},
     .i64 = true,
     .no_empty = "there is no largest of nothing"},
    {.name = "min",
     .formula = "smallest x of all",
     .vjp = "g/(number of ties) where x = y, else 0",
     .fn = [](Args a) { return min(a[0]); },
     .ref = [](const Arrays& a) { return reduce(a[0], {}, false, smallest); },
     .samples = {{{real(3, 4)}}, {{real()}}},
     .errors = {{[] {
                   (void)min(zeros({0, 2}));
                 },
                 "min: [0, 2] f32 has no elements along dims"}},
     .i64 = true,
     .no_empty = "there is no smallest of nothing"},
    along(
        "max (dim)", [](Args a, const Params& p) { return max(a[0], p.a, p.b != 0); },
        [](const Arrays& a, const Params& p) { return value_and_place(a, p, reference::largest, place_of_largest); },
        "max: [2, 0] f32 has no elements along dims",
        [] {
          (void)max(zeros({2, 0}), 1);
        },
        true),
    along(
        "min (dim)", [](Args a, const Params& p) { return min(a[0], p.a, p.b != 0); },
        [](const Arrays& a, const Params& p) { return value_and_place(a, p, smallest, place_of_smallest); },
        "min: [2, 0] f32 has no elements along dims",
        [] {
          (void)min(zeros({2, 0}), 1);
        },
        true),
    along(
        "argmax", [](Args a, const Params& p) { return argmax(a[0], p.a, p.b != 0); },
        [](const Arrays& a, const Params& p) { return reduce(a[0], {p.a}, p.b != 0, place_of_largest); },
        "argmax: [2, 0] f32 has no elements along dims",
        [] {
          (void)argmax(zeros({2, 0}), 1);
        },
        false, "index of the first largest x along dim"),
    along(
        "argmin", [](Args a, const Params& p) { return argmin(a[0], p.a, p.b != 0); },
        [](const Arrays& a, const Params& p) { return reduce(a[0], {p.a}, p.b != 0, place_of_smallest); },
        "argmin: [2, 0] f32 has no elements along dims",
        [] {
          (void)argmin(zeros({2, 0}), 1);
        },
        false, "index of the first smallest x along dim"),
    {.name = "argmax (all)",
     .formula = "row-major index of the first largest x",
     .fn = [](Args a) { return argmax(a[0]); },
     .ref = [](const Arrays& a) { return reduce(a[0], {}, false, place_of_largest); },
     .samples = {{{real(3, 4)}}},
     .errors = {{[] { (void)argmax(zeros({0})); }, "argmax: [0] f32 has no elements"}},
     .differentiable = false,
     .i64 = true,
     .no_empty = "there is no largest of nothing"},
    {.name = "argmin (all)",
     .formula = "row-major index of the first smallest x",
     .fn = [](Args a) { return argmin(a[0]); },
     .ref = [](const Arrays& a) { return reduce(a[0], {}, false, place_of_smallest); },
     .samples = {{{real(3, 4)}}},
     .errors = {{[] { (void)argmin(zeros({0})); }, "argmin: [0] f32 has no elements"}},
     .differentiable = false,
     .i64 = true,
     .no_empty = "there is no smallest of nothing"},
    bools(reduction(
              "any", [](Args a, const Params& p) { return any(a[0] > 1, dims(p), p.d != 0); },
              [](const Line& x) {
                bool y = false;
                for (const double v : x) y = y || v > 1;
                return y;
              },
              "any: dim 2 is out of range for rank 2",
              [] {
                (void)any(zeros({2, 3}), {2});
              },
              true, true),
          "some x ≠ 0 over dims"),
    bools(reduction(
              "all", [](Args a, const Params& p) { return all(a[0] > -1, dims(p), p.d != 0); },
              [](const Line& x) {
                bool y = true;
                for (const double v : x) y = y && v > -1;
                return y;
              },
              "all: dim 2 is out of range for rank 2",
              [] {
                (void)all(zeros({2, 3}), {2});
              },
              true, true),
          "every x ≠ 0 over dims"),
    reduction(
        "logsumexp", [](Args a, const Params& p) { return logsumexp(a[0], dims(p), p.d != 0); },
        [](const Line& x) { return reference::log_sum_exp(x); }, "logsumexp: dim -3 is out of range for rank 2",
        [] {
          (void)logsumexp(zeros({2, 3}), {-3});
        },
        false, true),
    reduction(
        "prod", [](Args a, const Params& p) { return prod(a[0], dims(p), p.d != 0); },
        [](const Line& x) {
          double y = 1;
          for (const double v : x) y *= v;
          return y;
        },
        "prod: dim 2 is out of range for rank 2",
        [] {
          (void)prod(zeros({2, 3}), {2});
        },
        true, true),
    {.name = "count_nonzero",
     .formula = "number of x ≠ 0 over dims",
     .fn = [](Args a, const Params& p) { return count_nonzero(a[0] > 0, dims(p)); },
     .ref =
         [](const Arrays& a, const Params& p) {
           return reduce(a[0], dims(p), false, [](const Line& x) {
             return std::count_if(x.begin(), x.end(), [](double v) { return v > 0; });
           });
         },
     .samples = {{{real(3, 4)}, {1, 0, 1}}, {{real(2, 3, 2)}, {0, 2, 2}}, {{real(3, 4)}}},
     .empty = {{real(0, 3)}, {0, 0, 1}},
     .large = {{real(300, 401)}, {0, 0, 1}},
     .errors = {{[] { (void)count_nonzero(zeros({2}), {1}); }, "count_nonzero: dim 1 is out of range for rank 1"}},
     .differentiable = false,
     .i64 = true},
};

}  // namespace

std::span<const OpRow> reduce_rows() { return rows; }

}  // namespace tapestry::op_table
