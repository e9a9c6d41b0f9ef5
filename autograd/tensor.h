// The tensor: a cheap shared handle on storage, shape, strides, offset, dtype and the gradient edge.
// Not here: mathematics. Ops are free functions (ops/ops.h); factories are in factory.h; printing in print.h.
// Next: grad_mode.h, node.h.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "dtype.h"
#include "error.h"
#include "ref.h"
#include "shape.h"
#include "small_vector.h"
#include "storage.h"

namespace tapestry {

class Node;
struct Meta;
class HookHandle;
struct TensorBody;

/// Which output of which recorded operation a tensor is; empty where no gradient is needed.
struct Edge {
  Ref<Node> node;
  int output_nr = 0;
  explicit operator bool() const { return static_cast<bool>(node); }
};

struct BackwardOptions {
  bool retain_graph = false;  ///< keep what was saved, so that the graph can be walked again
  bool create_graph = false;  ///< record the walk itself, for higher orders (keeps the graph)
};

class Tensor {
 public:
  /// Undefined: no storage; used for "no gradient" and "no bias".
  Tensor() = default;
  explicit Tensor(Ref<TensorBody> body) : body_(std::move(body)) {}
  Tensor(const Tensor&);
  Tensor(Tensor&&) noexcept;
  Tensor& operator=(const Tensor&);
  Tensor& operator=(Tensor&&) noexcept;
  ~Tensor();

  // --- questions about itself
  [[nodiscard]] bool defined() const { return static_cast<bool>(body_); }
  [[nodiscard]] const Shape& shape() const;
  [[nodiscard]] const Strides& strides() const;
  [[nodiscard]] int64_t offset() const;  ///< elements from the start of the storage
  [[nodiscard]] DType dtype() const;
  [[nodiscard]] int dim() const;                  ///< rank, 0 to 8
  [[nodiscard]] int64_t size(int64_t dim) const;  ///< size along dim (negative counts from the end)
  [[nodiscard]] int64_t numel() const;
  [[nodiscard]] bool is_contiguous() const;
  [[nodiscard]] bool is_same(const Tensor& other) const { return body_ == other.body_; }
  [[nodiscard]] bool shares_storage(const Tensor& other) const;
  [[nodiscard]] uint32_t version() const;      ///< in-place writes to its storage so far
  [[nodiscard]] std::string describe() const;  ///< "[2, 3] f32", for messages

  // --- its data
  /// First element. DTypeError when T is not the element type. Elements lie at sum(index · strides()).
  template <class T>
  [[nodiscard]] const T* data() const {
    check_dtype(dtype_of<T>());
    return static_cast<const T*>(raw_data());
  }
  [[nodiscard]] const void* raw_data() const;
  /// First element, for writing in place: counts as a write. AutogradError on a recorded tensor while recording is on (use NoGrad).
  template <class T>
  [[nodiscard]] T* mutable_data() const {
    check_dtype(dtype_of<T>());
    return static_cast<T*>(mutable_raw_data("mutable_data"));
  }
  /// The same without a type; `op` names the writer in messages and must outlive the storage (a literal).
  [[nodiscard]] void* mutable_raw_data(const char* op) const;
  /// The single element, converted to T; ShapeError unless numel() is 1.
  template <class T = double>
  [[nodiscard]] T item() const;
  /// All elements in row-major order, each converted to T.
  template <class T = float>
  [[nodiscard]] std::vector<T> to_vector() const;

  // --- in place (never recorded; AutogradError on a recorded tensor while recording is on)
  const Tensor& fill_(double value) const;
  const Tensor& zero_() const { return fill_(0); }
  /// Copies src, converted and broadcast, into this.
  const Tensor& copy_(const Tensor& src) const;

  // --- autograd
  [[nodiscard]] bool requires_grad() const;
  [[nodiscard]] bool is_leaf() const;  ///< not the result of a recorded op
  /// Marks a leaf of floating dtype as one whose gradient is wanted, or freezes it. Returns itself.
  const Tensor& requires_grad_(bool value = true) const;
  /// The accumulated gradient of a leaf, or of an intermediate after retain_grad(); undefined if there is none yet.
  [[nodiscard]] Tensor grad() const;
  /// Replaces the gradient by a copy of this one (undefined clears it). ShapeError / DTypeError unless it fits.
  void set_grad(const Tensor& gradient) const;
  void clear_grad() const;
  /// Adds d(this)/d(leaf) to the .grad of every leaf. `gradient` is the upstream gradient; a single element needs none.
  void backward(const Tensor& gradient = {}, BackwardOptions options = {}) const;
  /// The same data without an edge.
  [[nodiscard]] Tensor detach() const;
  /// Keeps the gradient of an intermediate, readable by grad() after backward.
  void retain_grad() const;
  /// Calls fn with the gradient of this tensor in every walk; a defined result replaces it. The hook lives as long as the handle.
  [[nodiscard]] HookHandle register_hook(std::function<Tensor(const Tensor&)> fn) const;

  // --- for ops and the engine
  /// The edge a recorded op would take: empty for frozen leaves and plain data.
  [[nodiscard]] Edge gradient_edge() const;
  /// Another view of the same storage, without an edge. No check that it stays inside: ops check.
  [[nodiscard]] Tensor view_of(const Shape& shape, const Strides& strides, int64_t offset) const;
  /// True if this handle is the only one on its data, so that it may be written or taken over.
  [[nodiscard]] bool is_sole_owner() const;
  [[nodiscard]] TensorBody* body() const { return body_.get(); }

 private:
  void check_dtype(DType wanted) const;
  TensorBody& checked(const char* what) const;
  Ref<TensorBody> body_;
};

struct TensorBody : RefCounted, Pooled {
  Ref<Storage> storage;
  Shape shape;
  Strides strides;
  int64_t offset = 0;
  DType dtype = DType::f32;
  uint32_t recorded_version =
      0;  ///< the storage's version when `edge` was set: a later write makes the value another one than the graph's
  Edge edge;
  TensorBody();
  ~TensorBody();
  TensorBody(const TensorBody&) = delete;
  TensorBody& operator=(const TensorBody&) = delete;
  static void dispose(TensorBody* body);
};

inline Tensor::Tensor(const Tensor&) = default;
inline Tensor::Tensor(Tensor&&) noexcept = default;
inline Tensor& Tensor::operator=(const Tensor&) = default;
inline Tensor& Tensor::operator=(Tensor&&) noexcept = default;
inline Tensor::~Tensor() = default;
inline const Shape& Tensor::shape() const { return checked("shape").shape; }
inline const Strides& Tensor::strides() const { return checked("strides").strides; }
inline int64_t Tensor::offset() const { return checked("offset").offset; }
inline DType Tensor::dtype() const { return checked("dtype").dtype; }
inline int Tensor::dim() const { return checked("dim").shape.rank(); }
inline TensorBody& Tensor::checked(const char* what) const {
  if (!body_) fail<AutogradError>("{}: the tensor is undefined", what);
  return *body_;
}

using Grads = SmallVector<Tensor, 3>;
using Tensors = SmallVector<Tensor, 3>;

/// Uninitialised contiguous memory.
Tensor empty(const Shape& shape, DType dtype);
/// Contiguous copy of x, or x itself if it is contiguous; no edge is kept in a copy (the differentiable one is ops' contiguous()).
Tensor dense(const Tensor& x);

}  // namespace tapestry
