// Recording and walking, as autograd/engine.cpp and autograd/accumulate.cpp do it. Next: accounting_peak.cpp.
#include "sized_tape.h"

#include <algorithm>
#include <utility>

#include "../../autograd/size_class.h"

namespace tapestry {

class SizedTape::Block {
 public:
  Block(SizedTape& tape, int64_t bytes, MemoryKind kind) : tape_(tape), bytes_(bytes), kind_(kind) {
    tape_.allocated_ += rounded();
    tape_.allocated_peak_ = std::max(tape_.allocated_peak_, tape_.allocated_);
    tape_.count(bytes_, kind_);
  }
  ~Block() {
    tape_.allocated_ -= rounded();
    tape_.count(-bytes_, kind_);
  }
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;

  void mark(MemoryKind kind) {
    tape_.live_.bytes[static_cast<size_t>(kind_)] -= bytes_;
    kind_ = kind;
    tape_.count(bytes_, kind_);
  }
  [[nodiscard]] MemoryKind kind() const { return kind_; }
  [[nodiscard]] int64_t rounded() const { return static_cast<int64_t>(size_class(static_cast<size_t>(bytes_)).bytes); }

 private:
  SizedTape& tape_;
  int64_t bytes_;
  MemoryKind kind_;
};

void SizedTape::count(int64_t bytes, MemoryKind kind) {
  live_.bytes[static_cast<size_t>(kind)] += bytes;
  if (live_.total() >= peak_.total()) peak_ = live_;
}

SizedTape::Memory SizedTape::take(int64_t bytes, MemoryKind kind) {
  return std::make_shared<Block>(*this, bytes, kind);
}

int SizedTape::new_slot(int64_t bytes, bool leaf) {
  slots_.push_back({.bytes = bytes, .leaf = leaf});
  return static_cast<int>(slots_.size()) - 1;
}

SizedTape::Value SizedTape::constant(int64_t bytes, MemoryKind kind) { return {bytes, take(bytes, kind)}; }

SizedTape::Value SizedTape::leaf(int64_t bytes) {
  return {bytes, take(bytes, MemoryKind::parameter), new_slot(bytes, true)};
}

void SizedTape::mark_saved(const Values& saved) {
  for (const Value& v : saved)
    if (v.memory && v.memory->kind() == MemoryKind::temporary) v.memory->mark(MemoryKind::saved);
}

SizedTape::Value SizedTape::record(const Op& op, Value out) {
  Node node;
  node.saved = op.saved;
  node.rule = op.rule;
  node.rule_bytes = op.rule_bytes;
  for (const Value& in : op.inputs) node.inputs.push_back(in.slot);
  if (std::all_of(node.inputs.begin(), node.inputs.end(), [](int slot) { return slot < 0; })) return out;
  out.slot = new_slot(out.bytes);
  node.outputs = {out.slot};
  mark_saved(node.saved);
  nodes_.push_back(std::move(node));
  return out;
}

SizedTape::Value SizedTape::apply(const Op& op, int64_t bytes) {
  // Inputs count as saved from the start, what the op makes from its end.
  for (const Value& v : op.saved)
    for (const Value& in : op.inputs)
      if (in.memory == v.memory) mark_saved({v});
  Value out{bytes, take(bytes)};
  if (op.forward_bytes > 0) take(op.forward_bytes);
  return record(op, std::move(out));
}

SizedTape::Value SizedTape::view(const Op& op, int64_t bytes) { return record(op, {bytes, op.inputs[0].memory}); }

std::array<SizedTape::Value, 2> SizedTape::halves(const Value& x) {
  std::array<Value, 2> parts;
  for (Value& part : parts) part = {x.bytes / 2, x.memory, new_slot(x.bytes / 2)};
  nodes_.push_back({.inputs = {x.slot}, .outputs = {parts[0].slot, parts[1].slot}});
  return parts;
}

SizedTape::Value SizedTape::checkpoint(const Value& x, std::function<Value(const Value&)> f) {
  const size_t begin = nodes_.size();
  Value y = f({x.bytes, x.memory, new_slot(x.bytes)});
  nodes_.resize(begin);
  mark_saved({x});
  y.slot = new_slot(y.bytes);
  nodes_.push_back({.inputs = {x.slot}, .outputs = {y.slot}, .saved = {x}, .again = std::move(f)});
  return y;
}

void SizedTape::backward(const Value& loss) {
  const Memory upstream = take(loss.bytes);
  slots_[static_cast<size_t>(loss.slot)].gradient = upstream;
  walk(0, true);
}

void SizedTape::walk(size_t begin, bool into_leaves) {
  for (size_t i = nodes_.size(); i-- > begin;) {
    Node node = std::move(nodes_[i]);
    nodes_.resize(i);
    std::vector<Memory> gs;
    for (const int out : node.outputs) gs.push_back(std::move(slots_[static_cast<size_t>(out)].gradient));
    if (node.outputs.size() > 1) {  // halves: joined
      Memory joined = take(slots_[static_cast<size_t>(node.inputs[0])].bytes);
      gs.clear();
      deliver(node.inputs[0], std::move(joined), into_leaves);
    } else if (gs[0] && node.again) {
      run_again(node, gs[0], into_leaves);
    } else if (gs[0]) {
      run_rule(node, std::move(gs[0]), into_leaves);
    }
  }
}

void SizedTape::run_rule(Node& node, Memory g, bool into_leaves) {
  std::vector<Memory> grads;
  {
    const Memory temporary = node.rule_bytes > 0 ? take(node.rule_bytes) : Memory{};
    for (const int in : node.inputs) {
      grads.emplace_back();
      if (in < 0) continue;
      const Slot& slot = slots_[static_cast<size_t>(in)];
      if (node.rule == Rule::passes)
        grads.back() = g;
      else if (!(node.rule == Rule::adds && into_leaves && slot.leaf && slot.gradient))
        grads.back() = take(slot.bytes);
    }
    g.reset();
  }
  for (size_t i = 0; i < grads.size(); ++i)
    if (grads[i]) deliver(node.inputs[i], std::move(grads[i]), into_leaves);
}

/// Runs the part again, walks it, and delivers what that gave for its input and for the leaves together, at the end.
void SizedTape::run_again(Node& node, const Memory& g, bool into_leaves) {
  const size_t begin = nodes_.size(), first_slot = slots_.size();
  Value x = node.saved[0];
  x.slot = new_slot(x.bytes);
  std::vector<Memory> held;  // what the leaves have so far: a walk of its own begins at nothing
  for (Slot& slot : slots_) held.push_back(slot.leaf ? std::exchange(slot.gradient, {}) : Memory{});
  const Value y = node.again(x);  // stays until the end, as in checkpoint.cpp
  slots_[static_cast<size_t>(y.slot)].gradient = g;
  walk(begin, false);
  std::vector<std::pair<int, Memory>> found;
  for (size_t i = 0; i < first_slot; ++i)
    if (slots_[i].leaf) {
      Memory fresh = std::exchange(slots_[i].gradient, std::move(held[i]));
      if (fresh) found.emplace_back(static_cast<int>(i), std::move(fresh));
    }
  Memory dx = std::move(slots_[static_cast<size_t>(x.slot)].gradient);
  if (node.inputs[0] >= 0 && dx) deliver(node.inputs[0], std::move(dx), into_leaves);
  for (auto& [slot, gradient] : found) deliver(slot, std::move(gradient), into_leaves);
}

void SizedTape::deliver(int to, Memory g, bool into_leaves) {
  Slot& slot = slots_[static_cast<size_t>(to)];
  Memory& sum = slot.gradient;
  if (slot.leaf && into_leaves) {
    if (!sum) sum = g.use_count() == 1 ? std::move(g) : take(slot.bytes);
    sum->mark(MemoryKind::gradient);
  } else if (!sum) {
    sum = std::move(g);
  } else if (sum.use_count() > 1) {  // added into the other one, or into new memory
    sum = g.use_count() == 1 ? std::move(g) : take(slot.bytes);
  }
}

void SizedTape::clear_gradients() {
  for (Slot& slot : slots_) slot.gradient.reset();
}

}  // namespace tapestry
