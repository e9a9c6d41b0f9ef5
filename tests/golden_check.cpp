// Running a case: outputs, gradients by both verbs, second derivatives, each against what is stored. Next: test_golden_ops.cpp.
#include "golden_check.h"

#include <doctest/doctest.h>
#include <fmt/core.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "../autograd/engine.h"
#include "golden_ops.h"

namespace tapestry::golden {
namespace {

using nlohmann::json;

std::string key_of(const FixtureCase& c) {
  const auto expr = c.attrs->find("expr");
  return expr == c.attrs->end() ? c.op : c.op + ": " + expr->get<std::string>();
}

const Op* find_op(const std::string& fixture, const std::string& key) {
  const std::span<const Op> families[] = {pointwise_ops(), shape_ops(),     layer_ops(), attention_ops(),
                                          block_ops(),     recurrent_ops(), model_ops(), optimizer_ops()};
  for (const std::string& name : {fixture + ":" + key, key})
    for (const std::span<const Op> family : families)
      for (const Op& op : family)
        if (op.key == name) return &op;
  return nullptr;
}

/// One case in one dtype.
class Run {
 public:
  Run(const Fixture& fixture, const FixtureCase& c, std::span<const Policy> policies, DType dtype)
      : fixture_(fixture), case_(c), policies_(policies), dtype_(dtype) {
    for (const std::string& name : c.arguments) {
      const Tensor& stored = c.tensors.at(name);
      const bool floating = is_floating(stored.dtype());
      Tensor t = floating ? clone(to(stored, dtype)) : stored;
      if (floating) t.requires_grad_(), leaf_names_.push_back(name), leaves_.push_back(t);
      const std::string bare = name.substr(name.find('/') + 1);
      if (!arguments_.emplace(bare, t).second) throw FormatError(fixture.name + ": two arguments are called " + bare);
    }
  }

  void check(const Op& op) {
    const Outputs outputs = op(Args(dtype_, case_.attrs, arguments_));
    for (const auto& [name, t] : outputs) compare("out/" + name, t);
    for (const std::string& name : case_.outputs)
      CHECK_MESSAGE(outputs.contains(name.substr(4)), where(name) << "not computed");
    std::vector<Tensor> results, cots;
    for (const auto& [name, t] : outputs) {
      const Tensor* cot = case_.find("cot/" + name);
      if (!cot || !t.requires_grad()) continue;
      results.push_back(t);
      cots.push_back(clone(to(*cot, dtype_)));
      cot_names_.push_back(name);
    }
    if (results.empty()) return compare_gradients(std::vector<Tensor>(leaves_.size()));  // zeros, where any are stored
    check_gradients(results, cots);
  }

 private:
  void check_gradients(const std::vector<Tensor>& results, const std::vector<Tensor>& cots) {
    if (std::none_of(case_.tensors.begin(), case_.tensors.end(),
                     [](const auto& t) { return t.first.starts_with("dir/"); })) {
      if (dtype_ == DType::f64) return compare_gradients(gradients(results, cots, false));
      Tensor loss;
      for (size_t i = 0; i < results.size(); ++i)
        loss = loss.defined() ? loss + sum(results[i] * cots[i]) : sum(results[i] * cots[i]);
      loss.backward();
      std::vector<Tensor> found;
      for (const Tensor& leaf : leaves_) found.push_back(leaf.grad());
      return compare_gradients(found);
    }
    compare_gradients(gradients(results, cots, false));
    for (const Tensor& cot : cots) cot.requires_grad_();
    const std::vector<Tensor> first = gradients(results, cots, true);
    compare_gradients(first);
    Tensor s;  // Σ dir · dL/dx
    for (size_t i = 0; i < leaves_.size(); ++i) {
      const Tensor* dir = case_.find("dir/" + leaf_names_[i]);
      if (!dir || !first[i].defined()) continue;
      const Tensor term = sum(first[i] * to(*dir, dtype_));
      s = s.defined() ? s + term : term;
    }
    std::vector<Tensor> inputs = leaves_;
    inputs.insert(inputs.end(), cots.begin(), cots.end());
    const std::vector<Tensor> second = grad({s}, inputs, {.allow_unused = true});
    for (size_t i = 0; i < leaves_.size(); ++i) compare_stored("hvp/" + leaf_names_[i], second[i]);
    for (size_t i = 0; i < cots.size(); ++i) compare_stored("jvp/" + cot_names_[i], second[leaves_.size() + i]);
  }

