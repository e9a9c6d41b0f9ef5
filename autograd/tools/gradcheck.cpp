#include "gradcheck.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "../engine.h"
#include "../factory.h"
#include "../grad_mode.h"
#include "gradcheck_hint.h"

namespace tapestry {
namespace {

using detail::Block;
using detail::Evaluation;
using detail::flat;
using detail::Flat;
using detail::Probe;
using detail::Tolerance;

/// What a check gives up with; caught where the result is made.
struct Fault {
  GradcheckResult result;
};

double dot(const Flat& a, const Flat& b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

/// Bit for bit, but NaN equals NaN.
bool same(const Flat& a, const Flat& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](double x, double y) { return x == y || (x != x && y != y); });
}

class Check {
 public:
  Check(const char* name, const TensorFunction& f, const std::vector<Tensor>& inputs, const GradcheckOptions& options)
      : name_(name),
        options_(options),
        tolerance_{options.atol, options.rtol},
        probe_(name, f, inputs, options),
        at_(probe_.evaluate()),
        inputs_(inputs) {
    for (const Tensor& y : at_.ys) values_.push_back(flat(y));
  }

  void run() {
    const Flat u = random_flat(probe_.outputs_numel), v = random_flat(probe_.outputs_numel);
    const auto gu = analytic(u);
    check_pure(u, gu);
    check_linear(u, v, gu);
    int64_t entries = 0;
    for (const int i : probe_.checked)
      entries += numel(probe_.input_shapes[static_cast<size_t>(i)]) * probe_.outputs_numel;
    if (entries <= options_.full_limit)
      compare_jacobians();
    else
      compare_projections();
    check_layout(u, gu);
    check_alone(u, gu);
  }

 private:
  template <class... Args>
  [[noreturn]] void give_up(fmt::format_string<Args...> format, Args&&... args) const {
    throw Fault{.result = {.ok = false,
                           .message = std::string(name_) + ": " + fmt::format(format, std::forward<Args>(args)...)}};
  }

  /// Uniform in ±[0.5, 1.5], so that no entry is lost in another.
  Flat random_flat(int64_t n) {
    const Ticket ticket{options_.seed, stream_++};
    Flat values(static_cast<size_t>(n));
    for (size_t j = 0; j < values.size(); ++j) {
      const auto b = ticket.block(j);
      values[j] = (0.5 + uniform_f64(b[0], b[1])) * ((b[2] & 1U) != 0 ? 1 : -1);
    }
    return values;
  }

  std::string input_name(int i) const {
    return fmt::format("input {} (shape {})", i, to_string(probe_.input_shapes[static_cast<size_t>(i)]));
  }
  std::string output_name(size_t o) const {
    return probe_.output_shapes.size() == 1 ? "output" : fmt::format("output {}", o);
  }

  /// Gradients of all checked inputs. What a rule throws is the result of the check.
  std::vector<Flat> analytic(const Flat& upstream, const Evaluation* at = nullptr, bool scattered = false) {
    return analytic_of(upstream, at == nullptr ? at_ : *at, probe_.checked, scattered);
  }
  std::vector<Flat> analytic_of(const Flat& upstream, const Evaluation& at, const std::vector<int>& wanted,
                                bool scattered) {
    try {
      return probe_.analytic(at, upstream, wanted, wanted.size() == probe_.checked.size() ? &defined_ : nullptr,
                             scattered);
    } catch (const Error& e) {
      give_up("backward fails: {}", e.what());
    }
  }

  void check_pure(const Flat& u, const std::vector<Flat>& gu) {
    for (size_t i = 0; i < inputs_.size(); ++i) {
      const Tensor& x = at_.xs[i];
      if (x.defined() && is_floating(x.dtype()) && !same(flat(x), flat(inputs_[i])))
        give_up("{} was changed by the function or its backward", input_name(static_cast<int>(i)));
    }
    const Evaluation again = probe_.evaluate();
    for (size_t o = 0; o < again.ys.size(); ++o)
      if (!same(flat(at_.ys[o]), values_[o]))
        give_up("{} was changed by backward", output_name(o));
      else if (!same(flat(again.ys[o]), values_[o]))
        give_up("{}: two calls with the same inputs give different values", output_name(o));
    const auto g2 = analytic(u), g3 = analytic(u, &again);
    for (size_t k = 0; k < gu.size(); ++k)
      if (!same(gu[k], g2[k]) || !same(gu[k], g3[k]))
        give_up("{}: backward is not deterministic: two walks give different bits", input_name(probe_.checked[k]));
  }

