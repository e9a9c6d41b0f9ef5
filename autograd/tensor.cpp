// Members of the tensor: checks with their messages, copies of elements, and the autograd verbs. Next: inplace.cpp, grad_mode.h.
#include "tensor.h"

#include "engine.h"
#include "grad_mode.h"
#include "hooks.h"
#include "node.h"
#include "strided.h"
#include "walk.h"

namespace tapestry {

TensorBody::TensorBody() = default;
TensorBody::~TensorBody() = default;
void TensorBody::dispose(TensorBody* body) { delete body; }

int64_t Tensor::size(int64_t d) const { return shape()[normalize_dim("size", d, dim())]; }
int64_t Tensor::numel() const { return tapestry::numel(checked("numel").shape); }
bool Tensor::is_contiguous() const { return tapestry::is_contiguous(shape(), strides()); }
bool Tensor::shares_storage(const Tensor& other) const {
  return defined() && other.defined() && body_->storage == other.body_->storage;
}
uint32_t Tensor::version() const { return checked("version").storage->version.load(std::memory_order_relaxed); }
std::string Tensor::describe() const { return defined() ? to_string(shape(), dtype()) : "undefined"; }
bool Tensor::is_sole_owner() const {
  return defined() && body_->ref_count() == 1 && body_->storage->ref_count() == 1 && !body_->storage->borrowed;
}

void Tensor::check_dtype(DType wanted) const {
  if (checked("data").dtype != wanted)
    fail<DTypeError>("data: the tensor {} does not hold {} elements; convert with to(x, DType::{})", describe(),
                     name_of(wanted), name_of(wanted));
}

const void* Tensor::raw_data() const {
  const TensorBody& b = checked("data");
  return static_cast<const char*>(b.storage->data) + b.offset * size_of(b.dtype);
}

void* Tensor::mutable_raw_data(const char* op) const {
  const TensorBody& b = checked(op);
  if (grad_enabled() && requires_grad())
    fail<AutogradError>(
        "{}: an in-place write to a recorded tensor {}{}; write under NoGrad or use the out-of-place op", op,
        describe(),
        is_leaf() ? " (a leaf that requires a gradient)"
                  : std::string(" (result of ") + std::string(b.edge.node->name()) + ")");
  b.storage->version.fetch_add(1, std::memory_order_relaxed);
  b.storage->last_write.store(op, std::memory_order_relaxed);
  return static_cast<char*>(b.storage->data) + b.offset * size_of(b.dtype);
}

template <class T>
T Tensor::item() const {
  if (numel() != 1) fail<ShapeError>("item: the tensor {} has {} elements, not one", describe(), numel());
  return dispatch(dtype(), [&]<class E> { return convert<T>(*static_cast<const E*>(raw_data())); });
}

template <class T>
std::vector<T> Tensor::to_vector() const {
  const Tensor x = dense(*this);
  std::vector<T> result(static_cast<size_t>(numel()));
  dispatch(dtype(), [&]<class E> {
    const auto* from = static_cast<const E*>(x.raw_data());
    for (size_t i = 0; i < result.size(); ++i) result[i] = convert<T>(from[i]);
  });
  return result;
}

template double Tensor::item() const;
template float Tensor::item() const;
template int64_t Tensor::item() const;
template int Tensor::item() const;
template bool Tensor::item() const;
template std::vector<double> Tensor::to_vector() const;
template std::vector<float> Tensor::to_vector() const;
template std::vector<int64_t> Tensor::to_vector() const;
template std::vector<int> Tensor::to_vector() const;
template std::vector<bool> Tensor::to_vector() const;

Tensor Tensor::view_of(const Shape& new_shape, const Strides& new_strides, int64_t new_offset) const {
  const TensorBody& b = checked("view");
  Ref<TensorBody> body(new TensorBody);
  body->storage = b.storage;
  body->shape = new_shape;
  body->strides = new_strides;
  body->offset = new_offset;
  body->dtype = b.dtype;
  return Tensor(std::move(body));
}

Tensor Tensor::detach() const { return view_of(shape(), strides(), offset()); }

Edge Tensor::gradient_edge() const {
  const Edge& e = checked("gradient_edge").edge;
  if (e && e.node->is_leaf() && !static_cast<const Leaf&>(*e.node).requires_grad) return {};
  return e;
}

bool Tensor::requires_grad() const {
  const Edge& e = checked("requires_grad").edge;
  return e && (!e.node->is_leaf() || static_cast<const Leaf&>(*e.node).requires_grad);
}

bool Tensor::is_leaf() const {
  const Edge& e = checked("is_leaf").edge;
  return !e || e.node->is_leaf();
}

const Tensor& Tensor::requires_grad_(bool value) const {
  TensorBody& b = checked("requires_grad_");
  if (!is_leaf()) {
    if (value) return *this;
    fail<AutogradError>("requires_grad_: the tensor {} is the result of {}; use detach()", describe(),
                        b.edge.node->name());
  }
  if (value && !is_floating(b.dtype))
    fail<DTypeError>("requires_grad_: only floating tensors have gradients, this one is {}", describe());
  if (!b.edge && value) b.edge = Edge{Ref<Node>(new Leaf(*this)), 0};
  if (b.edge) static_cast<Leaf&>(*b.edge.node).requires_grad = value;
  return *this;
}

Tensor Tensor::grad() const {
  const Edge& e = checked("grad").edge;
  if (!e) return {};
  if (!e.node->is_leaf()) return e.node->extras ? e.node->extras->retained[static_cast<size_t>(e.output_nr)] : Tensor{};
  auto& leaf = static_cast<Leaf&>(*e.node);
  const std::lock_guard lock(leaf.mutex);
  return leaf.grad;
}

void Tensor::set_grad(const Tensor& gradient) const {
  const Edge& e = checked("set_grad").edge;
  if (!e || !e.node->is_leaf())
    fail<AutogradError>("set_grad: the tensor {} is not a leaf that requires a gradient", describe());
  if (gradient.defined() && gradient.shape() != shape())
    fail<ShapeError>("set_grad: the gradient {} does not have the shape of the tensor {}", gradient.describe(),
                     describe());
  if (gradient.defined() && gradient.dtype() != dtype())
    fail<DTypeError>("set_grad: the gradient {} does not have the dtype of the tensor {}", gradient.describe(),
                     describe());
  auto& leaf = static_cast<Leaf&>(*e.node);
  const std::lock_guard lock(leaf.mutex);
  if (!gradient.defined() || gradient.requires_grad()) {
    leaf.grad = gradient;
    return;
  }
  const NoGrad raw;
  leaf.grad = empty(shape(), dtype());  // a copy: backward adds in place
  leaf.grad.copy_(gradient);
}

void Tensor::clear_grad() const {
  const Edge& e = checked("clear_grad").edge;
  if (e && e.node->is_leaf()) set_grad({});
}

void Tensor::backward(const Tensor& gradient, BackwardOptions options) const {
  if (!requires_grad())
    fail<AutogradError>("backward: the tensor {} does not require a gradient; no input of its graph does", describe());
  Tensor g = gradient;
  if (!g.defined()) {
    if (numel() != 1)
      fail<AutogradError>("backward: the tensor {} has {} elements; pass the upstream gradient", describe(), numel());
    g = empty(shape(), dtype());
    g.fill_(1);
  }
  if (g.shape() != shape())
    fail<ShapeError>("backward: the upstream gradient {} does not have the shape of the tensor {}", g.describe(),
                     describe());
  if (g.dtype() != dtype())
    fail<DTypeError>("backward: the upstream gradient {} does not have the dtype of the tensor {}", g.describe(),
                     describe());
  const Edge root[] = {gradient_edge()};
  const Tensor upstream[] = {g};
  g = {};
  Walk walk(root, {}, true, options.retain_graph || options.create_graph, options.create_graph);
  walk.run(root, upstream);
}

void Tensor::retain_grad() const {
  const Edge& e = checked("retain_grad").edge;
  if (!e) fail<AutogradError>("retain_grad: the tensor {} does not require a gradient", describe());
  if (!e.node->is_leaf()) e.node->make_extras().retains[static_cast<size_t>(e.output_nr)] = true;
}

HookHandle Tensor::register_hook(std::function<Tensor(const Tensor&)> fn) const {
  const Edge& e = checked("register_hook").edge;
  if (!e) fail<AutogradError>("register_hook: the tensor {} does not require a gradient", describe());
  if (!fn) fail<ValueError>("register_hook: the hook is empty; pass a function");
  static std::atomic<uint64_t> next_id{1};
  auto& list = e.node->make_extras().hooks[static_cast<size_t>(e.output_nr)];
  if (!list) list = std::make_shared<HookList>();
  const uint64_t id = next_id.fetch_add(1);
  list->entries.push_back({id, std::move(fn)});
  return {list, id};
}

void HookHandle::remove() {
  if (const auto list = list_.lock())
    std::erase_if(list->entries, [&](const HookList::Entry& e) { return e.id == id_; });
  list_.reset();
}

Tensor empty(const Shape& shape, DType dtype) {
  Ref<TensorBody> body(new TensorBody);
  int64_t bytes = 0;
  if (__builtin_mul_overflow(numel(shape), size_of(dtype), &bytes))
    fail<ShapeError>("empty: {} has more bytes than there can be", to_string(shape, dtype));
  body->storage = Ref<Storage>(new Storage(bytes));
  body->shape = shape;
  body->strides = contiguous_strides(shape);
  body->dtype = dtype;
  return Tensor(std::move(body));
}

Tensor dense(const Tensor& x) {
  if (x.is_contiguous()) return x;
  Tensor y = empty(x.shape(), x.dtype());
  strided_copy(x.shape(), x.dtype(), y.body()->storage->data, y.strides(), x.dtype(), x.raw_data(), x.strides());
  return y;
}

}  // namespace tapestry
