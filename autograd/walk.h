// One walk over a tape: its marks, gradient slots and leaf counts.
// Everything about a walk lives here and dies with it.
// Next: accumulate.h.
#pragma once

#include <vector>

#include "node.h"

namespace tapestry {

class Walk {
 public:
  /// Collects the tape of `roots`. With `targets` (grad), only nodes on a path to one of them are needed and nothing is added to .grad.
  /// `stop_at_targets`: a target counts as an independent variable, whatever it was computed from, and its hooks are left to the walk that asked.
  Walk(std::span<const Edge> roots, std::span<const Edge> targets, bool accumulates, bool retain_graph,
       bool create_graph, bool stop_at_targets = false);

  /// Delivers the upstream gradients and runs the tape in reverse.
  void run(std::span<const Edge> roots, std::span<const Tensor> upstream);

  /// Does this walk need the gradient that flows along `edge`?
  [[nodiscard]] bool needs(const Edge& edge) const;
  /// May a rule add into this leaf's .grad itself?
  [[nodiscard]] bool adds_directly(const Node& leaf) const;
  /// A rule was given this leaf gradient for input `input` of the node being walked; if it returns it, everything was added already.
  void lend(int input, const Tensor& grad) const { lent_.push_back({input, grad.body()}); }
  /// The gradient that arrived at a target.
  [[nodiscard]] Tensor captured(const Edge& target) const;
  /// The collected nodes in recording order.
  [[nodiscard]] std::vector<Ref<Node>> nodes() const;

 private:
  struct Slot {
    Node* node;
    Grads grads;          ///< per output, summed so far
    int64_t pending = 0;  ///< leaf: contributions still to come
    bool needed = false;
    bool target = false;
    bool done = false;
  };

  // Note [Marks by address]: an open-addressing table from node to slot. Numbers would do for the interior, but leaves are as old as the program.
  [[nodiscard]] int64_t find(const Node* node) const;
  int64_t find_or_add(Node* node, bool& added);
  void insert(size_t slot);
  void grow();

  void collect(std::span<const Edge> roots, std::span<const Edge> targets);
  void mark_needed();
  void step(int64_t slot);
  void deliver(const Edge& edge, Tensor gradient, const Node* from, int input);
  void arrived(Slot& slot);
  [[nodiscard]] bool stops_at(const Slot& slot) const { return stop_at_targets_ && slot.target; }
  Grads run_rule(Node& node, Grads grad_outputs) const;
  [[nodiscard]] bool is_lent(int input, const Tensor& grad) const;

  std::vector<Slot> slots_;
  std::vector<int64_t> table_;  ///< slot + 1, 0 where free
  std::vector<int64_t> order_;  ///< slots sorted by seq
  bool has_targets_, accumulates_, retain_graph_, create_graph_, stop_at_targets_;
  struct Lent {
    int input;
    const TensorBody* grad;
  };
  mutable std::vector<Lent> lent_;  ///< by the step that runs
  std::vector<Ref<Node>> kept_;     ///< the roots: they keep everything collected alive
};

}  // namespace tapestry
