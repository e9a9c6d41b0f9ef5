// The walk in order: collect the nodes, mark what is needed, run the rules in reverse, hand over the gradients. Next: accumulate.h.
#include "engine.h"

#include <algorithm>

#include "accumulate.h"
#include "error.h"
#include "grad_mode.h"
#include "observer.h"
#include "scope.h"
#include "walk.h"

namespace tapestry {

Walk::Walk(std::span<const Edge> roots, std::span<const Edge> targets, bool accumulates, bool retain_graph,
           bool create_graph, bool stop_at_targets)
    : has_targets_(!targets.empty()),
      accumulates_(accumulates),
      retain_graph_(retain_graph),
      create_graph_(create_graph),
      stop_at_targets_(stop_at_targets) {
  table_.resize(64);
  for (const Edge& root : roots) kept_.push_back(root.node);
  for (const Edge& target : targets) kept_.push_back(target.node);
  collect(roots, targets);
  mark_needed();
}

int64_t Walk::find(const Node* node) const {
  const size_t mask = table_.size() - 1;
  for (size_t at = (reinterpret_cast<uintptr_t>(node) >> 6) * 0x9E3779B97F4A7C15 >> 20;; ++at) {
    const int64_t entry = table_[at & mask];
    if (entry == 0) return -1;
    if (slots_[static_cast<size_t>(entry - 1)].node == node) return entry - 1;
  }
}

int64_t Walk::find_or_add(Node* node, bool& added) {
  const int64_t found = find(node);
  added = found < 0;
  if (!added) return found;
  slots_.push_back(Slot{.node = node, .grads = {}});
  if (slots_.size() * 2 > table_.size())
    grow();
  else
    insert(slots_.size() - 1);
  return static_cast<int64_t>(slots_.size()) - 1;
}

void Walk::insert(size_t slot) {
  const size_t mask = table_.size() - 1;
  size_t at = (reinterpret_cast<uintptr_t>(slots_[slot].node) >> 6) * 0x9E3779B97F4A7C15 >> 20;
  while (table_[at & mask] != 0) ++at;
  table_[at & mask] = static_cast<int64_t>(slot) + 1;
}

void Walk::grow() {
  table_.assign(table_.size() * 4, 0);
  for (size_t i = 0; i < slots_.size(); ++i) insert(i);
}

void Walk::collect(std::span<const Edge> roots, std::span<const Edge> targets) {
  // Nothing recorded before the oldest target can lead to one.
  uint64_t oldest = 0;
  bool added = false;
  for (const Edge& target : targets) {
    if (oldest == 0 || target.node->seq < oldest) oldest = target.node->seq;
    slots_[static_cast<size_t>(find_or_add(target.node.get(), added))].target = true;
  }
  std::vector<Node*> stack;
  const auto reach = [&](const Edge& edge) {
    if (!edge || edge.node->seq < oldest) return;
    const int64_t slot = find_or_add(edge.node.get(), added);
    if ((added || slots_[static_cast<size_t>(slot)].target) && !slots_[static_cast<size_t>(slot)].done) {
      slots_[static_cast<size_t>(slot)].done = true;  // pushed once; cleared below
      stack.push_back(edge.node.get());
    }
  };
  for (const Edge& root : roots) reach(root);
  while (!stack.empty()) {
    Node* node = stack.back();
    stack.pop_back();
    if (stop_at_targets_ && slots_[static_cast<size_t>(find(node))].target) continue;
    for (const Edge& edge : node->inputs) reach(edge);
  }
  order_.resize(slots_.size());
  for (size_t i = 0; i < order_.size(); ++i) order_[i] = static_cast<int64_t>(i);
  const auto older = [&](int64_t a, int64_t b) {
    return slots_[static_cast<size_t>(a)].node->seq < slots_[static_cast<size_t>(b)].node->seq;
  };
  std::reverse(order_.begin(), order_.end());
  if (!std::is_sorted(order_.begin(), order_.end(), older)) std::sort(order_.begin(), order_.end(), older);
  for (Slot& slot : slots_) slot.done = false;
}

void Walk::mark_needed() {
  for (const int64_t i : order_) {
    Slot& slot = slots_[static_cast<size_t>(i)];
    slot.needed = !has_targets_ || slot.target;
    if (slot.needed) continue;
    for (const Edge& edge : slot.node->inputs)
      if (edge) {
        const int64_t s = find(edge.node.get());
        if (s >= 0 && slots_[static_cast<size_t>(s)].needed) slot.needed = true;
      }
  }
  // Each edge into a leaf is one contribution to come.
  for (const int64_t i : order_) {
    const Slot& slot = slots_[static_cast<size_t>(i)];
    if (!slot.needed || stops_at(slot)) continue;
    for (const Edge& edge : slot.node->inputs)
      if (edge && edge.node->is_leaf()) {
        const int64_t s = find(edge.node.get());
        if (s >= 0) ++slots_[static_cast<size_t>(s)].pending;
      }
  }
}

bool Walk::needs(const Edge& edge) const {
  if (!has_targets_) return true;
  const int64_t s = find(edge.node.get());
  return s >= 0 && slots_[static_cast<size_t>(s)].needed;
}

bool Walk::adds_directly(const Node& leaf) const { return accumulates_ && !create_graph_ && !leaf.extras; }

Tensor Walk::captured(const Edge& target) const {
  const Slot& slot = slots_[static_cast<size_t>(find(target.node.get()))];
  return slot.grads.empty() ? Tensor{} : slot.grads[static_cast<size_t>(target.output_nr)];
}

std::vector<Ref<Node>> Walk::nodes() const {
  std::vector<Ref<Node>> result;
  for (const int64_t i : order_) result.emplace_back(slots_[static_cast<size_t>(i)].node);
  return result;
}

void Walk::run(std::span<const Edge> roots, std::span<const Tensor> upstream) {
  const GradMode recording(create_graph_);
  for (const Edge& root : roots) {
    const int64_t s = find(root.node.get());
    if (s >= 0 && root.node->is_leaf()) ++slots_[static_cast<size_t>(s)].pending;
  }
  for (size_t i = 0; i < roots.size(); ++i) deliver(roots[i], upstream[i], nullptr, static_cast<int>(i));
  for (size_t i = order_.size(); i-- > 0;)
    if (!slots_[static_cast<size_t>(order_[i])].node->is_leaf()) step(order_[i]);
}

Grads Walk::run_rule(Node& node, Grads gs) const {
  if (detail::observer == nullptr) return node.backward(*this, std::move(gs));
  detail::tell([&](Observer& o) { o.before_backward(node, gs); });
  Grads in = node.backward(*this, gs);
  detail::tell([&](Observer& o) { o.on_backward(node, gs, in); });
  return in;
}

void Walk::step(int64_t s) {
  Slot& slot = slots_[static_cast<size_t>(s)];
  if (!slot.needed || stops_at(slot)) return;
  Node& node = *slot.node;
  const Scope scope(node.path);
  lent_.clear();
  bool any = false;
  for (const Tensor& g : slot.grads) any = any || g.defined();
  Grads in;
  if (any) {
    arrived(slot);
    bool onward = !has_targets_;
    for (const Edge& edge : node.inputs) onward = onward || (edge && needs(edge));
    if (onward) {
      if (node.released)
        fail<AutogradError>(
            "backward: the graph behind {} was freed by an earlier walk; pass retain_graph = true to the first one",
            node.name());
      Grads gs = slot.target ? slot.grads : std::move(slot.grads);
      if (!slot.target) slot.grads.clear();
      gs.resize(node.outputs.size());
      in = run_rule(node, std::move(gs));
      if (in.size() != node.inputs.size())
        fail<AutogradError>("{}: backward returned {} gradients for {} inputs", node.name(), in.size(),
                            node.inputs.size());
    }
  }
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    const Edge& edge = node.inputs[i];
    if (!edge) continue;
    deliver(edge, i < in.size() ? std::move(in[i]) : Tensor{}, &node, static_cast<int>(i));
  }
  if (!retain_graph_ && !in.empty()) node.release();
}

