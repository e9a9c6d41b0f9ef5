// The table of interned paths, and the one number a thread carries. Next: node.h.
#include "scope.h"

#include <deque>
#include <mutex>
#include <unordered_map>

#include "error.h"

namespace tapestry {
namespace {

thread_local uint32_t current = 0;

struct Table {
  std::mutex mutex;
  std::deque<std::string> paths{""};
  std::unordered_map<std::string, uint32_t> ids{{"", 0}};
};
Table& table() {
  static auto* t = new Table;  // never destroyed: nodes freed at exit may still ask for their path
  return *t;
}

}  // namespace

uint32_t intern_path(std::string_view path) {
  Table& t = table();
  const std::lock_guard lock(t.mutex);
  const auto [it, added] = t.ids.try_emplace(std::string(path), static_cast<uint32_t>(t.paths.size()));
  if (added) t.paths.emplace_back(path);
  return it->second;
}

const std::string& path_of(uint32_t id) {
  Table& t = table();
  const std::lock_guard lock(t.mutex);
  return t.paths[id];
}

uint32_t current_scope() { return current; }
const std::string& scope_path() { return path_of(current); }

Scope::Scope(uint32_t path_id) : outer_(std::exchange(current, path_id)) {}
Scope::~Scope() { current = outer_; }

std::string scope_suffix() { return current == 0 ? "" : "; in " + scope_path(); }

}  // namespace tapestry
