// Loading in two passes: compare everything, then copy.
#include "state_dict.h"

#include <algorithm>
#include <numeric>

#include "../autograd/error.h"
#include "visitor.h"

namespace tapestry {
namespace {

/// Edits (insert, delete, replace) from a to b; Levenshtein 1966.
size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 0; i < a.size(); ++i) {
    size_t diagonal = std::exchange(row[0], i + 1);
    for (size_t j = 0; j < b.size(); ++j) {
      const size_t above = row[j + 1];
      row[j + 1] = std::min({above + 1, row[j] + 1, diagonal + (a[i] == b[j] ? 0 : 1)});
      diagonal = above;
    }
  }
  return row.back();
}

/// The name of `names` nearest to `name`, if it is near at all.
std::string nearest(const std::string& name, const std::vector<std::string>& names) {
  size_t best = name.size() / 2 + 1;
  std::string found;
  for (const std::string& other : names)
    if (const size_t d = edit_distance(name, other); d < best) best = d, found = other;
  return found;
}

constexpr size_t shown = 3;

/// "2 missing (a, b, …)"
std::string listing(const std::vector<std::string>& names, const char* what) {
  std::string text = fmt::format("{} {} (", names.size(), what);
  for (size_t i = 0; i < std::min(names.size(), shown); ++i) text += (i == 0 ? "" : ", ") + names[i];
  return text + (names.size() > shown ? ", …)" : ")");
}

}  // namespace

std::string describe(const LoadReport& r) {
  std::vector<std::string> parts;
  if (!r.missing.empty()) parts.push_back(listing(r.missing, "missing"));
  if (!r.unexpected.empty()) {
    std::vector<std::string> hinted = r.unexpected;
    for (size_t i = 0; i < std::min(hinted.size(), shown); ++i)
      if (const std::string near = nearest(hinted[i], r.missing); !near.empty()) hinted[i] += ", nearest " + near;
    parts.push_back(listing(hinted, "unexpected"));
  }
  if (!r.mismatched.empty()) {
    std::string part = fmt::format("{} shape mismatch{}: ", r.mismatched.size(), r.mismatched.size() == 1 ? "" : "es");
    for (size_t i = 0; i < std::min(r.mismatched.size(), shown); ++i) part += (i == 0 ? "" : "; ") + r.mismatched[i];
    parts.push_back(part + (r.mismatched.size() > shown ? "; …" : ""));
  }
  std::string text;
  for (const std::string& part : parts) text += (text.empty() ? "" : ", ") + part;
  return text;
}

StateDict state_dict(const Module& m) {
  StateDict dict;
  for (const auto& [name, p] : named_parameters(m)) dict.emplace(name, p.detach());
  for (const auto& [name, b] : named_buffers(m)) dict.emplace(name, b.detach());
  return dict;
}

LoadReport load_state_dict(Module& m, const StateDict& dict, LoadOptions options) {
  LoadReport report;
  const StateDict own = state_dict(m);
  std::vector<std::pair<Tensor, Tensor>> copies;
  for (const auto& [name, to] : own) {
    const auto found = dict.find(name);
    if (found == dict.end() || !found->second.defined()) {
      report.missing.push_back(name);
      continue;
    }
    const Tensor& from = found->second;
    const bool same_kind = from.dtype() == to.dtype() || (is_floating(from.dtype()) && is_floating(to.dtype()));
    if (from.shape() != to.shape() || !same_kind) {
      report.mismatched.push_back(fmt::format("{} is {}, file has {}", name, to.describe(), from.describe()));
      continue;
    }
    if (from.dtype() != to.dtype())
      report.converted.push_back(fmt::format("{}: {} loaded as {}", name, name_of(from.dtype()), name_of(to.dtype())));
    report.loaded.push_back(name);
    copies.emplace_back(to, from);
  }
  for (const auto& [name, from] : dict)
    if (!own.contains(name)) report.unexpected.push_back(name);
  if (options.strict && !(report.missing.empty() && report.unexpected.empty() && report.mismatched.empty()))
    fail<FormatError>("load_state_dict: {}", describe(report));
  for (const auto& [to, from] : copies) to.copy_(from);
  return report;
}

}  // namespace tapestry
