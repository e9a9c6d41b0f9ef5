// The checks of a list of parameters and of its groups. Next: state_reader.cpp.
#include "optimizer.h"

#include <algorithm>
#include <map>

#include "../autograd/node.h"

namespace tapestry::detail {
namespace {

void check_parameters(const char* rule, const NamedTensors& parameters) {
  if (parameters.empty()) fail<ValueError>("{}: there are no parameters to optimize", rule);
  std::map<std::string_view, bool> names;
  std::map<const void*, std::string_view> tensors;
  for (const auto& [name, parameter] : parameters) {
    if (!names.emplace(name, true).second)
      fail<ValueError>("{}: two parameters are named {}; state is kept by name", rule, name);
    if (!parameter.defined()) fail<AutogradError>("{}: parameter {} is undefined", rule, name);
    if (!is_floating(parameter.dtype()))
      fail<DTypeError>("{}: parameter {} ({}) is not floating", rule, name, parameter.describe());
    if (!parameter.is_leaf())
      fail<AutogradError>("{}: parameter {} ({}) is the result of an op, not a leaf", rule, name, parameter.describe());
    // Two handles on one leaf share its gradient: each would apply it.
    const Node* leaf = parameter.body()->edge.node.get();
    const void* identity = leaf ? static_cast<const void*>(leaf) : parameter.body();
    const auto [other, is_new] = tensors.emplace(identity, name);
    if (!is_new) fail<ValueError>("{}: parameters {} and {} are one tensor; list it once", rule, other->second, name);
  }
}

}  // namespace

std::vector<size_t> assign_groups(const char* rule, const NamedTensors& parameters,
                                  const std::vector<const ParameterFilter*>& groups) {
  check_parameters(rule, parameters);
  for (const ParameterFilter* g : groups) {
    const auto fits = [&](const auto& p) { return (*g)(p.first, p.second); };
    if (g->is_pattern() && std::none_of(parameters.begin(), parameters.end(), fits))
      fail<ValueError>("{}: the pattern \"{}\" fits none of the {} parameters (the first is {})", rule, g->pattern(),
                       parameters.size(), parameters[0].first);
  }
  std::vector<size_t> assigned;
  for (const auto& [name, parameter] : parameters) {
    size_t g = 0;
    while (g < groups.size() && !(*groups[g])(name, parameter)) ++g;
    if (g == groups.size())
      fail<ValueError>("{}: parameter {} ({}) is in none of the {} groups; end with a group \"*\"", rule, name,
                       parameter.describe(), groups.size());
    assigned.push_back(g);
  }
  return assigned;
}

size_t index_of(const char* op, const NamedTensors& parameters, std::string_view name) {
  for (size_t i = 0; i < parameters.size(); ++i)
    if (parameters[i].first == name) return i;
  fail<ValueError>("{}: there is no parameter named {} among the {}", op, name, parameters.size());
}

}  // namespace tapestry::detail