  std::vector<Tensor> gradients(const std::vector<Tensor>& results, const std::vector<Tensor>& cots,
                                bool create_graph) const {
    return grad(results, leaves_,
                {.grad_outputs = cots, .retain_graph = true, .create_graph = create_graph, .allow_unused = true});
  }

  void compare_gradients(const std::vector<Tensor>& found) const {
    for (size_t i = 0; i < leaves_.size(); ++i) {
      compare_stored("grad/" + leaf_names_[i], found[i]);
      const auto& none = case_.no_grad;
      if (std::find(none.begin(), none.end(), leaf_names_[i]) != none.end() && found[i].defined())
        CHECK_MESSAGE(all(found[i] == 0.0).item<bool>(), where("grad/" + leaf_names_[i]) << "must be nothing or zeros");
    }
  }

  /// Undefined counts as zeros.
  void compare_stored(const std::string& name, const Tensor& got) const {
    if (const Tensor* want = case_.find(name)) compare(name, got.defined() ? got : zeros(want->shape(), dtype_));
  }

  void compare(const std::string& name, const Tensor& got) const {
    const Tensor* stored = case_.find(name);
    CHECK_MESSAGE(stored, where(name) << "is not in the fixture");
    if (!stored) return;
    const Tensor* stored_f32 = case_.find("f32/" + name);
    Tensor want = *stored, native = stored_f32 ? *stored_f32 : Tensor{};
    for (const Policy& p : policies_) {
      if (p.what != fixture_.name + ":" + case_.id || p.tensor != name) continue;
      CHECK_MESSAGE(case_.accept.contains(name), where(name) << "the fixture accepts nothing but its value");
      want = p.expected(case_, want, to(got, want.dtype()));
      native = {};
    }
    const std::string wrong = mismatch(fixture_, case_, name, got, want, native, dtype_);
    CHECK_MESSAGE(wrong.empty(), where(name) << wrong);
  }

  [[nodiscard]] std::string where(const std::string& name) const {
    return fmt::format("{} {} [{}] {} {}: ", fixture_.name, case_.id, key_of(case_), name, name_of(dtype_));
  }

  const Fixture& fixture_;
  const FixtureCase& case_;
  std::span<const Policy> policies_;
  DType dtype_;
  std::map<std::string, Tensor> arguments_;
  std::vector<std::string> leaf_names_, cot_names_;
  std::vector<Tensor> leaves_;
};

/// True if the case computes anything at all.
bool can_run(const FixtureCase& c, const Op& op) {
  try {
    std::map<std::string, Tensor> arguments;
    for (const std::string& name : c.arguments) arguments[name.substr(name.find('/') + 1)] = c.tensors.at(name);
    static_cast<void>(op(Args(DType::f64, c.attrs, arguments)));
    return true;
  } catch (const std::exception&) {
    return false;
  }
}

}  // namespace

void check_fixtures(std::span<const std::string_view> fixtures, std::span<const Skip> skips,
                    std::span<const Policy> policies) {
  int run = 0, skipped = 0;
  std::set<std::string_view> used;
  for (const std::string_view name : fixtures) {
    const Fixture fixture = read_fixture(std::string(name));
    const int before = run;
    for (const FixtureCase& c : fixture.cases) {
      const std::string key = key_of(c), place = fixture.name + ":" + c.id;
      CAPTURE(place);
      const Op* op = find_op(fixture.name, key);
      const auto skip =
          std::find_if(skips.begin(), skips.end(), [&](const Skip& s) { return s.what == key || s.what == place; });
      if (skip != skips.end()) {
        used.insert(skip->what);
        ++skipped;
        CHECK_MESSAGE(!(op && can_run(c, *op)), place << " runs now: it is skipped for " << skip->missing);
        continue;
      }
      CHECK_MESSAGE(op, place << " has no op " << key);
      if (!op) continue;
      for (const Policy& p : policies)
        if (p.what == place) used.insert(p.what);
      for (const DType dtype : {DType::f64, DType::f32}) Run(fixture, c, policies, dtype).check(*op);
      ++run;
    }
    CHECK_MESSAGE(run > before, name << ": no case runs");
  }
  for (const Skip& s : skips) CHECK_MESSAGE(used.contains(s.what), "no case fits the skip " << s.what);
  for (const Policy& p : policies) CHECK_MESSAGE(used.contains(p.what), "no case fits the policy " << p.what);
  MESSAGE(fmt::format("{} fixtures: {} cases run, {} skipped", fixtures.size(), run, skipped));
}

}  // namespace tapestry::golden
