// Rows of variance, standard deviation and norms.
#include "../../ops/ops.h"
#include "op_table.h"

namespace tapestry::op_table {
namespace {

using reference::reduce;
using Line = std::vector<double>;

// p.c says how many of p.a, p.b are dims; p.d is keepdim.
Dims dims(const Params& p) {
  Dims list;
  if (p.c > 0) list.push_back(p.a);
  if (p.c > 1) list.push_back(p.b);
  return list;
}

double length(const Line& xs) {
  double sum = 0;
  for (const double x : xs) sum += x * x;
  return std::sqrt(sum);
}
double variance(const Line& xs, double correction) {
  const auto n = static_cast<double>(xs.size());
  const double mean = reference::total(xs) / n;
  double sum = 0;
  for (const double x : xs) sum += (x - mean) * (x - mean);
  return n > correction ? sum / (n - correction) : std::nan("");
}
double smallest(const Line& xs) {
  double best = reference::inf;
  for (const double x : xs) best = x < best ? x : best;
  return best;
}
Line sizes(Line xs) {
  for (double& x : xs) x = std::abs(x);
  return xs;
}

template <class F>
constexpr OpRow over_dims(const char* name, Function fn, F, const char* error, void (*wrong)()) {
  OpRow row;
  row.name = name;
  row.fn = fn;
  row.ref = [](const Arrays& a, const Params& p) { return reduce(a[0], dims(p), p.d != 0, F{}); };
  row.samples[0] = {{real(3, 4)}, {1, 0, 1, 0}};
  row.samples[1] = {{real(2, 3, 2)}, {0, -1, 2, 1}};
  row.samples[2] = {{real(3, 4)}};
  row.samples[3] = {{real(2, 3, 2)}, {1, 0, 1, 1}};
  row.empty = {{real(0, 3)}, {0, 0, 1, 0}};
  row.large = {{real(300, 401)}, {0, 0, 1, 0}};
  row.errors[0] = {wrong, error};
  return row;
}

template <int p>
constexpr OpRow order_norm(const char* name, const char* formula, const char* vjp) {
  OpRow row = over_dims(
      name, [](Args a, const Params& q) { return vector_norm(a[0], p, dims(q), q.d != 0); },
      [](const Line& x) {
        double sum = 0;
        for (const double v : x) sum += p == 0 ? v != 0 : std::pow(std::abs(v), p);
        return p == 0 ? sum : std::pow(sum, 1.0 / p);
      },
      "vector_norm: dim 1 is named twice",
      [] {
        (void)vector_norm(zeros({2, 3}), p, {1, 1});
      });
  row.formula = formula;
  row.vjp = vjp;
  row.zero_derivative = p == 0;
  return row;
}

constexpr OpRow rows[] = {
    over_dims(
        "norm", [](Args a, const Params& p) { return norm(a[0], dims(p), p.d != 0); },
        [](const Line& x) { return length(x); }, "norm: ",
        [] {
          (void)norm(zeros({2, 3}, DType::i64));
        }),
    over_dims(
        "var", [](Args a, const Params& p) { return var(a[0], dims(p), p.d != 0, 0); },
        [](const Line& x) { return variance(x, 0); }, "var: needs a floating dtype",
        [] {
          (void)var(zeros({2, 3}, DType::i64));
        }),
    {.name = "var (correction 1)",
     .fn = [](Args a, const Params& p) { return var(a[0], {p.a}, p.b != 0); },
     .ref = [](const Arrays& a,
               const Params& p) { return reduce(a[0], {p.a}, p.b != 0, [](const Line& x) { return variance(x, 1); }); },
     .samples = {{{real(3, 4)}, {1, 0}}, {{real(2, 3, 2)}, {-2, 1}}},
     .empty = {{real(0, 3)}, {1, 0}},
     .errors = {{[] { (void)var(zeros({2}), {}, false, INFINITY); }, "var: correction is inf; use a number"}}},
    over_dims(
        "stddev", [](Args a, const Params& p) { return stddev(a[0], dims(p), p.d != 0, 0.5); },
        [](const Line& x) { return std::sqrt(variance(x, 0.5)); }, "stddev: needs a floating dtype, got [2] bool",
        [] { (void)stddev(zeros({2}, DType::boolean)); }),
    order_norm<0>("vector_norm (p = 0)", "number of x ≠ 0 over dims", "0"),
    order_norm<1>("vector_norm (p = 1)", "Σ|x| over dims", "g·sign(x)"),
    order_norm<3>("vector_norm (p = 3)", nullptr, nullptr),
    {.name = "vector_norm (p = 1/2)",
     .fn = [](Args a) { return vector_norm(a[0], 0.5, {1}); },
     .ref =
         [](const Arrays& a) {
           return reduce(a[0], {1}, false, [](const Line& x) {
             double sum = 0;
             for (const double v : x) sum += std::sqrt(std::abs(v));
             return sum * sum;
           });
         },
     .samples = {{{real(2, 3).in(0.5, 2)}}, {{real(2, 3).in(-2, -0.5)}}},
     .empty = {{real(2, 0)}},
     .errors = {{[] { (void)vector_norm(zeros({2}), -1); }, "vector_norm: p is -1; use p ≥ 0, inf or -inf"}}},
    {.name = "vector_norm (p = inf)",
     .formula = "largest |x| over dims",
     .vjp = "g·sign(x)/(number of ties) where |x| = y, else 0",
     .fn = [](Args a) { return vector_norm(a[0], INFINITY, {0}, true); },
     .ref =
         [](const Arrays& a) {
           return reduce(a[0], {0}, true, [](const Line& x) { return reference::largest(sizes(x)); });
         },
     .samples = {{{real(3, 2)}}},
     .empty = {{real(2, 0)}},
     .errors = {{[] { (void)vector_norm(zeros({0}), INFINITY); }, "vector_norm: [0] f32 has no elements along dims"}}},
    {.name = "vector_norm (p = -inf)",
     .formula = "smallest |x| over dims",
     .vjp = "g·sign(x)/(number of ties) where |x| = y, else 0",
     .fn = [](Args a) { return vector_norm(a[0], -INFINITY); },
     .ref = [](const Arrays& a) { return reduce(a[0], {}, false, [](const Line& x) { return smallest(sizes(x)); }); },
     .samples = {{{real(3, 2)}}},
     .errors = {{[] { (void)vector_norm(zeros({2}, DType::i64), -INFINITY); },
                 "vector_norm: needs a floating dtype, got [2] i64"}},
     .no_empty = "there is no smallest of nothing"},
    {.name = "normalize",
     .formula = "x/max(‖x‖₂, eps) along dim",
     .vjp = "of the composition",
     .fn = [](Args a, const Params& p) { return normalize(a[0], 2, p.a); },
     .ref =
         [](const Arrays& a, const Params& p) {
           return reference::along(a[0], p.a, [](Line x) {
             const double size = std::max(length(x), 1e-12);
             for (double& v : x) v /= size;
             return x;
           });
         },
     .samples = {{{real(3, 4)}, {-1}}, {{real(3, 4)}, {0}}},
     .empty = {{real(0, 3)}, {1}},
     .errors = {{[] {
                   (void)normalize(zeros({2, 3}), 2, 2);
                 },
                 "normalize: dim 2 is out of range for rank 2"},
                {[] {
                   (void)normalize(zeros({2, 3}), -1);
                 },
                 "normalize: p is -1; use p ≥ 0, inf or -inf"},
                {[] {
                   (void)normalize(zeros({2, 3}), 2, 1, -1);
                 },
                 "normalize: eps is -1; it must be 0 or more"}}},
};

}  // namespace

std::span<const OpRow> statistics_rows() { return rows; }

}  // namespace tapestry::op_table
