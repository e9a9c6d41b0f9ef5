// Running f again in backward with the random numbers, module path and recording of the first time. Next: anomaly.h.
#include "checkpoint.h"

#include <algorithm>
#include <unordered_set>

#include "../random.h"
#include "../walk.h"
#include "reenter.h"

namespace tapestry::detail {
namespace {

/// Random numbers as they were, for its lifetime.
class RandomAt {
 public:
  explicit RandomAt(const RandomState& state) : outer_(std::exchange(random_state(), state)) {}
  ~RandomAt() { random_state() = outer_; }
  RandomAt(const RandomAt&) = delete;
  RandomAt& operator=(const RandomAt&) = delete;

 private:
  RandomState outer_;
};

/// What a run of f uses beside its inputs: where the graph it recorded leaves it, each with what was saved of it there.
struct Captured {
  std::vector<Edge> edges;
  std::vector<SavedTensor> saved;
};

/// A number between what was recorded before and what will be.
uint64_t mark_recording() { return Ref<Node>(new Leaf(empty({}, DType::f32)))->seq; }

/// The edges from nodes recorded after `begin` to older ones. `entered` are f's own inputs, which are no news.
Captured captured(const std::vector<Tensor>& ys, const std::vector<Tensor>& entered, uint64_t begin) {
  Captured found;
  std::unordered_set<const Node*> seen;
  std::vector<Node*> stack;
  for (const Tensor& x : entered)
    if (x.defined() && x.body()->edge) seen.insert(x.body()->edge.node.get());
  const auto reach = [&](const Edge& edge, const SavedTensor* saved) {
    if (!edge) return;
    Node* node = edge.node.get();
    if (node->seq > begin) {
      if (seen.insert(node).second) stack.push_back(node);
      return;
    }
    if (seen.contains(node)) return;
    const auto same = [&](const Edge& e) { return e.node == edge.node && e.output_nr == edge.output_nr; };
    auto at = std::find_if(found.edges.begin(), found.edges.end(), same);
    if (at == found.edges.end()) {
      at = found.edges.insert(at, edge);
      found.saved.emplace_back();
    }
    SavedTensor& kept = found.saved[static_cast<size_t>(at - found.edges.begin())];
    if (saved != nullptr && !kept.tensor.defined()) kept = {saved->tensor, saved->version, -1, -1};
  };
  for (const Tensor& y : ys)
    if (y.defined()) reach(y.gradient_edge(), nullptr);
  while (!stack.empty()) {
    const Node& node = *stack.back();
    stack.pop_back();
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      const SavedTensor* saved = nullptr;
      for (const SavedTensor& s : node.saved)
        if (s.input == static_cast<int>(i) && s.tensor.defined()) saved = &s;
      reach(node.inputs[i], saved);
    }
  }
  return found;
}

class Checkpoint final : public Node {
 public:
  Checkpoint(Recomputed f, const RandomState& random, size_t given)
      : f_(std::move(f)), random_(random), given_(given) {}
  [[nodiscard]] std::string_view name() const override { return "checkpoint"; }
  [[nodiscard]] std::string_view formula() const override { return "f(x)"; }
  [[nodiscard]] std::string_view vjp() const override { return "of f, run again"; }
  Grads backward(const Walk& walk, Grads gs) override;
  void release() override {
    Node::release();
    f_ = {};
  }

 private:
  Recomputed f_;
  RandomState random_;
  size_t given_;  ///< inputs that were passed; the other edges are what f captured
};

void check_outputs(const std::vector<Tensor>& ys, const SmallVector<Meta, 1>& metas) {
  bool same = ys.size() == metas.size();
  for (size_t o = 0; same && o < ys.size(); ++o)
    same = !ys[o].defined() || (ys[o].shape() == metas[o].shape && ys[o].dtype() == metas[o].dtype);
  if (!same)
    fail<AutogradError>("checkpoint: run again, the function gave other outputs than the first time; it must be pure");
}

Grads Checkpoint::backward(const Walk& walk, Grads gs) {
  Context c(*this, walk);
  const bool records = grad_enabled();
  std::vector<Tensor> xs, ys;
  for (size_t i = 0; i < inputs.size(); ++i) {  // reading what was saved checks that nobody wrote it
    const Tensor x = c.saved(static_cast<int>(i));
    if (i < given_) xs.push_back(x);
  }
  const EnableGrad recording;
  for (size_t i = 0; i < given_; ++i)
    if (xs[i].defined()) xs[i] = inputs[i] ? reenter(xs[i], records) : xs[i].detach();
  const uint64_t begin = mark_recording();
  {
    const RandomAt then(random_);
    ys = f_(xs);
  }
  check_outputs(ys, outputs);
  const Captured now = captured(ys, xs, begin);
  const auto same = [](const Edge& a, const Edge& b) { return a.node == b.node && a.output_nr == b.output_nr; };
  if (!std::equal(now.edges.begin(), now.edges.end(), inputs.begin() + given_, inputs.end(), same))
    fail<AutogradError>(
        "checkpoint: run again, the function used other tensors that require a gradient than the first time; pass them "
        "as inputs, or leave them in place until backward");

  std::vector<Edge> roots, targets;
  std::vector<Tensor> upstream;
  std::vector<size_t> places;
  for (size_t o = 0; o < ys.size(); ++o)
    if (gs[o].defined() && ys[o].defined() && ys[o].requires_grad()) {
      roots.push_back(ys[o].gradient_edge());
      upstream.push_back(gs[o]);
    }
  for (size_t i = 0; i < inputs.size(); ++i)
    if (inputs[i] && walk.needs(inputs[i])) {
      targets.push_back(i < given_ ? xs[i].gradient_edge() : inputs[i]);
      places.push_back(i);
    }
  Grads result;
  result.resize(inputs.size());
  if (roots.empty() || targets.empty()) return result;
  Walk inner(roots, targets, false, records, records, true);
  inner.run(roots, upstream);
  for (size_t k = 0; k < places.size(); ++k) result[places[k]] = inner.captured(targets[k]);
  return result;
}

}  // namespace

std::vector<Tensor> checkpoint(Recomputed f, std::vector<Tensor> given) {
  if (!grad_enabled()) return f(given);
  const RandomState random = random_state();
  // Note [What a checkpoint captures]: the first run is recorded, too, to see which tensors beside the inputs it leads to; they become inputs of the node, so
  // that every walk knows they depend on it. What was recorded is freed here.
  std::vector<Tensor> xs, ys;
  std::vector<const Tensor*> inputs;
  for (const Tensor& x : given) {
    inputs.push_back(&x);
    if (x.defined())
      xs.push_back(x.requires_grad() ? reenter(x, false) : x.detach());
    else
      xs.push_back(x);
  }
  const uint64_t begin = mark_recording();
  ys = f(xs);
  Captured beside = captured(ys, xs, begin);
  const bool recorded =
      std::any_of(ys.begin(), ys.end(), [](const Tensor& y) { return y.defined() && y.requires_grad(); });
  if (!recorded) return ys;
  auto* made = new Checkpoint(std::move(f), random, given.size());
  const Ref<Node> node(made);
  connect(*made, inputs);
  Context c(*made);
  for (const Tensor& x : given) c.save(x);
  for (size_t k = 0; k < beside.edges.size(); ++k) {
    made->inputs.push_back(beside.edges[k]);
    made->saved.push_back(std::move(beside.saved[k]));
    made->saved.back().input = static_cast<int>(given.size() + k);
  }
  for (Tensor& y : ys)
    if (y.defined()) y = y.detach();
  finish(*made, inputs, ys);
  return ys;
}

}  // namespace tapestry::detail
