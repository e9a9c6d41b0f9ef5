// Counting at each allocation, change of kind and release, under one lock. Next: print_tape.h.
#include "memory_report.h"

#include <algorithm>
#include <mutex>
#include <numeric>
#include <vector>

#include "../scope.h"

namespace tapestry {
namespace {

struct Counts {
  std::mutex mutex;
  uint32_t tracker = 0;  // of the tracker that lives, 0 for none
  uint32_t last = 0;
  int64_t live = 0, peak = 0;
  std::vector<MemoryUse> by_path, peak_by_path;  // by path id
};
Counts& counts() {
  static auto* c = new Counts;  // never destroyed: storages of static lifetime are freed after it would be
  return *c;
}

int64_t& bytes_of(Counts& c, const Storage& s) {
  if (s.path >= c.by_path.size()) c.by_path.resize(s.path + 1);
  return c.by_path[s.path].bytes[static_cast<size_t>(s.kind)];
}

// The peak is the last moment the total was largest, so that what was saved right after it was made counts as saved.
void keep_peak(Counts& c) {
  if (c.live < c.peak) return;
  c.peak = c.live;
  c.peak_by_path = c.by_path;
}

/// Changes what a counted storage counts as; `change` writes its kind or path.
template <class F>
void recount(Storage& s, const F& change) {
  Counts& c = counts();
  const std::lock_guard lock(c.mutex);
  if (s.tracker == 0 || s.tracker != c.tracker) return;
  bytes_of(c, s) -= s.bytes;
  change();
  bytes_of(c, s) += s.bytes;
  keep_peak(c);
}

}  // namespace

namespace detail {

void count_storage(Storage& s) {
  Counts& c = counts();
  const std::lock_guard lock(c.mutex);
  s.tracker = c.tracker;
  if (c.tracker == 0) return;
  s.path = current_scope();
  bytes_of(c, s) += s.bytes;
  c.live += s.bytes;
  keep_peak(c);
}

void discount_storage(const Storage& s) {
  Counts& c = counts();
  const std::lock_guard lock(c.mutex);
  if (s.tracker != c.tracker) return;
  bytes_of(c, s) -= s.bytes;
  c.live -= s.bytes;
}

void recount_storage(Storage& s, MemoryKind kind) {
  recount(s, [&] {
    if (kind != MemoryKind::saved || s.kind == MemoryKind::temporary) s.kind = kind;
  });
}

}  // namespace detail

std::string_view name_of(MemoryKind kind) {
  constexpr std::string_view names[memory_kinds] = {"temporary", "parameters",         "gradients",
                                                    "optimizer", "saved for backward", "cache"};
  return names[static_cast<size_t>(kind)];
}

int64_t MemoryUse::total() const { return std::accumulate(bytes.begin(), bytes.end(), int64_t{0}); }

MemoryTracker::MemoryTracker() {
  Counts& c = counts();
  const std::lock_guard lock(c.mutex);
  if (c.tracker != 0) fail<ValueError>("MemoryTracker: there is one already; one at a time");
  c.tracker = ++c.last;
  c.live = c.peak = 0;
  c.by_path.clear();
  c.peak_by_path.clear();
  detail::memory_tracked.store(true, std::memory_order_relaxed);
}

MemoryTracker::~MemoryTracker() {
  Counts& c = counts();
  const std::lock_guard lock(c.mutex);
  c.tracker = 0;
  detail::memory_tracked.store(false, std::memory_order_relaxed);
}

void MemoryTracker::place(std::string_view path, const Tensor& tensor) const {
  if (!tensor.defined()) return;
  Storage& s = *tensor.body()->storage;
  recount(s, [&] { s.path = intern_path(path); });
}

void MemoryTracker::reset_peak() {
  Counts& c = counts();
  const std::lock_guard lock(c.mutex);
  c.peak = c.live;
  c.peak_by_path = c.by_path;
}

MemoryReport MemoryTracker::report() const {
  Counts& c = counts();
  const std::lock_guard lock(c.mutex);
  MemoryReport r;
  const auto sum = [](const std::vector<MemoryUse>& from, MemoryUse& total, std::map<std::string, MemoryUse>& named) {
    for (uint32_t id = 0; id < from.size(); ++id) {
      if (from[id].total() == 0) continue;
      named[path_of(id)] = from[id];
      for (size_t k = 0; k < memory_kinds; ++k) total.bytes[k] += from[id].bytes[k];
    }
  };
  sum(c.by_path, r.live, r.live_by_path);
  sum(c.peak_by_path, r.peak, r.peak_by_path);
  return r;
}

std::string MemoryReport::to_string(size_t paths) const {
  std::string text = fmt::format("{:<40} {:>14} {:>14}\n", "memory, in bytes", "at the peak", "now");
  const auto row = [&](std::string_view name, int64_t at_peak, int64_t now) {
    text += fmt::format("{:<40} {:>14} {:>14}\n", name, at_peak, now);
  };
  for (size_t k = 0; k < memory_kinds; ++k)
    if (peak.bytes[k] != 0 || live.bytes[k] != 0)
      row(name_of(static_cast<MemoryKind>(k)), peak.bytes[k], live.bytes[k]);
  row("total", peak.total(), live.total());
  struct Place {
    std::string path;
    int64_t at_peak, now;
  };
  std::vector<Place> places;
  for (const auto& [path, use] : peak_by_path) {
    const auto now = live_by_path.find(path);
    places.push_back({path, use.total(), now == live_by_path.end() ? 0 : now->second.total()});
  }
  std::stable_sort(places.begin(), places.end(), [](const Place& a, const Place& b) { return a.at_peak > b.at_peak; });
  for (size_t i = 0; i < std::min(paths, places.size()); ++i)
    row("  " + (places[i].path.empty() ? "(outside modules)" : places[i].path), places[i].at_peak, places[i].now);
  if (places.size() > paths) text += fmt::format("  and {} more paths\n", places.size() - paths);
  return text;
}

}  // namespace tapestry