  /// Compares gradients that must agree to rounding.
  template <class Text>
  void require_close(const std::vector<Flat>& found, const std::vector<Flat>& right, Text&& text) {
    for (size_t k = 0; k < right.size(); ++k) {
      double scale = 0;
      for (const double r : right[k]) scale = std::max(scale, std::abs(r));
      for (size_t j = 0; j < right[k].size(); ++j) {
        const double bound = (at_.ys[0].dtype() == DType::f64 ? 1e-9 : 1e-4) * scale + 1e-300;
        if (found[k][j] == right[k][j] || std::abs(found[k][j] - right[k][j]) <= bound ||
            (found[k][j] != found[k][j] && right[k][j] != right[k][j]))
          continue;
        const int i = probe_.checked[k];
        give_up("{} at {}: {}", input_name(i),
                detail::position(probe_.input_shapes[static_cast<size_t>(i)], static_cast<int64_t>(j)),
                text(k, found[k][j], right[k][j]));
      }
    }
  }

  void check_linear(const Flat& u, const Flat& v, const std::vector<Flat>& gu) {
    Flat mixed = u;
    for (size_t j = 0; j < mixed.size(); ++j) mixed[j] = 2 * u[j] + 3 * v[j];
    const auto gv = analytic(v);
    auto right = gu;
    for (size_t k = 0; k < right.size(); ++k)
      for (size_t j = 0; j < right[k].size(); ++j) right[k][j] = 2 * gu[k][j] + 3 * gv[k][j];
    require_close(analytic(mixed), right, [&](size_t k, double found, double wanted) {
      return fmt::format(
          "backward is not linear in the upstream gradient: grad(2u + 3v) is {:.6g}, 2grad(u) + 3grad(v) is {:.6g}{}",
          found, wanted, right_for_ones(k) ? "; it is right only for an all-ones upstream gradient" : "");
    });
  }

  bool right_for_ones(size_t k) {
    const Flat ones(static_cast<size_t>(probe_.outputs_numel), 1.0);
    const Flat g = analytic(ones)[k];
    const Flat direction = random_flat(static_cast<int64_t>(g.size()));
    return tolerance_.close(dot(g, direction), dot(ones, probe_.numeric(probe_.checked[k], direction)));
  }

  void check_layout(const Flat& u, const std::vector<Flat>& gu) {
    require_close(analytic(u, nullptr, true), gu, [](size_t, double found, double wanted) {
      return fmt::format(
          "a non-contiguous upstream gradient gives {:.6g}, the same values contiguous {:.6g}: the rule ignores "
          "strides",
          found, wanted);
    });
  }

  void check_alone(const Flat& u, const std::vector<Flat>& gu) {
    if (probe_.checked.size() < 2) return;
    std::vector<Flat> alone;
    for (const int i : probe_.checked) alone.push_back(analytic_of(u, at_, {i}, false)[0]);
    require_close(alone, gu, [](size_t, double found, double wanted) {
      return fmt::format("asked for alone, the gradient is {:.6g}, with the others {:.6g}", found, wanted);
    });
  }

  /// An input, or an output, with nothing but zeros on both sides.
  void check_zero(bool is_input, size_t index, bool depends, bool zero) const {
    const std::string what = is_input ? input_name(static_cast<int>(index)) : output_name(index);
    if (!depends && zero && !options_.allow_unused)
      give_up("{} {}; leave it out or pass allow_unused", what,
              is_input ? "is not used: no output depends on it" : "depends on no checked input");
    if (depends && zero && !options_.allow_zero)
      give_up(
          "{}: the gradient is 0 everywhere, analytically and numerically, which proves nothing; take other inputs or "
          "pass allow_zero",
          what);
  }

