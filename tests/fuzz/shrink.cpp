// Smaller candidates of a program, tried until none fails the same way.
// Next: run.cpp.
#include "shrink.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "../../autograd/factory.h"
#include "../../autograd/grad_mode.h"

namespace tapestry::fuzz {
namespace {

class Shrinker {
 public:
  explicit Shrinker(Program program) : best_(std::move(program)), verdict_(check(best_).verdict) {}

  Program run() {
    if (!is_wrong(verdict_)) return best_;
    for (bool smaller = true; smaller;) {
      smaller = one_output();
      for (size_t s = best_.steps.size(); s-- > 0;) smaller = cut(s) || smaller;
      for (size_t s = best_.steps.size(); s-- > 0;) smaller = bypass(s) || simplify_step(s) || smaller;
    }
    for (size_t i = 0; i < best_.leaves.size(); ++i) simplify_leaf(i);
    return best_;
  }

 private:
  /// Keeps the candidate if it fails, too. One that does not even run, because its shapes no longer fit, does not.
  bool keep(const Program& candidate) {
    Program small = compacted(candidate);
    try {
      if (check(small).verdict != verdict_) return false;
    } catch (const Error&) {
      return false;
    }
    best_ = std::move(small);
    return true;
  }

  /// One value alone as the output, the earliest that will do; or one output less.
  bool one_output() {
    const NoGrad raw;
    const Values values = fuzz::run(best_, best_.leaves);
    for (size_t s = 0; s < best_.steps.size(); ++s)
      for (size_t nr = 0; nr < values.steps[s].size(); ++nr) {
        const Ref ref{static_cast<int>(s), static_cast<int>(nr)};
        const Tensor& y = values.steps[s][nr];
        if (!y.defined() || !is_floating(y.dtype()) || best_.outputs == std::vector<Ref>{ref}) continue;
        Program candidate = best_;
        candidate.outputs = {ref};
        const EnableGrad recording;
        if (keep(candidate)) return true;
      }
    for (size_t i = 0; i < best_.outputs.size() && best_.outputs.size() > 1; ++i) {
      Program candidate = best_;
      candidate.outputs.erase(candidate.outputs.begin() + static_cast<int64_t>(i));
      const EnableGrad recording;
      if (keep(candidate)) return true;
    }
    return false;
  }

  static void replace(Program& program, const Ref& from, const Ref& to) {
    for (Step& step : program.steps) std::replace(step.inputs.begin(), step.inputs.end(), from, to);
    std::replace(program.outputs.begin(), program.outputs.end(), from, to);
  }

  /// The outputs of step s as leaves.
  bool cut(size_t s) {
    if (s >= best_.steps.size()) return false;
    Tensors ys;
    {
      const NoGrad raw;
      ys = fuzz::run(best_, best_.leaves).steps[s];
    }
    for (const bool differentiated : {false, true}) {
      Program candidate = best_;
      for (size_t nr = 0; nr < ys.size(); ++nr) {
        if (!ys[nr].defined()) continue;
        Tensor leaf = dense(ys[nr]).detach();
        if (differentiated && is_floating(leaf.dtype())) leaf.requires_grad_();
        candidate.leaves.push_back(leaf);
        replace(candidate, {static_cast<int>(s), static_cast<int>(nr)},
                {-1, static_cast<int>(candidate.leaves.size()) - 1});
      }
      if (keep(candidate)) return true;
    }
    return false;
  }

  /// An input of step s in place of its first output.
  bool bypass(size_t s) {
    if (s >= best_.steps.size()) return false;
    for (const Ref& input : std::vector<Ref>(best_.steps[s].inputs)) {
      Program candidate = best_;
      replace(candidate, {static_cast<int>(s), 0}, input);
      if (input.nr >= 0 && keep(candidate)) return true;
    }
    return false;
  }

  bool simplify_step(size_t s) {
    if (s >= best_.steps.size() || best_.steps[s].nested == 0) return false;
    Program candidate = best_;
    --candidate.steps[s].nested;
    return keep(candidate);
  }

  /// Leaf i as a constant if that will do, and with few digits.
  void simplify_leaf(size_t i) {
    if (i >= best_.leaves.size() || !is_floating(best_.leaves[i].dtype())) return;
    if (best_.leaves[i].requires_grad()) {
      Program candidate = best_;
      candidate.leaves[i] = best_.leaves[i].detach();
      keep(candidate);
    }
    for (const double digits : {1.0, 10.0, 100.0}) {
      Program candidate = best_;
      const Tensor& x = best_.leaves[i];
      auto values = x.to_vector<double>();
      for (double& v : values) v = std::round(v * digits) / digits;
      candidate.leaves[i] = from(values, x.shape()).requires_grad_(x.requires_grad());
      if (keep(candidate)) return;
    }
  }

  Program best_;
  Verdict verdict_;
};

}  // namespace

Program shrink(Program program) { return Shrinker(std::move(program)).run(); }

}  // namespace tapestry::fuzz
