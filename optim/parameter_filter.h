// Choosing parameters: by a pattern over names, or by a predicate.
// Not here: what is done with the chosen ones (optimizer.h). Next: optimizer.h.
#pragma once

#include <concepts>
#include <functional>
#include <string>

#include "../autograd/pattern.h"
#include "../autograd/tensor.h"

namespace tapestry {

/// "layers.*.weight", or [](const std::string& name, const Tensor& parameter) { return parameter.dim() >= 2; }.
class ParameterFilter {
 public:
  ParameterFilter(const char* pattern) : pattern_(pattern) {}             // NOLINT(google-explicit-constructor)
  ParameterFilter(std::string pattern) : pattern_(std::move(pattern)) {}  // NOLINT(google-explicit-constructor)
  template <std::predicate<const std::string&, const Tensor&> F>
  ParameterFilter(F predicate) : predicate_(std::move(predicate)) {}  // NOLINT(google-explicit-constructor)

  bool operator()(const std::string& name, const Tensor& parameter) const {
    return predicate_ ? predicate_(name, parameter) : matches_pattern(pattern_, name);
  }
  [[nodiscard]] bool is_pattern() const { return !predicate_; }
  [[nodiscard]] const std::string& pattern() const { return pattern_; }

 private:
  std::string pattern_;
  std::function<bool(const std::string&, const Tensor&)> predicate_;
};

}  // namespace tapestry
