// A tape of sizes: ops as autograd/engine.h records and walks them, with the memory they take and give back, but without the memory.
// Not a general one: it knows the ways in which a Transformer's ops save tensors and make gradients.
// Next: accounting_peak.cpp, which writes a model in it.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "../../autograd/tools/memory_report.h"

namespace tapestry {

class SizedTape {
 public:
  class Block;  // of memory: counted while somebody holds it
  using Memory = std::shared_ptr<Block>;

  /// What a tensor is to the tape: its size, the memory that keeps it, and where its gradient is collected.
  struct Value {
    int64_t bytes = 0;
    Memory memory = {};
    int slot = -1;  ///< −1: no gradient
  };
  using Values = std::vector<Value>;

  SizedTape() = default;
  SizedTape(const SizedTape&) = delete;
  SizedTape& operator=(const SizedTape&) = delete;

  /// Memory that nothing is recorded of.
  Value constant(int64_t bytes, MemoryKind kind = MemoryKind::temporary);
  /// A parameter, whose gradient stays until clear_gradients().
  Value leaf(int64_t bytes);

  /// How a rule makes the gradients of an op's inputs.
  enum class Rule {
    fresh,  ///< each in memory of its own
    adds,   ///< the same, but into a leaf's gradient where there is one
    passes  ///< the incoming one is handed on
  };
  struct Op {
    Values inputs;
    Values saved = {};  ///< kept until the rule has run
    Rule rule = Rule::fresh;
    int64_t rule_bytes = 0;     ///< temporaries of the rule
    int64_t forward_bytes = 0;  ///< temporaries of the op
  };
  /// Records an op with one output of `bytes`.
  Value apply(const Op& op, int64_t bytes);
  /// The same where the output is a view of the first input's memory.
  Value view(const Op& op, int64_t bytes);
  /// Two views, the halves of x; their gradients are joined in new memory.
  std::array<Value, 2> halves(const Value& x);
  /// f(x), of which only x is kept; the walk runs it again.
  Value checkpoint(const Value& x, std::function<Value(const Value&)> f);

  /// Walks the tape back from `loss`, which is forgotten then.
  void backward(const Value& loss);
  void clear_gradients();

  [[nodiscard]] const MemoryUse& live() const { return live_; }
  /// What lived when the total was largest.
  [[nodiscard]] const MemoryUse& peak() const { return peak_; }
  /// The largest total of the size classes that blocks are taken in (autograd/allocator.h).
  [[nodiscard]] int64_t allocated_peak() const { return allocated_peak_; }

 private:
  struct Slot {
    int64_t bytes = 0;
    Memory gradient = {};
    bool leaf = false;
  };
  struct Node {
    std::vector<int> inputs, outputs;
    Values saved = {};
    Rule rule = Rule::fresh;
    int64_t rule_bytes = 0;
    std::function<Value(const Value&)> again = {};  // of a checkpoint
  };

  Memory take(int64_t bytes, MemoryKind kind = MemoryKind::temporary);
  int new_slot(int64_t bytes, bool leaf = false);
  void mark_saved(const Values& saved);
  Value record(const Op& op, Value out);
  void walk(size_t begin, bool into_leaves);
  void run_rule(Node& node, Memory g, bool into_leaves);
  void run_again(Node& node, const Memory& g, bool into_leaves);
  void deliver(int slot, Memory g, bool into_leaves);
  void count(int64_t bytes, MemoryKind kind);

  MemoryUse live_, peak_;
  int64_t allocated_ = 0, allocated_peak_ = 0;
  std::vector<Slot> slots_;
  std::vector<Node> nodes_;
};

}  // namespace tapestry
