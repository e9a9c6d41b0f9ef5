// Gradients against central differences: entry by entry, or along random directions where inputs are large. Next: gradcheck_hint.h.
#include <algorithm>
#include <cmath>

#include "gradcheck_run.h"

namespace tapestry::detail {

double dot(const Flat& a, const Flat& b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

void Check::compare_jacobians() {
  const auto m = static_cast<size_t>(probe_.outputs_numel);
  const size_t inputs = probe_.checked.size();
  // Rows of the analytic Jacobian from unit upstreams, columns of the numeric one from unit steps.
  std::vector<std::vector<Flat>> rows;
  for (size_t r = 0; r < m; ++r) {
    Flat unit(m);
    unit[r] = 1;
    rows.push_back(analytic(unit));
  }
  std::vector<std::vector<Block>> a(probe_.output_shapes.size()), b(probe_.output_shapes.size());
  for (size_t k = 0; k < inputs; ++k) {
    const Shape& shape = probe_.input_shapes[static_cast<size_t>(probe_.checked[k])];
    std::vector<Flat> columns;
    for (size_t j = 0; j < static_cast<size_t>(numel(shape)); ++j) {
      Flat unit(static_cast<size_t>(numel(shape)));
      unit[j] = 1;
      columns.push_back(probe_.numeric(probe_.checked[k], unit));
    }
    size_t first = 0;
    for (size_t o = 0; o < a.size(); ++o) {
      a[o].push_back({{}, probe_.output_shapes[o], shape});
      b[o].push_back({{}, probe_.output_shapes[o], shape});
      const auto end = first + static_cast<size_t>(numel(probe_.output_shapes[o]));
      for (; first < end; ++first)
        for (size_t j = 0; j < columns.size(); ++j) {
          a[o].back().values.push_back(rows[first][k][j]);
          b[o].back().values.push_back(columns[j][first]);
        }
    }
  }
  for (size_t o = 0; o < a.size(); ++o)
    for (size_t k = 0; k < inputs; ++k) compare_blocks(a[o][k], b[o], k, o);
  check_zero_blocks(a, b);
}

void Check::check_zero_blocks(const std::vector<std::vector<Block>>& a,
                              const std::vector<std::vector<Block>>& b) const {
  const size_t inputs = probe_.checked.size();
  const auto all_zero = [&](const Block& x, const Block& y) {
    return std::all_of(x.values.begin(), x.values.end(), [](double e) { return e == 0; }) &&
           std::all_of(y.values.begin(), y.values.end(), [&](double e) { return std::abs(e) <= options_.atol; });
  };
  for (size_t k = 0; k < inputs; ++k) {
    bool zero = true, empty = true;
    for (size_t o = 0; o < a.size(); ++o)
      zero = zero && all_zero(a[o][k], b[o][k]), empty = empty && a[o][k].values.empty();
    if (!empty) check_zero(true, static_cast<size_t>(probe_.checked[k]), defined_[k], zero);
  }
  for (size_t o = 0; o < a.size(); ++o) {
    bool zero = true, empty = true;
    for (size_t k = 0; k < inputs; ++k)
      zero = zero && all_zero(a[o][k], b[o][k]), empty = empty && a[o][k].values.empty();
    if (!empty) check_zero(false, o, at_.ys[o].requires_grad(), zero);
  }
}

void Check::compare_blocks(const Block& a, const std::vector<Block>& b, size_t k, size_t o) const {
  int64_t worst = -1;
  double most = 1;
  for (size_t e = 0; e < a.values.size(); ++e) {
    const double analytic = a.values[e], numeric = b[k].values[e];
    if (tolerance_.close(analytic, numeric)) continue;
    const double excess = std::abs(analytic - numeric) / tolerance_.bound(numeric);
    if (worst < 0 || !(excess <= most)) worst = static_cast<int64_t>(e), most = excess;
  }
  if (worst >= 0)
    disagree(k, worst % a.columns(), o, worst / a.columns(), a.values[static_cast<size_t>(worst)],
             b[k].values[static_cast<size_t>(worst)], hint(a, b[k], b, tolerance_));
}

void Check::disagree(size_t k, int64_t column, size_t o, int64_t row, double analytic, double numeric,
                     const std::string& hint) const {
  const int i = probe_.checked[k];
  std::string why = hint;
  if (std::string_view(name_) == "gradgradcheck" && hint.find("missing") != std::string::npos)
    why += "; the rule computes a factor outside the tape (detach, NoGrad or a raw kernel)";
  throw Fault{.result = {.ok = false,
                         .message = fmt::format(
                             "{}: {} at {}, {} at {}: analytic {:.6g}, numeric {:.6g}, |difference| "
                             "{:.1e} > {:.0e} + {:.0e}·|numeric|; {}",
                             name_, input_name(i), position(probe_.input_shapes[static_cast<size_t>(i)], column),
                             output_name(o), position(probe_.output_shapes[o], row), analytic, numeric,
                             std::abs(analytic - numeric), options_.atol, options_.rtol, why),
                         .input = i,
                         .output = static_cast<int>(o),
                         .analytic = analytic,
                         .numeric = numeric}};
}

// Note [Projections]: u . grad(v) against v . (f(x + hu) - f(x - hu))/2h for random v and u. One wrong entry among n is seen against a sum that
// grows with the root of n, so the relative tolerance is a hundredth of that for entries; f64 differences are good for it.
void Check::compare_projections() {
  const Tolerance narrow{options_.atol, options_.allow_f32 ? options_.rtol : options_.rtol / 100};
  const size_t inputs = probe_.checked.size();
  std::vector<bool> zero(inputs, true);
  for (int p = 0; p < std::max(options_.projections, 3); ++p) {
    const Flat v = random_flat(probe_.outputs_numel);
    const auto g = analytic(v);
    for (size_t k = 0; k < inputs; ++k) {
      if (g[k].empty() || v.empty()) {
        zero[k] = false;
        continue;
      }
      const Flat u = random_flat(static_cast<int64_t>(g[k].size()));
      const double a = dot(g[k], u), n = dot(v, probe_.numeric(probe_.checked[k], u));
      zero[k] = zero[k] && std::abs(n) <= options_.atol &&
                std::all_of(g[k].begin(), g[k].end(), [](double e) { return e == 0; });
      if (!narrow.close(a, n)) locate(k, u, v, a, n);
    }
  }
  for (size_t k = 0; k < inputs; ++k) check_zero(true, static_cast<size_t>(probe_.checked[k]), defined_[k], zero[k]);
  for (size_t o = 0; o < at_.ys.size(); ++o)
    check_zero(false, o, at_.ys[o].requires_grad(), !at_.ys[o].requires_grad());
}

/// Halves the direction, then the upstream, each time keeping the half that is further off, down to one entry.
void Check::locate(size_t k, Flat u, Flat v, double a, double n) {
  const int i = probe_.checked[k];
  const auto difference = [&](const Flat& direction, const Flat& upstream) {
    a = dot(analytic(upstream)[k], direction);
    n = dot(upstream, probe_.numeric(i, direction));
    return std::abs(a - n);
  };
  const double whole_a = a, whole_n = n;
  const auto halve = [&](Flat& x, auto&& measure) {
    size_t begin = 0, end = x.size();
    while (end - begin > 1) {
      const size_t middle = (begin + end) / 2;
      Flat left = x, right = x;
      std::fill(left.begin() + static_cast<int64_t>(middle), left.end(), 0.0);
      std::fill(right.begin(), right.begin() + static_cast<int64_t>(middle), 0.0);
      const bool in_left = measure(left) >= measure(right);
      x = in_left ? left : right;
      (in_left ? end : begin) = middle;
    }
    x[begin] = 1;
    return static_cast<int64_t>(begin);
  };
  const int64_t column = halve(u, [&](const Flat& x) { return difference(x, v); });
  const int64_t row = halve(v, [&](const Flat& x) { return difference(u, x); });
  difference(u, v);
  int64_t in_output = row;
  size_t o = 0;
  while (in_output >= numel(probe_.output_shapes[o])) in_output -= numel(probe_.output_shapes[o++]);
  const std::string why = fmt::format("on a random projection analytic is {:.6g}, numeric {:.6g} (ratio {:.4g})",
                                      whole_a, whole_n, whole_a / whole_n);
  disagree(k, column, o, in_output, a, n, why);
}

}  // namespace tapestry::detail