void Walk::deliver(const Edge& edge, Tensor g, const Node* from, int input) {
  const int64_t s = find(edge.node.get());
  if (s < 0) return;
  Slot& slot = slots_[static_cast<size_t>(s)];
  if (!slot.needed) return;
  if (g.defined()) {
    const Meta& meta = edge.node->outputs[static_cast<size_t>(edge.output_nr)];
    if (g.shape() != meta.shape || g.dtype() != meta.dtype)
      fail<AutogradError>("{}: the gradient of input {} is {}, the input is {}", from ? from->name() : "backward",
                          input, g.describe(), to_string(meta.shape, meta.dtype));
    if (edge.node->is_leaf() && !slot.target && adds_directly(*edge.node)) {
      if (from == nullptr || !is_lent(input, g)) accumulate_leaf(static_cast<Leaf&>(*edge.node), std::move(g));
    } else {
      if (slot.grads.empty()) slot.grads.resize(edge.node->outputs.size());
      accumulate(slot.grads[static_cast<size_t>(edge.output_nr)], std::move(g));
    }
  }
  if (!edge.node->is_leaf() || --slot.pending > 0 || slot.grads.empty()) return;
  if (!stops_at(slot)) arrived(slot);
  if (accumulates_ && slot.grads[0].defined())
    accumulate_leaf(static_cast<Leaf&>(*slot.node), std::move(slot.grads[0]));
}

