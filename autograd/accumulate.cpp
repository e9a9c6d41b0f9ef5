// The recorded addition, and addition in place where nobody else looks. Next: hooks.h.
#include "accumulate.h"

#include "error.h"
#include "function.h"
#include "parallel.h"
#include "strided.h"

namespace tapestry {
namespace {

template <class T>
T plus(T a, T b) {
  if constexpr (std::is_same_v<T, bf16>)
    return bf16(static_cast<float>(a) + static_cast<float>(b));
  else
    return a + b;
}

/// to = a + b, all contiguous; `to` may be a or b.
void add(DType dtype, void* to, const void* a, const void* b, int64_t n) {
  dispatch(dtype, [&]<class T> {
    if constexpr (!std::is_same_v<T, bool>) {
      auto* out = static_cast<T*>(to);
      const auto *x = static_cast<const T*>(a), *y = static_cast<const T*>(b);
      parallel_for(n, 32768, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) out[i] = plus(x[i], y[i]);
      });
    }
  });
}

struct AddGrads {
  static constexpr std::string_view name = "add_grads";
  Tensor forward(Context&, const Tensor& a, const Tensor& b) const {
    Tensor y = empty(a.shape(), a.dtype());
    const Tensor x = dense(a), z = dense(b);
    add(a.dtype(), y.body()->storage->data, x.raw_data(), z.raw_data(), y.numel());
    return y;
  }
  Grads backward(Context&, const Tensor& g) const { return {g, g}; }
};

/// The identity, on memory of its own.
struct CopyGrad {
  static constexpr std::string_view name = "copy_grad";
  Tensor forward(Context&, const Tensor& x) const {
    Tensor y = empty(x.shape(), x.dtype());
    return y.copy_(x);
  }
  Grads backward(Context&, const Tensor& g) const { return {g}; }
};

/// May `t` be written or taken over: contiguous, outside any graph, and held by the caller alone?
bool is_free(const Tensor& t) { return t.is_sole_owner() && t.is_contiguous() && !t.body()->edge; }
/// The first element of a free tensor, which may be a view that begins anywhere in its storage.
void* memory_of(const Tensor& t) { return const_cast<void*>(t.raw_data()); }

}  // namespace

Tensor add_grads(const Tensor& a, const Tensor& b) { return apply(AddGrads{}, a, b); }

void accumulate(Tensor& sum, Tensor g) {
  if (!sum.defined()) {
    sum = std::move(g);
  } else if (grad_enabled() && (sum.requires_grad() || g.requires_grad())) {
    sum = add_grads(sum, g);
  } else if (is_free(sum)) {
    const Tensor y = dense(g);
    add(sum.dtype(), memory_of(sum), sum.raw_data(), y.raw_data(), sum.numel());
  } else if (is_free(g)) {
    const Tensor y = dense(sum);
    add(g.dtype(), memory_of(g), y.raw_data(), g.raw_data(), g.numel());
    sum = std::move(g);
  } else {
    sum = add_grads(sum, g);
  }
}

void accumulate_leaf(Leaf& leaf, Tensor g) {
  const std::lock_guard lock(leaf.mutex);
  Tensor& grad = leaf.grad;
  const bool old_recorded = grad.defined() && grad.requires_grad();
  const bool recorded = old_recorded || (grad_enabled() && g.requires_grad());
  if (recorded) {
    if (grad.defined())
      grad = add_grads(grad, g);
    else
      grad = g.is_sole_owner() ? std::move(g) : apply(CopyGrad{}, g);
  } else if (!grad.defined()) {
    // Note [.grad shares storage with nothing]: a + b hands one tensor to two leaves, sum a view of stride 0.
    if (is_free(g)) {
      grad = std::move(g);
    } else {
      const NoGrad raw;
      grad = empty(g.shape(), g.dtype());
      grad.copy_(g);
    }
  } else if (grad.is_contiguous()) {
    const NoGrad raw;
    const Tensor y = dense(g);
    void* to = grad.mutable_raw_data("accumulate");
    add(grad.dtype(), to, to, y.raw_data(), grad.numel());
  } else {
    grad = add_grads(grad, g);
  }
  grad.body()->storage->mark(MemoryKind::gradient);
}

}  // namespace tapestry
