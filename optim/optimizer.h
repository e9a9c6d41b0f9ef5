// Optimizer: an update rule applied to named parameters, in groups, with their state kept by name.
// Not here: the formulas (sgd.h, adam.h, adamw.h), schedules (schedule.h), clipping (clip.h). Next: adamw.h.
#pragma once

#include <concepts>
#include <initializer_list>
#include <map>
#include <string>
#include <vector>

#include "../autograd/tensor.h"
#include "named_tensors.h"
#include "parameter_filter.h"
#include "state_reader.h"

namespace tapestry {

/// The parameters that `match` chooses, with their options.
template <class Rule>
struct ParameterGroup {
  ParameterFilter match = "*";
  typename Rule::Options options = {};
  double lr_scale = 1;  ///< their rate is options.lr · lr_scale; set_lr leaves the scale alone
};

namespace detail {
/// The group each parameter belongs to: the first that matches. Checks parameters and groups (see Optimizer).
std::vector<size_t> assign_groups(const char* rule, const NamedTensors& parameters,
                                  const std::vector<const ParameterFilter*>& groups);
/// Position of a name; ValueError if there is none.
size_t index_of(const char* op, const NamedTensors& parameters, std::string_view name);
}  // namespace detail

/// Applies Rule (SGD, Adam, AdamW) to parameters.
///
///     Optimizer<AdamW> optimizer(parameters, {.lr = 3e-4});
///     for (int64_t step = 0; step < steps; ++step) {
///       loss(step).backward();
///       optimizer.set_lr(schedule(step));
///       optimizer.step(clip_coefficient(grad_norm(optimizer.parameters()), 1.0));
///       optimizer.zero_grad();
///     }
///
/// A rule is a struct with Options (with an lr), State (with a step count), and the static functions check, update, visit_options and
/// visit_state; sgd.h is the shortest one.
template <class Rule>
class Optimizer {
 public:
  using Options = typename Rule::Options;
  using State = typename Rule::State;
  using Group = ParameterGroup<Rule>;

  /// All parameters in one group.
  explicit Optimizer(NamedTensors parameters, Options options = {})
      : Optimizer(std::move(parameters), std::vector<Group>{Group{.options = options}}) {}
  /// Each parameter in the first group that matches it. ValueError for no parameters or groups, for a name or tensor listed twice, for a
  /// parameter no group matches, for a pattern that fits no name, and for options outside their domain; DTypeError for a parameter that is not
  /// floating; AutogradError for one that is undefined or the result of an op.
  Optimizer(NamedTensors parameters, std::initializer_list<Group> groups)
      : Optimizer(std::move(parameters), std::vector<Group>(groups)) {}
  template <std::same_as<std::vector<Group>> Groups>  // a template, so that {.lr = 1} can only mean Options
  Optimizer(NamedTensors parameters, Groups groups)
      : parameters_(std::move(parameters)), groups_(std::move(groups)), states_(parameters_.size()) {
    std::vector<const ParameterFilter*> filters;
    for (const Group& g : groups_) {
      filters.push_back(&g.match);
      check(g);
    }
    group_of_ = detail::assign_groups(Rule::name, parameters_, filters);
  }
  // A copy would write the same parameters with moments of its own.
  Optimizer(const Optimizer&) = delete;
  Optimizer& operator=(const Optimizer&) = delete;
  Optimizer(Optimizer&&) noexcept = default;
  Optimizer& operator=(Optimizer&&) noexcept = default;
  ~Optimizer() = default;

  /// Updates in place every parameter that has a gradient and is not frozen; the gradient counts as grad · grad_scale. The others keep their
  /// value, state and step count. ValueError for a grad_scale that is negative or not finite; then nothing has changed.
  void step(double grad_scale = 1) {
    for (size_t i = 0; i < parameters_.size(); ++i) {
      const Tensor grad = parameters_[i].second.grad();
      if (!grad.defined() || !parameters_[i].second.requires_grad()) continue;
      const Group& group = groups_[group_of_[i]];
      Options options = group.options;
      options.lr *= group.lr_scale;
      Rule::update(parameters_[i].second, grad, states_[i], options, grad_scale);
    }
  }
  /// Clears the gradients: they are undefined after it.
  void zero_grad() {
    for (const auto& [name, parameter] : parameters_) parameter.clear_grad();
  }

