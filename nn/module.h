// Modules: values that list their members once, in visit(), and are called through one place, which knows their path.
// Not here: what is done with the list (visitor.h, state_dict.h).
// Next: visitor.h, linear.h.
#pragma once

#include <atomic>
#include <concepts>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "../autograd/hooks.h"
#include "../autograd/scope.h"
#include "parameter.h"

namespace tapestry {

class Module;

/// Receives the members of a module, and of its children, with their paths ("layers.3.attention.q_proj.weight"). A
/// visitor overrides what it wants to see; a module calls the three verbs.
class Visitor {
 public:
  virtual ~Visitor() = default;
  /// Visits a whole module whose path is `path`.
  void run(Module& module, std::string path = "");

  void parameter(std::string_view name, Parameter& p);  ///< absent ones (undefined) are passed over
  void buffer(std::string_view name, Buffer& b);
  void child(std::string_view name, Module& m);

 protected:
  virtual void on_parameter(const std::string& /*path*/, Parameter& /*p*/) {}
  virtual void on_buffer(const std::string& /*path*/, Buffer& /*b*/) {}
  virtual void on_module(const std::string& /*path*/, Module& /*m*/) {}  ///< before its members

 private:
  [[nodiscard]] std::string join(std::string_view name) const;
  std::string path_;
};

/// What every module has: a list of its members, a mode, and a place in a tree. A module is a value: a copy shares
/// nothing with its original.
class Module {
 public:
  Module() = default;
  // The place in a tree and the hooks belong to the object, not to its value: copies and moved modules start without,
  // an assigned one keeps its own.
  Module(const Module& other) noexcept : training_(other.training_) {}  // noexcept: vectors of modules grow by moving
  Module& operator=(const Module& other) noexcept {
    training_ = other.training_;
    return *this;
  }
  virtual ~Module() = default;

  /// Calls v.parameter, v.buffer or v.child for every member, with its name. A module without members needs none.
  virtual void visit(Visitor& /*v*/) {}

  /// Switches this module and all below it: only dropout and running statistics care.
  void train(bool on = true);
  void eval() { train(false); }
  [[nodiscard]] bool is_training() const { return training_; }

  /// Where the last outermost call placed it: "layers.3.attention", or "" for the root and before any call.
  [[nodiscard]] const std::string& path() const;

  /// `fn` sees the first argument of every call (if that is a tensor), or the result; a defined tensor it returns
  /// replaces it. Lives with the handle.
  [[nodiscard]] HookHandle register_forward_pre_hook(std::function<Tensor(const Tensor& input)> fn) const;
  [[nodiscard]] HookHandle register_forward_hook(std::function<Tensor(const Tensor& output)> fn) const;

 private:
  friend class ModuleCall;
  template <class D>
  friend class Layer;
  struct Hooks {
    std::shared_ptr<HookList> before = std::make_shared<HookList>(), after = std::make_shared<HookList>();
  };
  Hooks& hooks() const;
  static Tensor run_hooks(const HookList& list, Tensor x);

  mutable std::atomic<uint64_t> place_{0};  // tree number, path id
  mutable std::unique_ptr<Hooks> hooks_;
  bool training_ = true;
};

// Note [Paths]: a module does not know its parent, so the outermost call of an unnamed module walks visit() once and
// writes a number for the tree and an interned path into everything below. Inside, a call compares tree numbers and
// swaps one thread-local id. A module that was copied, moved or put in later carries no number or another one, and the
// tree is walked again. Called by itself, a part keeps the path it has in its whole: a checkpoint that recomputes a
// part finds the same random streams.

/// One call of a module: its path is the thread's scope (autograd/scope.h) while it lives.
class ModuleCall {
 public:
  explicit ModuleCall(const Module& m);
  ~ModuleCall() { active() = outer_; }
  ModuleCall(const ModuleCall&) = delete;
  ModuleCall& operator=(const ModuleCall&) = delete;

 private:
  struct Active {
    const Module* root = nullptr;  // the outermost module being called on this thread
    uint32_t tree = 0;
  };
  static Active& active();
  static uint32_t enter(const Module& m);
  static void name_tree(const Module& root, const std::string& path, uint32_t tree);

  Active outer_;
  Scope scope_;
};

/// Base of a module D that can be called: m(x, …) enters D's scope, runs the hooks and returns D::forward(x, …), which
/// nothing else calls. Options are named at the call: attention(x, AttentionArgs{.causal = true}).
template <class D>
class Layer : public Module {
 public:
  template <class... Args>
  auto operator()(Args&&... args) const {
    const ModuleCall call(*this);
    const D& self = static_cast<const D&>(*this);
    if (!hooks_) return self.forward(std::forward<Args>(args)...);
    return hooked(self, std::forward<Args>(args)...);
  }

 private:
  template <class First, class... Rest>
  auto hooked(const D& self, First&& first, Rest&&... rest) const {
    if constexpr (std::derived_from<std::remove_cvref_t<First>, Tensor>) {
      return after(self.forward(run_hooks(*hooks_->before, first), std::forward<Rest>(rest)...));
    } else {
      return after(self.forward(std::forward<First>(first), std::forward<Rest>(rest)...));
    }
  }
  template <class Result>
  auto after(Result result) const {
    if constexpr (std::is_same_v<Result, Tensor>) {
      return run_hooks(*hooks_->after, std::move(result));
    } else {
      return result;
    }
  }
};

}  // namespace tapestry