  void compare_jacobians() {
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

  void compare_blocks(const Block& a, const std::vector<Block>& b, size_t k, size_t o) const {
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

  [[noreturn]] void disagree(size_t k, int64_t column, size_t o, int64_t row, double analytic, double numeric,
                             const std::string& why) const {
    const int i = probe_.checked[k];
    throw Fault{
        .result = {.ok = false,
                   .message = fmt::format("{}: {} at {}, {} at {}: analytic {:.6g}, numeric {:.6g}, |difference| "
                                          "{:.1e} > {:.0e} + {:.0e}·|numeric|; {}",
                                          name_, input_name(i),
                                          detail::position(probe_.input_shapes[static_cast<size_t>(i)], column),
                                          output_name(o), detail::position(probe_.output_shapes[o], row), analytic,
                                          numeric, std::abs(analytic - numeric), options_.atol, options_.rtol, why),
                   .input = i,
                   .output = static_cast<int>(o),
                   .analytic = analytic,
                   .numeric = numeric}};
  }

  // Note [Projections]: u . grad(v) against v . (f(x + hu) - f(x - hu))/2h for random v and u. One wrong entry among n is seen against a sum that
  // grows with the root of n, so the relative tolerance is a hundredth of that for entries; f64 differences are good for it.
  void compare_projections() {
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
  [[noreturn]] void locate(size_t k, Flat u, Flat v, double a, double n) {
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

  const char* name_;
  GradcheckOptions options_;
  Tolerance tolerance_;
  Probe probe_;
  Evaluation at_;
  const std::vector<Tensor>& inputs_;
  std::vector<Flat> values_;  ///< of the outputs, before any backward
  uint64_t stream_ = 0;
  std::vector<bool> defined_;  ///< by checked input, after the last walk for all of them
};

GradcheckResult check(const char* name, const TensorFunction& f, const std::vector<Tensor>& inputs,
                      const GradcheckOptions& options) {
  try {
    Check(name, f, inputs, options).run();
  } catch (const Fault& fault) {
    return fault.result;
  }
  return {};
}

}  // namespace

GradcheckResult gradcheck(const TensorFunction& f, const std::vector<Tensor>& inputs, GradcheckOptions options) {
  return check("gradcheck", f, inputs, options);
}

GradcheckResult gradgradcheck(const TensorFunction& f, const std::vector<Tensor>& inputs, GradcheckOptions options) {
  const Probe probe("gradgradcheck", f, inputs, options);
  const Evaluation at = probe.evaluate();
  // The inputs, then one upstream gradient per output that has an edge.
  std::vector<Tensor> extended = inputs;
  for (size_t o = 0; o < at.ys.size(); ++o) {
    const Tensor& y = at.ys[o];
    if (!y.requires_grad()) continue;
    const Ticket ticket{options.seed, hash_name("upstream") + o};
    Flat v(static_cast<size_t>(y.numel()));
    for (size_t j = 0; j < v.size(); ++j) v[j] = normal_of(ticket, j);
    extended.push_back(detail::unflat(v, y.shape(), y.dtype()).requires_grad_());
  }
  if (extended.size() == inputs.size())
    return {.ok = options.allow_unused,
            .message = options.allow_unused
                           ? ""
                           : "gradgradcheck: no output depends on a checked input; leave it out or pass allow_unused"};
  const size_t n = inputs.size();
  const TensorFunction derivative = [&, n](std::span<const Tensor> xs) {
    std::vector<Tensor> outputs, wanted;
    for (const Tensor& y : f(xs.first(n)))
      if (y.defined() && is_floating(y.dtype()) && y.requires_grad()) outputs.push_back(y);
    for (const int i : probe.checked) wanted.push_back(xs[static_cast<size_t>(i)]);
    GradOptions first{
        .grad_outputs = {xs.begin() + static_cast<int64_t>(n), xs.end()}, .create_graph = true, .allow_unused = true};
    return grad(outputs, wanted, std::move(first));
  };
  options.allow_zero = options.allow_unused = true;
  try {
    return check("gradgradcheck", derivative, extended, options);
  } catch (const AutogradError& e) {
    return {.ok = false, .message = std::string("gradgradcheck: ") + e.what()};
  }
}

}  // namespace tapestry
