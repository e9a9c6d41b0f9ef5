// The hooks, and what is said about a pattern that fits nothing.
#include "capture.h"

#include <algorithm>
#include <numeric>

#include "../autograd/error.h"
#include "../autograd/pattern.h"
#include "visitor.h"

namespace tapestry {
namespace {

/// Characters to insert, remove or replace (Levenshtein 1966) between two names.
size_t distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 0; i < a.size(); ++i) {
    size_t diagonal = std::exchange(row[0], i + 1);
    for (size_t j = 0; j < b.size(); ++j) {
      const size_t replaced = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, row[j] + 1, row[j + 1] + 1});
    }
  }
  return row.back();
}

std::string nearest(std::vector<std::string> paths, std::string_view pattern) {
  std::stable_sort(paths.begin(), paths.end(), [&](const std::string& a, const std::string& b) {
    return distance(pattern, a) < distance(pattern, b);
  });
  std::string text;
  for (size_t i = 0; i < std::min<size_t>(5, paths.size()); ++i) text += (i > 0 ? ", '" : "'") + paths[i] + "'";
  return text;
}

}  // namespace

std::vector<CapturedOutput> Capture::activations() const {
  const std::lock_guard lock(heard_->mutex);
  return heard_->activations;
}

Tensor Capture::operator[](std::string_view path) const {
  const std::lock_guard lock(heard_->mutex);
  const auto& list = heard_->activations;
  const auto last = std::find_if(list.rbegin(), list.rend(), [&](const CapturedOutput& a) { return a.path == path; });
  if (last == list.rend()) fail<ValueError>("capture: nothing was heard of '{}' in {} calls", path, list.size());
  return last->value;
}

void Capture::clear() {
  const std::lock_guard lock(heard_->mutex);
  heard_->activations.clear();
}

Capture capture(const Module& model, std::string_view pattern, CaptureOptions options) {
  Capture result;
  std::vector<std::string> paths;
  // for_each_module lists; hooks are mutable, as they belong to the object and not to its value.
  for_each_module(const_cast<Module&>(model), [&](const std::string& path, Module& m) {
    paths.push_back(path);
    if (!matches_pattern(pattern, path)) return;
    result.hooks_.push_back(
        m.register_forward_hook([heard = result.heard_, path, attached = options.attached](const Tensor& output) {
          const std::lock_guard lock(heard->mutex);
          heard->activations.push_back({path, attached ? output : output.detach()});
          return Tensor{};
        }));
  });
  if (result.hooks_.empty())
    fail<ValueError>("capture: no module's path fits '{}'; near are {}", pattern, nearest(paths, pattern));
  return result;
}

}  // namespace tapestry
