// The order of gradcheck's checks, and those of purity, determinism and linearity. Next: gradcheck_compare.cpp.
#include "gradcheck.h"

#include <algorithm>
#include <cmath>

#include "../engine.h"
#include "../factory.h"
#include "gradcheck_run.h"

namespace tapestry {
namespace detail {
namespace {

/// Bit for bit, but NaN equals NaN.
bool same(const Flat& a, const Flat& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](double x, double y) { return x == y || (x != x && y != y); });
}

}  // namespace

Check::Check(const char* name, const TensorFunction& f, const std::vector<Tensor>& inputs,
             const GradcheckOptions& options)
    : name_(name),
      options_(options),
      tolerance_{options.atol, options.rtol},
      probe_(name, f, inputs, options),
      at_(probe_.evaluate()),
      inputs_(inputs) {
  for (const Tensor& y : at_.ys) values_.push_back(flat(y));
}

void Check::run() {
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

/// Uniform in ±[0.5, 1.5], so that no entry is lost in another.
Flat Check::random_flat(int64_t n) {
  const Ticket ticket{options_.seed, stream_++};
  Flat values(static_cast<size_t>(n));
  for (size_t j = 0; j < values.size(); ++j) {
    const auto b = ticket.block(j);
    values[j] = (0.5 + uniform_f64(b[0], b[1])) * ((b[2] & 1U) != 0 ? 1 : -1);
  }
  return values;
}

std::string Check::input_name(int i) const {
  return fmt::format("input {} (shape {})", i, to_string(probe_.input_shapes[static_cast<size_t>(i)]));
}
std::string Check::output_name(size_t o) const {
  return probe_.output_shapes.size() == 1 ? "output" : fmt::format("output {}", o);
}

/// Gradients of all checked inputs. What a rule throws is the result of the check.
std::vector<Flat> Check::analytic(const Flat& upstream, const Evaluation* at, bool scattered) {
  return analytic_of(upstream, at == nullptr ? at_ : *at, probe_.checked, scattered);
}
std::vector<Flat> Check::analytic_of(const Flat& upstream, const Evaluation& at, const std::vector<int>& wanted,
                                     bool scattered) {
  try {
    return probe_.analytic(at, upstream, wanted, wanted.size() == probe_.checked.size() ? &defined_ : nullptr,
                           scattered);
  } catch (const Error& e) {
    give_up("backward fails: {}", e.what());
  }
}

void Check::check_pure(const Flat& u, const std::vector<Flat>& gu) {
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
void Check::require_close(const std::vector<Flat>& found, const std::vector<Flat>& right, Text&& text) {
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
              position(probe_.input_shapes[static_cast<size_t>(i)], static_cast<int64_t>(j)),
              text(k, found[k][j], right[k][j]));
    }
  }
}

void Check::check_linear(const Flat& u, const Flat& v, const std::vector<Flat>& gu) {
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

bool Check::right_for_ones(size_t k) {
  const Flat ones(static_cast<size_t>(probe_.outputs_numel), 1.0);
  const Flat g = analytic(ones)[k];
  const Flat direction = random_flat(static_cast<int64_t>(g.size()));
  return tolerance_.close(dot(g, direction), dot(ones, probe_.numeric(probe_.checked[k], direction)));
}

void Check::check_layout(const Flat& u, const std::vector<Flat>& gu) {
  require_close(analytic(u, nullptr, true), gu, [](size_t, double found, double wanted) {
    return fmt::format(
        "a non-contiguous upstream gradient gives {:.6g}, the same values contiguous {:.6g}: the rule ignores "
        "strides",
        found, wanted);
  });
}

void Check::check_alone(const Flat& u, const std::vector<Flat>& gu) {
  if (probe_.checked.size() < 2) return;
  std::vector<Flat> alone;
  for (const int i : probe_.checked) alone.push_back(analytic_of(u, at_, {i}, false)[0]);
  require_close(alone, gu, [](size_t, double found, double wanted) {
    return fmt::format("asked for alone, the gradient is {:.6g}, with the others {:.6g}", found, wanted);
  });
}

/// An input, or an output, with nothing but zeros on both sides.
void Check::check_zero(bool is_input, size_t index, bool depends, bool zero) const {
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

}  // namespace detail

namespace {

GradcheckResult check(const char* name, const TensorFunction& f, const std::vector<Tensor>& inputs,
                      const GradcheckOptions& options) {
  try {
    detail::Check(name, f, inputs, options).run();
  } catch (const detail::Fault& fault) {
    return fault.result;
  }
  return {};
}

}  // namespace

GradcheckResult gradcheck(const TensorFunction& f, const std::vector<Tensor>& inputs, GradcheckOptions options) {
  return check("gradcheck", f, inputs, options);
}

GradcheckResult gradgradcheck(const TensorFunction& f, const std::vector<Tensor>& inputs, GradcheckOptions options) {
  const detail::Probe probe("gradgradcheck", f, inputs, options);
  const detail::Evaluation at = probe.evaluate();
  // The inputs, then one upstream gradient per output that has an edge.
  std::vector<Tensor> extended = inputs;
  for (size_t o = 0; o < at.ys.size(); ++o) {
    const Tensor& y = at.ys[o];
    if (!y.requires_grad()) continue;
    const Ticket ticket{options.seed, hash_name("upstream") + o};
    detail::Flat v(static_cast<size_t>(y.numel()));
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
