// The module path of the calling thread: one interned number, swapped by a guard.
// Not the modules themselves (nn/module.h): the core only reads the path for messages, streams and reports.
// Next: node.h.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace tapestry {

/// Interns a path ("layers.3.attention"); equal paths give equal ids, "" is 0. Thread-safe; ids live as long as the process.
uint32_t intern_path(std::string_view path);
/// The path of an id.
const std::string& path_of(uint32_t id);

/// Id and text of the calling thread's current module path.
uint32_t current_scope();
const std::string& scope_path();

/// Enters a module path for its lifetime.
class Scope {
 public:
  explicit Scope(uint32_t path_id);
  ~Scope();
  Scope(const Scope&) = delete;
  Scope& operator=(const Scope&) = delete;

 private:
  uint32_t outer_;
};

}  // namespace tapestry
