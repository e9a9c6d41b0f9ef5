// Live and peak memory by kind (parameters, gradients, optimizer, saved, temporary, cache) and by module path, while a tracker lives.
// Not the allocator's own statistics (../allocator.h): bytes of storages are counted as asked for, not rounded to size classes, and what kernels take for
// themselves is not.
// Next: memory_report.cpp.
#pragma once

#include <array>
#include <map>
#include <string>
#include <string_view>

#include "../tensor.h"

namespace tapestry {

inline constexpr size_t memory_kinds = 6;
/// "temporary", "parameters", "gradients", "optimizer", "saved for backward" or "cache".
std::string_view name_of(MemoryKind kind);

/// Bytes of every kind.
struct MemoryUse {
  std::array<int64_t, memory_kinds> bytes{};
  [[nodiscard]] int64_t operator[](MemoryKind kind) const { return bytes[static_cast<size_t>(kind)]; }
  [[nodiscard]] int64_t total() const;
};

struct MemoryReport {
  MemoryUse live, peak;                           ///< now, and the last time the total was largest
  std::map<std::string, MemoryUse> live_by_path;  ///< module paths that hold something; "" is outside modules
  std::map<std::string, MemoryUse> peak_by_path;
  /// A table: a row per kind, then a row per path, largest peak first, at most `paths` of them.
  [[nodiscard]] std::string to_string(size_t paths = 20) const;
};

/// Counts the storages made while it lives, by any thread. One at a time: ValueError for a second.
///
///     MemoryTracker tracker;                       // before the model, so that its parameters are counted
///     train(model);
///     fmt::print("{}", tracker.report().to_string());
///
/// A storage is temporary until a Parameter, a leaf's .grad, an optimizer, a KV cache or a recorded op takes it; it counts as what it was marked last, and as
/// saved only if it is nothing else, until it is freed. Its path is the module being called when it was made: place() moves it.
class MemoryTracker {
 public:
  MemoryTracker();
  ~MemoryTracker();
  MemoryTracker(const MemoryTracker&) = delete;
  MemoryTracker& operator=(const MemoryTracker&) = delete;

  /// Counts this tensor's storage under `path`, as parameters, made before any call, want.
  void place(std::string_view path, const Tensor& tensor) const;
  [[nodiscard]] MemoryReport report() const;
  /// The peak starts again at what lives now.
  void reset_peak();
};

}  // namespace tapestry
