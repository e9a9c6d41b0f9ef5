// What an op sees while it runs: what to save in forward, what was saved and what is needed in backward.
// Not stored: a Context lives for one call; what it saves lies in the node.
// Next: function.h.
#pragma once

#include <mutex>
#include <optional>

#include "node.h"

namespace tapestry {

/// A leaf's own .grad, locked, for a rule to add into.
struct GradDestination {
  Tensor grad;
  std::unique_lock<std::mutex> lock;
};

class Context {
 public:
  Context() = default;  ///< nothing is recorded: save() does nothing and needs() is false
  explicit Context(Node& node) : node_(&node) {}
  Context(Node& node, const Walk& walk) : node_(&node), walk_(&walk) {}

  /// Forward: input i needs a gradient and the op is being recorded. Backward: this walk needs the gradient of input i.
  [[nodiscard]] bool needs(int i) const;
  /// Forward: is this call recorded at all?
  [[nodiscard]] bool recording() const { return node_ != nullptr && walk_ == nullptr; }

  /// Keeps tensors for backward, in order; undefined ones keep their place.
  template <class... T>
  void save(const T&... tensors) {
    if (node_ != nullptr) (save_one(tensors), ...);
  }
  /// The i-th saved tensor. With a recording walk, inputs come with their edge. AutogradError if it was overwritten since.
  [[nodiscard]] Tensor saved(int i) const;
  /// Input i of an op that has a composite (such ops keep all their inputs), as saved() would give it.
  [[nodiscard]] Tensor input(int i) const;
  /// Name of the recorded op.
  [[nodiscard]] std::string_view name() const { return node_->name(); }
  /// Shape and dtype of output i.
  [[nodiscard]] const Meta& output(int i = 0) const { return node_->outputs[static_cast<size_t>(i)]; }
  /// Zeros shaped like output i where its gradient is undefined.
  [[nodiscard]] Tensor grad_or_zeros(std::span<const Tensor> gs, int i) const;
  /// The .grad of the leaf behind input i, for a rule to add into (e.g. GEMM with beta = 1), if it exists, is contiguous, and nobody watches: no hook, no
  /// recording walk. The rule then returns that very tensor as its gradient.
  [[nodiscard]] std::optional<GradDestination> grad_destination(int i) const;

 private:
  void save_one(const Tensor& tensor);
  [[nodiscard]] Tensor unpack(const SavedTensor& saved) const;

  Node* node_ = nullptr;
  const Walk* walk_ = nullptr;
  template <class Op>
  friend class OpNode;
};

/// Gradients for the inputs in order; each function is called only if this walk needs its input.
template <class... F>
Grads grads(const Context& c, F&&... functions) {
  Grads result;
  int i = 0;
  ((result.push_back(c.needs(i++) ? functions() : Tensor{})), ...);
  return result;
}

}  // namespace tapestry
