// Rows of the running sums, products, largest and smallest elements.
#include "../../ops/ops.h"
#include "op_table.h"

namespace tapestry::op_table {
namespace {

using Line = std::vector<double>;

/// {values, places}: takes_over(best so far, x) says whether x is the best from here on.
template <class F>
Arrays running(const Array& x, int64_t dim, F takes_over) {
  const auto places = [&](Line xs) {
    size_t best = 0;
    const Line copy = xs;
    for (size_t i = 0; i < xs.size(); ++i) {
      if (takes_over(copy[best], copy[i])) best = i;
      xs[i] = static_cast<double>(best);
    }
    return xs;
  };
  return {reference::along(x, dim,
                           [&](const Line& xs) {
                             Line at = places(xs);
                             for (double& i : at) i = xs[static_cast<size_t>(i)];
                             return at;
                           }),
          reference::along(x, dim, places)};
}

constexpr OpRow scan(const char* name, Function fn, Reference ref, const char* error, void (*wrong)()) {
  OpRow row;
  row.name = name;
  row.fn = fn;
  row.ref = ref;
  row.samples[0] = {{real(3, 4)}, {1}};
  row.samples[1] = {{real(3, 4)}, {0}};
  row.samples[2] = {{real(2, 3, 2)}, {-2}};
  row.samples[3] = {{real(1)}, {0}};
  row.empty = {{real(0, 3)}, {1}};
  row.large = {{real(300, 401)}, {0}};
  row.errors[0] = {wrong, error};
  row.i64 = true;
  return row;
}

/// Running products of 300 numbers need some near 1.
constexpr OpRow near_one(OpRow row) {
  row.large = {{real(100, 401).in(0.9, 1.1)}, {0}};
  return row;
}

constexpr OpRow floating(OpRow row) {
  row.i64 = false;
  return row;
}

constexpr OpRow rows[] = {
    scan(
        "cumsum", [](Args a, const Params& p) { return cumsum(a[0], p.a); },
        [](const Arrays& a, const Params& p) {
          return reference::along(a[0], p.a, [](Line x) {
            for (size_t i = 1; i < x.size(); ++i) x[i] += x[i - 1];
            return x;
          });
        },
        "cumsum: dim 2 is out of range for rank 2",
        [] {
          (void)cumsum(zeros({2, 3}), 2);
        }),
    near_one(scan(
        "cumprod", [](Args a, const Params& p) { return cumprod(a[0], p.a); },
        [](const Arrays& a, const Params& p) {
          return reference::along(a[0], p.a, [](Line x) {
            for (size_t i = 1; i < x.size(); ++i) x[i] *= x[i - 1];
            return x;
          });
        },
        "cumprod: dim -3 is out of range for rank 2",
        [] {
          (void)cumprod(zeros({2, 3}), -3);
        })),
    floating(scan(
        "logcumsumexp", [](Args a, const Params& p) { return logcumsumexp(a[0], p.a); },
        [](const Arrays& a, const Params& p) {
          return reference::along(a[0], p.a, [](const Line& x) {
            Line y;
            for (size_t i = 0; i < x.size(); ++i)
              y.push_back(reference::log_sum_exp(Line(x.begin(), x.begin() + static_cast<std::ptrdiff_t>(i) + 1)));
            return y;
          });
        },
        "logcumsumexp: needs a floating dtype",
        [] {
          (void)logcumsumexp(zeros({2, 3}, DType::i64), 0);
        })),
    scan(
        "cummax", [](Args a, const Params& p) { return cummax(a[0], p.a); },
        [](const Arrays& a, const Params& p) {
          return running(a[0], p.a, [](double best, double x) { return x >= best; });
        },
        "cummax: dim 2 is out of range for rank 2",
        [] {
          (void)cummax(zeros({2, 3}), 2);
        }),
    scan(
        "cummin", [](Args a, const Params& p) { return cummin(a[0], p.a); },
        [](const Arrays& a, const Params& p) {
          return running(a[0], p.a, [](double best, double x) { return x <= best; });
        },
        "cummin: dim 2 is out of range for rank 2",
        [] {
          (void)cummin(zeros({2, 3}), 2);
        }),
    {.name = "diff",
     .formula = "y[i] = x[i + 1] − x[i] along dim",
     .vjp = "g[i − 1] − g[i], 0 beyond the ends",
     .fn = [](Args a, const Params& p) { return diff(a[0], p.a); },
     .ref =
         [](const Arrays& a, const Params& p) {
           Shape shape = a[0].shape;
           const int d = p.a < 0 ? static_cast<int>(p.a) + shape.rank() : static_cast<int>(p.a);
           shape[d] = std::max<int64_t>(shape[d] - 1, 0);
           return reference::build(shape,
                                   [&](const Dims& i) { return a[0](reference::replaced(i, d, i[d] + 1)) - a[0](i); });
         },
     .samples = {{{real(3, 4)}, {1}}, {{real(2, 3, 2)}, {-2}}, {{real(2)}, {0}}},
     .empty = {{real(1, 3)}, {0}},
     .errors = {{[] { (void)diff(scalar(1)); }, "diff: dim -1 is out of range for rank 0"}},
     .i64 = true},
};

}  // namespace

std::span<const OpRow> scan_rows() { return rows; }

}  // namespace tapestry::op_table
