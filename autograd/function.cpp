// What apply() needs that does not depend on the op's type: connecting a node, and differentiating a composite at saved inputs.
// Next: engine.h.
#include "function.h"

#include "engine.h"
#include "error.h"

namespace tapestry::detail {

void refuse_gradient(std::string_view op) {
  fail<AutogradError>("{}: it has no derivative, but an input requires a gradient; detach() the input or use NoGrad",
                      op);
}

bool wants_record(std::span<const Tensor* const> inputs) {
  if (!grad_enabled()) return false;
  for (const Tensor* t : inputs)
    if (t->defined() && t->requires_grad()) return true;
  return false;
}

void connect(Node& node, std::span<const Tensor* const> inputs) {
  node.inputs.reserve(inputs.size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Tensor& t = *inputs[i];
    node.inputs.push_back(t.defined() ? t.gradient_edge() : Edge{});
    // The graph says how the value came about; one written since has another history.
    if (node.inputs.back() && !t.is_leaf() && t.version() != t.body()->recorded_version)
      fail<AutogradError>(
          "{}: input {} (shape {}, result of {}) was overwritten by {} after it was recorded; write before the op, or "
          "on a clone",
          node.name(), i, to_string(t.shape()), t.body()->edge.node->name(), t.body()->storage->last_write.load());
  }
}

void save_inputs(Node& node, std::span<const Tensor* const> inputs) {
  if (inputs.size() > 255)
    fail<AutogradError>("{}: {} inputs, an op with a composite takes at most 255", node.name(), inputs.size());
  node.saved_inputs = static_cast<uint8_t>(inputs.size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    SavedTensor s;
    if (inputs[i]->defined()) {
      s.tensor = inputs[i]->body()->edge ? inputs[i]->detach() : *inputs[i];
      s.version = inputs[i]->version();
      s.tensor.body()->storage->mark(MemoryKind::saved);
      s.input = static_cast<int>(i);
    }
    node.saved.push_back(std::move(s));
  }
}

void finish(Node& node, std::span<const Tensor* const> inputs, std::span<Tensor> outputs) {
  for (size_t i = 0; i < outputs.size(); ++i) {
    Tensor& y = outputs[i];
    if (!y.defined()) {
      node.outputs.push_back({});
      continue;
    }
    for (const Tensor* x : inputs)
      if (x->is_same(y)) y = y.detach();
    for (size_t j = 0; j < i; ++j)
      if (outputs[j].is_same(y)) y = y.detach();
    node.outputs.push_back({y.shape(), y.dtype()});
    for (SavedTensor& s : node.saved)
      if (s.tensor.defined() && s.tensor.is_same(y)) {
        s.tensor = y.detach();
        s.output = static_cast<int>(i);
      }
    if (!is_floating(y.dtype())) continue;
    y.body()->edge = Edge{Ref<Node>(&node), static_cast<int>(i)};
    y.body()->recorded_version = y.version();
  }
}

void observe_forward(std::string_view op, std::span<const Tensor* const> inputs, std::span<const Tensor> outputs) {
  tell([&](Observer& o) { o.on_forward(op, inputs, outputs); });
}

namespace {

/// The same tensor behind a node of its own, where a walk can stop.
struct Identity {
  static constexpr std::string_view name = "identity";
  Tensor forward(Context&, const Tensor& x) const { return x.detach(); }
  Grads backward(Context&, const Tensor& g) const { return {g}; }
};

}  // namespace

Grads through_composite(Context& c, int inputs, const std::function<Tensors(std::span<const Tensor>)>& composite,
                        std::span<const Tensor> gs) {
  const bool records = grad_enabled();
  const EnableGrad recording;
  Tensors xs;
  std::vector<Tensor> wanted;
  std::vector<int> places;
  for (int i = 0; i < inputs; ++i) {
    Tensor x = c.input(i);
    if (c.needs(i)) {
      x = apply(Identity{}, x);
      wanted.push_back(x);
      places.push_back(i);
    } else if (x.defined()) {
      x = x.detach();
    }
    xs.push_back(x);
  }
  const Tensors ys = composite(xs);
  if (ys.size() != gs.size())
    fail<AutogradError>("{}: its composite has {} outputs, its forward {}", c.name(), ys.size(), gs.size());
  std::vector<Tensor> outputs;
  GradOptions options{.create_graph = records, .allow_unused = true};
  for (size_t i = 0; i < gs.size(); ++i) {
    if (!gs[i].defined() || !ys[i].requires_grad()) continue;
    outputs.push_back(ys[i]);
    options.grad_outputs.push_back(gs[i]);
  }
  Grads result;
  result.resize(static_cast<size_t>(inputs));
  if (outputs.empty() || wanted.empty()) return result;
  auto found = grad(outputs, wanted, std::move(options));
  for (size_t i = 0; i < places.size(); ++i) result[static_cast<size_t>(places[i])] = std::move(found[i]);
  return result;
}

}  // namespace tapestry::detail
