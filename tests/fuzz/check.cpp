// Differences with two steps, whose agreement says how far they can be trusted, beside the analytic derivative.
// Next: shrink.cpp.
#include "check.h"

#include <algorithm>
#include <cmath>

#include "../../autograd/engine.h"
#include "../../autograd/factory.h"
#include "../../autograd/grad_mode.h"
#include "../../ops/ops.h"

namespace tapestry::fuzz {
namespace {

using List = std::vector<Tensor>;
using Flat = std::vector<double>;

/// ±[0.5, 1.5], so that no entry is lost in another.
Flat direction(int64_t n, uint64_t stream) {
  const Ticket ticket{5, stream};
  Flat values(static_cast<size_t>(n));
  for (size_t i = 0; i < values.size(); ++i) {
    const auto b = ticket.block(i);
    values[i] = (0.5 + uniform_f64(b[0], b[1])) * ((b[2] & 1U) != 0 ? 1 : -1);
  }
  return values;
}

/// x + t·d as a new tensor.
Tensor moved(const Tensor& x, const Flat& d, double t) {
  Flat values = x.to_vector<double>();
  for (size_t i = 0; i < values.size(); ++i) values[i] += t * d[i];
  return from(values, x.shape());
}

double dot(const Tensor& x, const Flat& d) {
  if (!x.defined()) return 0;
  const Flat values = x.to_vector<double>();
  double sum = 0;
  for (size_t i = 0; i < d.size(); ++i) sum += values[i] * d[i];
  return sum;
}
double size(const Tensor& x, const Flat& d) {
  if (!x.defined()) return 0;
  const Flat values = x.to_vector<double>();
  double sum = 0;
  for (size_t i = 0; i < d.size(); ++i) sum += std::abs(values[i] * d[i]);
  return sum;
}

/// A point, the outputs that depend on it, and the numbers of the projections.
class Along {
 public:
  explicit Along(const Program& program) : f_(function_of(program)), program_(program) {
    for (size_t i = 0; i < program.leaves.size(); ++i)
      u_.push_back(direction(program.leaves[i].numel(), 100 + i)),
          w_.push_back(direction(program.leaves[i].numel(), 200 + i));
  }

  /// Leaves at x + t·u and, after a run, the outputs with a gradient.
  struct Point {
    List leaves, wanted, outputs;
  };
  Point at(double t) {
    Point point;
    for (size_t i = 0; i < program_.leaves.size(); ++i) {
      const Tensor& x = program_.leaves[i];
      if (!x.requires_grad()) {
        point.leaves.push_back(x);
        continue;
      }
      point.leaves.push_back(moved(x, u_[i], t).requires_grad_());
      point.wanted.push_back(point.leaves.back());
    }
    for (const Tensor& y : f_(point.leaves))
      if (y.requires_grad()) point.outputs.push_back(y);
    for (size_t o = v_.size(); o < point.outputs.size(); ++o) {
      v_.push_back(direction(point.outputs[o].numel(), 300 + o));
      q_.push_back(direction(point.outputs[o].numel(), 400 + o));
    }
    return point;
  }
  double value(double t) {
    const Point point = at(t);
    double sum = 0;
    for (size_t o = 0; o < point.outputs.size(); ++o) sum += dot(point.outputs[o], v_[o]);
    return sum;
  }
  /// Upstream gradients v + t·q.
  List upstream(const Point& point, double t) {
    List gs;
    for (size_t o = 0; o < point.outputs.size(); ++o)
      gs.push_back(moved(from(v_[o], point.outputs[o].shape()), q_[o], t));
    return gs;
  }
  List gradients(const Point& point, const List& gs, bool record = false) {
    return grad(point.outputs, point.wanted, {.grad_outputs = gs, .create_graph = record, .allow_unused = true});
  }
  double slope(double t) {
    const Point point = at(t);
    return project(gradients(point, upstream(point, t)), w_);
  }
  /// Σ over the wanted leaves of gradient · numbers.
  double project(const List& gs, const std::vector<Flat>& numbers, double (*f)(const Tensor&, const Flat&) = dot) {
    double sum = 0;
    for (size_t i = 0, k = 0; i < program_.leaves.size(); ++i)
      if (program_.leaves[i].requires_grad()) sum += f(gs[k++], numbers[i]);
    return sum;
  }

  std::vector<Flat> u_, w_, v_, q_;

