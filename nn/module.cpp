// How a call finds its path, and the parts of a module that need no type.
// Not here: the call itself (module.h).
#include "module.h"

#include <mutex>

#include "../autograd/scope.h"

namespace tapestry {

namespace detail {

Tensor copy_of(const Tensor& x) {
  if (!x.defined()) return {};
  Tensor copy = empty(x.shape(), x.dtype());
  copy.copy_(x);
  return copy;
}

}  // namespace detail

Parameter::Parameter(const Tensor& data) : Tensor(data.defined() && !data.is_leaf() ? data.detach() : data) {
  if (!defined()) return;
  requires_grad_();
  body()->storage->mark(MemoryKind::parameter);
}

Parameter::Parameter(const Parameter& other) : Tensor(detail::copy_of(other)) {
  if (!defined()) return;
  requires_grad_(other.requires_grad());
  body()->storage->mark(MemoryKind::parameter);
}

// ---- visiting

void Visitor::run(Module& module, std::string path) {
  path_ = std::move(path);
  on_module(path_, module);
  module.visit(*this);
}

std::string Visitor::join(std::string_view name) const {
  return path_.empty() ? std::string(name) : path_ + "." + std::string(name);
}

void Visitor::parameter(std::string_view name, Parameter& p) {
  if (p.defined()) on_parameter(join(name), p);
}

void Visitor::buffer(std::string_view name, Buffer& b) {
  if (b.defined()) on_buffer(join(name), b);
}

void Visitor::child(std::string_view name, Module& m) {
  const size_t length = path_.size();
  path_ = join(name);
  on_module(path_, m);
  m.visit(*this);
  path_.resize(length);
}

void Module::train(bool on) {
  struct Mode : Visitor {
    bool on;
    explicit Mode(bool value) : on(value) {}
    void on_module(const std::string&, Module& m) override { m.training_ = on; }
  };
  Mode(on).run(*this);
}

// ---- hooks

Module::Hooks& Module::hooks() const {
  if (!hooks_) hooks_ = std::make_unique<Hooks>();
  return *hooks_;
}

namespace {
HookHandle add_hook(const std::shared_ptr<HookList>& list, std::function<Tensor(const Tensor&)> fn) {
  static std::atomic<uint64_t> next_id{1};
  const uint64_t id = next_id.fetch_add(1);
  list->entries.push_back({id, std::move(fn)});
  return {list, id};
}
}  // namespace

HookHandle Module::register_forward_pre_hook(std::function<Tensor(const Tensor&)> fn) const {
  return add_hook(hooks().before, std::move(fn));
}
HookHandle Module::register_forward_hook(std::function<Tensor(const Tensor&)> fn) const {
  return add_hook(hooks().after, std::move(fn));
}

Tensor Module::run_hooks(const HookList& list, Tensor x) {
  const auto entries = list.entries;  // a hook may remove itself
  for (const HookList::Entry& e : entries)
    if (Tensor replaced = e.fn(x); replaced.defined()) x = std::move(replaced);
  return x;
}

// ---- paths

namespace {

std::mutex naming;

uint64_t place(uint32_t tree, uint32_t path) { return (static_cast<uint64_t>(tree) << 32) | path; }
uint32_t tree_in(uint64_t place) { return static_cast<uint32_t>(place >> 32); }
uint32_t path_in(uint64_t place) { return static_cast<uint32_t>(place); }

}  // namespace

const std::string& Module::path() const { return path_of(path_in(place_.load(std::memory_order_relaxed))); }

ModuleCall::Active& ModuleCall::active() {
  thread_local Active a;
  return a;
}

ModuleCall::ModuleCall(const Module& m) : outer_(active()), scope_(enter(m)) {}

void ModuleCall::name_tree(const Module& root, const std::string& path, uint32_t tree) {
  struct Names : Visitor {
    uint32_t tree;
    explicit Names(uint32_t t) : tree(t) {}
    void on_module(const std::string& p, Module& m) override {
      m.place_.store(place(tree, intern_path(p)), std::memory_order_relaxed);
    }
  };
  Names(tree).run(const_cast<Module&>(root), path);  // visit() lists members; this visitor writes only what is mutable
}

uint32_t ModuleCall::enter(const Module& m) {
  Active& now = active();
  uint64_t at = m.place_.load(std::memory_order_relaxed);
  if (now.root == nullptr && tree_in(at) == 0) {
    const std::lock_guard lock(naming);
    static uint32_t trees = 0;
    if (tree_in(m.place_.load(std::memory_order_relaxed)) == 0) name_tree(m, "", ++trees);
    at = m.place_.load(std::memory_order_relaxed);
  } else if (now.root != nullptr && tree_in(at) != now.tree) {
    const std::lock_guard lock(naming);
    name_tree(*now.root, now.root->path(), now.tree);
    at = m.place_.load(std::memory_order_relaxed);
    if (tree_in(at) != now.tree) {  // used inside, but no visit() lists it: it speaks as its caller
      at = place(now.tree, current_scope());
      m.place_.store(at, std::memory_order_relaxed);
    }
  }
  if (now.root == nullptr) now = {&m, tree_in(at)};
  return path_in(at) == 0 ? current_scope() : path_in(at);
}

}  // namespace tapestry
