// Saving tensors without their history, and giving them back with it; writes in between are noticed here. Next: function.h.
#include "context.h"

#include "error.h"
#include "factory.h"
#include "grad_mode.h"
#include "observer.h"
#include "walk.h"

namespace tapestry {

bool Context::needs(int i) const {
  if (node_ == nullptr) return false;
  if (i < 0 || static_cast<size_t>(i) >= node_->inputs.size())
    fail<IndexError>("{}: needs({}) asks for one of {} inputs", node_->name(), i, node_->inputs.size());
  const Edge& edge = node_->inputs[static_cast<size_t>(i)];
  return edge && (walk_ == nullptr || walk_->needs(edge));
}

void Context::save_one(const Tensor& tensor) {
  SavedTensor s;
  if (tensor.defined()) {
    s.tensor = tensor.body()->edge ? tensor.detach() : tensor;
    s.version = tensor.version();
    tensor.body()->storage->mark(MemoryKind::saved);
    for (size_t i = 0; i < node_->inputs.size() && s.input < 0; ++i)
      if (node_->inputs[i] && tensor.body()->edge && node_->inputs[i].node == tensor.body()->edge.node &&
          node_->inputs[i].output_nr == tensor.body()->edge.output_nr)
        s.input = static_cast<int>(i);
  }
  node_->saved.push_back(std::move(s));
}

Tensor Context::unpack(const SavedTensor& s) const {
  if (!s.tensor.defined()) return {};
  if (s.tensor.version() != s.version)
    fail<AutogradError>(
        "{}: a tensor saved for backward (shape {}) was overwritten by {}: it is at version {}, saved at version {}; "
        "write before the op or on a clone",
        node_->name(), to_string(s.tensor.shape()), s.tensor.body()->storage->last_write.load(), s.tensor.version(),
        s.version);
  Edge edge;
  if (grad_enabled()) {
    if (s.output >= 0)
      edge = Edge{Ref<Node>(node_), s.output};
    else if (s.input >= 0)
      edge = node_->inputs[static_cast<size_t>(s.input)];
  }
  if (!edge && !s.tensor.body()->edge) return s.tensor;
  Tensor t = s.tensor.detach();
  t.body()->edge = std::move(edge);
  t.body()->recorded_version = s.version;
  return t;
}

Tensor Context::saved(int i) const {
  const size_t at = static_cast<size_t>(i) + node_->saved_inputs;
  if (i < 0 || at >= node_->saved.size())
    fail<IndexError>("{}: saved({}) asks for one of {} saved tensors", node_->name(), i,
                     node_->saved.size() - node_->saved_inputs);
  return unpack(node_->saved[at]);
}

Tensor Context::input(int i) const {
  if (i < 0 || i >= node_->saved_inputs)
    fail<IndexError>("{}: input({}) asks for one of {} kept inputs; only an op with a composite keeps them",
                     node_->name(), i, node_->saved_inputs);
  return unpack(node_->saved[static_cast<size_t>(i)]);
}

Tensor Context::grad_or_zeros(std::span<const Tensor> gs, int i) const {
  const Tensor& g = gs[static_cast<size_t>(i)];
  const Meta& meta = node_->outputs[static_cast<size_t>(i)];
  return g.defined() ? g : zeros(meta.shape, meta.dtype);
}

std::optional<GradDestination> Context::grad_destination(int i) const {
  const Edge& edge = node_->inputs[static_cast<size_t>(i)];
  if (walk_ == nullptr || grad_enabled() || detail::observer != nullptr || !edge || !edge.node->is_leaf() ||
      !walk_->adds_directly(*edge.node))
    return {};
  auto& leaf = static_cast<Leaf&>(*edge.node);
  std::unique_lock lock(leaf.mutex, std::try_to_lock);
  if (!lock.owns_lock() || !leaf.grad.defined() || !leaf.grad.is_contiguous() || leaf.grad.body()->edge) return {};
  walk_->lend(i, leaf.grad);
  return GradDestination{leaf.grad, std::move(lock)};
}

}  // namespace tapestry