  /// The rate of all groups, each to be multiplied by its lr_scale. ValueError if negative or not finite.
  void set_lr(double lr) {
    std::vector<Group> groups = groups_;
    for (Group& g : groups) {
      g.options.lr = lr;
      check(g);
    }
    groups_ = std::move(groups);
  }
  /// The rate of the first group, without its lr_scale.
  [[nodiscard]] double lr() const { return groups_[0].options.lr; }
  [[nodiscard]] const std::vector<Group>& groups() const { return groups_; }
  [[nodiscard]] const NamedTensors& parameters() const { return parameters_; }
  /// The group and the state of a parameter; ValueError for a name that is none.
  [[nodiscard]] const Group& group(std::string_view name) const {
    return groups_[group_of_[detail::index_of("group", parameters_, name)]];
  }
  [[nodiscard]] const State& state(std::string_view name) const {
    return states_[detail::index_of("state", parameters_, name)];
  }

  /// All that a resumed run needs, under names: "exp_avg.<parameter>" (sharing memory with the optimizer: the next step writes it),
  /// "step.<parameter>" (i64) and, per group, "group.<index>.<option>" (f64).
  [[nodiscard]] std::map<std::string, Tensor> state_dict() const {
    std::map<std::string, Tensor> dict;
    for (size_t g = 0; g < groups_.size(); ++g) {
      const auto put = [&](const char* field, auto value) { dict[group_key(g, field)] = detail::saved_number(value); };
      Rule::visit_options(groups_[g].options, put);
      put("lr_scale", groups_[g].lr_scale);
    }
    for (size_t i = 0; i < parameters_.size(); ++i) {
      State state = states_[i];
      dict[key("step", i)] = detail::saved_count(state.step);
      Rule::visit_state(state, groups_[group_of_[i]].options, [&](const char* field, const Tensor& tensor, bool) {
        if (tensor.defined()) dict[key(field, i)] = tensor;
      });
    }
    return dict;
  }

  /// Puts the optimizer into the state a dict was taken from: moments (copied), step counts and options, lr included. One FormatError names what
  /// is missing, unexpected or does not fit; then nothing has changed. Loading twice is loading once.
  void load_state_dict(const std::map<std::string, Tensor>& dict) {
    detail::StateReader reader(dict);
    std::vector<Group> groups = groups_;
    for (size_t g = 0; g < groups.size(); ++g) {
      const auto get = [&](const char* field, auto& value) { reader.number(group_key(g, field), value); };
      Rule::visit_options(groups[g].options, get);
      get("lr_scale", groups[g].lr_scale);
    }
    std::vector<State> states(parameters_.size());
    for (size_t i = 0; i < parameters_.size(); ++i) {
      reader.count(key("step", i), states[i].step);
      Rule::visit_state(states[i], groups[group_of_[i]].options, [&](const char* field, Tensor& tensor, bool required) {
        reader.tensor(key(field, i), parameters_[i].second, required, tensor);
      });
    }
    reader.finish();
    for (const Group& g : groups) check(g);
    groups_ = std::move(groups);
    states_ = std::move(states);
  }

 private:
  static void check(const Group& group) {
    Rule::check(group.options);
    detail::check_not_negative(Rule::name, "lr_scale", group.lr_scale);
  }
  static std::string group_key(size_t g, const char* field) { return "group." + std::to_string(g) + "." + field; }
  [[nodiscard]] std::string key(const char* field, size_t i) const { return field + ("." + parameters_[i].first); }

  NamedTensors parameters_;
  std::vector<Group> groups_;
  std::vector<State> states_;     // one per parameter
  std::vector<size_t> group_of_;  // one per parameter
};

/// Two groups: parameters of rank 2 and more with `options`, the others (gains, biases) with the same but no weight decay.
template <class Rule>
std::vector<ParameterGroup<Rule>> decay_matrices_only(typename Rule::Options options) {
  auto without_decay = options;
  without_decay.weight_decay = 0;
  const auto is_matrix = [](const std::string&, const Tensor& parameter) { return parameter.dim() >= 2; };
  return {{.match = is_matrix, .options = options}, {.match = "*", .options = without_decay}};
}

}  // namespace tapestry
