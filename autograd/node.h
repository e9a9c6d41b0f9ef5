// One recorded operation, and the leaf: a node without inputs that owns a gradient.
// Not here: how ops are written (context.h, function.h) or walked (engine.h).
// Next: context.h.
#pragma once

#include <memory>
#include <mutex>
#include <string_view>

#include "tensor.h"

namespace tapestry {

class Walk;

/// Shape and dtype of an output, against which the engine checks every gradient.
struct Meta {
  Shape shape;
  DType dtype = DType::f32;
};

/// Hooks on one output, in registration order; a handle holds it weakly.
struct HookList {
  struct Entry {
    uint64_t id;
    std::function<Tensor(const Tensor&)> fn;
  };
  std::vector<Entry> entries;
};

/// What few nodes have: hooks and retained gradients, per output.
struct NodeExtras {
  std::vector<std::shared_ptr<HookList>> hooks;
  std::vector<Tensor> retained;
  std::vector<bool> retains;
};

/// A tensor saved for backward: without its edge, with the storage version it was saved at.
struct SavedTensor {
  Tensor tensor;
  uint32_t version = 0;
  int input = -1;   ///< it is this input of the node, whose edge is re-attached when the walk records
  int output = -1;  ///< it is this output
};

class Node : public RefCounted, public Pooled {
 public:
  explicit Node(bool leaf = false);
  virtual ~Node();
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;

  const uint64_t seq;           ///< one global counter: a topological order, across threads too
  const uint32_t path;          ///< module path it was recorded in (scope.h)
  bool released = false;        ///< its saved tensors were dropped by a walk
  uint8_t saved_inputs = 0;     ///< how many of `saved`, the first ones, are the inputs of an op with a composite
  SmallVector<Edge, 2> inputs;  ///< empty edge: that input needs no gradient
  SmallVector<Meta, 1> outputs;
  SmallVector<SavedTensor, 2> saved;
  std::unique_ptr<NodeExtras> extras;

  [[nodiscard]] virtual std::string_view name() const = 0;
  /// y as a formula, and its derivative, where the op says them; for documentation and reports.
  [[nodiscard]] virtual std::string_view formula() const { return {}; }
  [[nodiscard]] virtual std::string_view vjp() const { return {}; }
  /// Gradients of the inputs (one per input, undefined where not needed) from those of the outputs (undefined where none arrived).
  virtual Grads backward(const Walk& walk, Grads grad_outputs) = 0;
  [[nodiscard]] bool is_leaf() const { return leaf_; }
  /// Drops saved tensors; walking it again is an AutogradError.
  virtual void release();

  NodeExtras& make_extras();
  /// Nodes alive in the process.
  static int64_t live();
  /// Frees the node and whatever only it kept alive, in a loop: chains of any length need no stack.
  static void dispose(Node* node);

 private:
  const bool leaf_;
};

/// A leaf that a gradient is wanted for. Lives as long as a tensor or a graph refers to it.
class Leaf final : public Node {
 public:
  explicit Leaf(const Tensor& tensor) : Node(true) { outputs.push_back({tensor.shape(), tensor.dtype()}); }
  [[nodiscard]] std::string_view name() const override { return "leaf"; }
  Grads backward(const Walk&, Grads) override { return {}; }

  bool requires_grad = true;
  Tensor grad;
  std::mutex mutex;  ///< guards grad: walks of several threads may share the leaf
};

}  // namespace tapestry