bool Walk::is_lent(int input, const Tensor& grad) const {
  return std::any_of(lent_.begin(), lent_.end(),
                     [&](const Lent& l) { return l.input == input && l.grad == grad.body(); });
}

void Walk::arrived(Slot& slot) {
  if (!slot.node->extras) return;
  NodeExtras& extras = *slot.node->extras;
  for (size_t nr = 0; nr < slot.grads.size(); ++nr) {
    Tensor& g = slot.grads[nr];
    if (!g.defined()) continue;
    if (const auto list = extras.hooks[nr]) {
      const auto entries = list->entries;  // a hook may remove itself
      for (const HookList::Entry& entry : entries) {
        Tensor replaced = entry.fn(g);
        if (!replaced.defined()) continue;
        if (replaced.shape() != g.shape() || replaced.dtype() != g.dtype())
          fail<AutogradError>("hook on {}: it returned {} for a gradient {}", slot.node->name(), replaced.describe(),
                              g.describe());
        g = std::move(replaced);
      }
    }
    if (extras.retains[nr] && accumulates_) extras.retained[nr] = g;
  }
}

std::vector<Tensor> grad(const std::vector<Tensor>& outputs, const std::vector<Tensor>& inputs, GradOptions options) {
  if (outputs.empty() || inputs.empty())
    fail<AutogradError>("grad: {} outputs and {} inputs; at least one of each is needed", outputs.size(),
                        inputs.size());
  auto& gs = options.grad_outputs;
  if (!gs.empty() && gs.size() != outputs.size())
    fail<AutogradError>("grad: {} grad_outputs for {} outputs", gs.size(), outputs.size());
  gs.resize(outputs.size());
  std::vector<Edge> roots, targets;
  for (size_t i = 0; i < outputs.size(); ++i) {
    const Tensor& y = outputs[i];
    if (!y.requires_grad()) fail<AutogradError>("grad: output {} ({}) does not require a gradient", i, y.describe());
    if (!gs[i].defined()) {
      if (y.numel() != 1)
        fail<AutogradError>("grad: output {} ({}) has {} elements; pass grad_outputs", i, y.describe(), y.numel());
      gs[i] = empty(y.shape(), y.dtype());
      gs[i].fill_(1);
    }
    if (gs[i].shape() != y.shape() || gs[i].dtype() != y.dtype())
      fail<ShapeError>("grad: grad_outputs {} is {}, the output is {}", i, gs[i].describe(), y.describe());
    roots.push_back(y.gradient_edge());
  }
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs[i].requires_grad())
      fail<AutogradError>("grad: input {} ({}) does not require a gradient", i, inputs[i].describe());
    targets.push_back(inputs[i].gradient_edge());
  }
  Walk walk(roots, targets, false, options.retain_graph || options.create_graph, options.create_graph);
  walk.run(roots, gs);
  std::vector<Tensor> result;
  for (size_t i = 0; i < inputs.size(); ++i) {
    result.push_back(walk.captured(targets[i]));
    if (!result.back().defined() && !options.allow_unused)
      fail<AutogradError>(
          "grad: the outputs do not depend on input {} ({}); pass allow_unused = true to get an undefined gradient", i,
          inputs[i].describe());
  }
  return result;
}

std::vector<Ref<Node>> tape(const Tensor& root) {
  if (!root.requires_grad()) return {};
  const Edge edge[] = {root.gradient_edge()};
  return Walk(edge, {}, true, true, false).nodes();
}

}  // namespace tapestry