 private:
  TensorFunction f_;
  const Program& program_;
};

// Note [Settled differences]: smooth functions have differences that agree over a wide range of steps. A central one is wrong near a kink, but then it
// depends on the step, or the two one-sided ones differ; so a disagreement is believed only where all of them settle.
template <class F>
Finding compare(double analytic, double scale, F&& f, const char* what, Verdict wrong) {
  scale = std::max(1.0, scale);
  if (scale > 1e7) return {Verdict::large};
  const double here = f(0);
  double last = 0;
  for (const double h : {1e-4, 1e-5, 1e-6}) {
    const double up = f(h), down = f(-h), up2 = f(2 * h), down2 = f(-2 * h);
    const double near = (up - down) / (2 * h), far = (up2 - down2) / (4 * h), best = (4 * near - far) / 3;
    const double error = std::abs(near - far), noise = 1e-14 * (std::abs(here) + std::abs(up2) + std::abs(down2)) / h;
    if (std::abs(analytic - best) <= 1e-6 * scale + error + noise && error <= 1e-3 * scale) return {};
    // Off by `apart`: a kink this near bends the function by as much, or more.
    const double apart = std::abs(analytic - best), bend = std::abs((up - here) / h - (here - down) / h);
    if (h == 1e-6 && !(error <= 0.1 * apart && bend <= 0.1 * apart)) return {Verdict::kink};
    last = best;
  }
  return {wrong, fmt::format("{}: analytic {:.9g}, numeric {:.9g}", what, analytic, last)};
}

Finding first_order(Along& along, const Along::Point& point, List& gs) {
  gs = along.gradients(point, along.upstream(point, 0));
  for (const Tensor& g : gs)
    if (g.defined())
      for (const double v : g.to_vector<double>())
        if (!std::isfinite(v)) return {Verdict::wrong_first, "first derivative: not finite"};
  return compare(
      along.project(gs, along.u_), along.project(gs, along.u_, size), [&](double t) { return along.value(t); },
      "first derivative", Verdict::wrong_first);
}

/// Does the gradient stay the same where the point moves by a few roundings? It does not where rounding errors are what it is made of.
bool is_steady(Along& along, const List& gs) {
  const double here = along.project(gs, along.w_), scale = std::max(1.0, along.project(gs, along.w_, size));
  for (const double t : {-1e-9, 1e-9}) {
    const Along::Point point = along.at(t);
    const double there = along.project(along.gradients(point, along.upstream(point, 0)), along.w_);
    if (!(std::abs(there - here) <= 1e-4 * scale)) return false;
  }
  return true;
}

Finding second_order(Along& along, const List& plain) {
  const Along::Point point = along.at(0);
  List vs = along.upstream(point, 0);
  for (const Tensor& v : vs) v.requires_grad_();
  const List gs = along.gradients(point, vs, true);
  double apart = 0, scale = 1;
  Tensor total;
  for (size_t i = 0, k = 0; i < along.w_.size(); ++i) {
    if (!point.leaves[i].requires_grad()) continue;
    const Tensor& g = gs[k];
    const Tensor& p = plain[k++];
    if (!g.defined() && !p.defined()) continue;
    apart = std::max(apart,
                     size(add(g.defined() ? g.detach() : zeros_like(p), neg(p.defined() ? p : zeros_like(g.detach()))),
                          along.w_[i]));
    scale += size(p, along.w_[i]);
    if (!g.defined() || !g.requires_grad()) continue;
    const Tensor part = sum(g * from(along.w_[i], g.shape()));
    total = total.defined() ? total + part : part;
  }
  if (!(apart <= 1e-9 * scale))
    return {Verdict::wrong_second,
            fmt::format("the first derivative by a recorded walk is {:.3g} off the plain one", apart)};
  double analytic = 0, size_of_it = 0;
  if (total.defined()) {
    List all = point.wanted;
    all.insert(all.end(), vs.begin(), vs.end());
    const List hs = grad({total}, all, {.allow_unused = true});
    std::vector<Flat> along_all;
    for (size_t i = 0; i < along.u_.size(); ++i)
      if (point.leaves[i].requires_grad()) along_all.push_back(along.u_[i]);
    along_all.insert(along_all.end(), along.q_.begin(), along.q_.end());
    for (size_t i = 0; i < hs.size(); ++i) {
      analytic += dot(hs[i], along_all[i]);
      size_of_it += size(hs[i], along_all[i]);
    }
    if (!std::isfinite(analytic)) return {Verdict::wrong_second, "second derivative: not finite"};
  }
  return compare(
      analytic, std::max(size_of_it, scale), [&](double t) { return along.slope(t); }, "second derivative",
      Verdict::wrong_second);
}

}  // namespace

Finding check(const Program& program) {
  {
    const NoGrad raw;  // a program that does not run at all is the caller's mistake
    run(program, program.leaves);
  }
  Along along(program);
  Verdict stage = Verdict::wrong_first;
  try {
    const Along::Point point = along.at(0);
    if (point.outputs.empty() || point.wanted.empty()) return {};
    List gs;
    Finding finding = first_order(along, point, gs);
    if (is_wrong(finding.verdict) && !is_steady(along, gs)) return {Verdict::large};
    if (finding.verdict != Verdict::right) return finding;
    for (const Step& step : program.steps)
      if (step.row != nullptr && step.row->no_gradgradcheck != nullptr) return {};
    stage = Verdict::wrong_second;
    finding = second_order(along, gs);
    return is_wrong(finding.verdict) && !is_steady(along, gs) ? Finding{Verdict::large} : finding;
  } catch (const ValueError&) {
    return {Verdict::refused};
  } catch (const Error& e) {
    const std::string said = e.what();
    for (const char* domain : {"at a singular matrix", "have no derivative"})
      if (said.find(domain) != std::string::npos) return {Verdict::refused};
    return {stage, "throws " + said};
  }
}

}  // namespace tapestry::fuzz
