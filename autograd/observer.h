// A thread's observer: is told of every op the thread runs and of every node it walks. NaN finders, profiles and traces are observers.
// Not a hook: it belongs to the thread, not to a tensor, and changes nothing. Without one an op pays a single predictable branch.
// Next: tools/anomaly.h, which is one.
#pragma once

#include <span>
#include <string_view>

#include "grad_mode.h"
#include "tensor.h"

namespace tapestry {

class Node;

/// What it is told; the default is to ignore it. Calls come on the observed thread, under NoGrad and without an observer, so it may run ops itself. What it
/// throws passes to whoever ran the op or the walk. The module path is scope_path().
class Observer {
 public:
  virtual ~Observer() = default;
  /// An op has run, recorded or not. Inputs may be undefined; an op that runs others inside is told after them.
  virtual void on_forward(std::string_view /*op*/, std::span<const Tensor* const> /*inputs*/,
                          std::span<const Tensor> /*outputs*/) {}
  /// A node's rule is about to run, with the gradients of its outputs (undefined where none arrived).
  virtual void before_backward(const Node& /*node*/, std::span<const Tensor> /*grad_outputs*/) {}
  /// It has run, and gave these gradients of its inputs (undefined where not needed). Ops the rule ran came in between.
  virtual void on_backward(const Node& /*node*/, std::span<const Tensor> /*grad_outputs*/,
                           std::span<const Tensor> /*grad_inputs*/) {}
};

namespace detail {
inline constinit thread_local Observer* observer = nullptr;
}  // namespace detail

/// Makes `observer` the calling thread's for its lifetime; the one before it comes back afterwards.
///
/// While there is one, rules do not add into a leaf's .grad themselves (Context::grad_destination), so that it sees each contribution alone: a sum of several
/// may then round differently.
class Observing {
 public:
  explicit Observing(Observer* observer) : outer_(detail::observer) { detail::observer = observer; }
  ~Observing() { detail::observer = outer_; }
  Observing(const Observing&) = delete;
  Observing& operator=(const Observing&) = delete;

 private:
  Observer* outer_;
};

namespace detail {
/// Calls event(observer) on the observer there is, under NoGrad and with none installed meanwhile.
template <class F>
void tell(const F& event) {
  Observer* told = observer;
  const Observing nobody(nullptr);
  const NoGrad raw;
  event(*told);
}
void observe_forward(std::string_view op, std::span<const Tensor* const> inputs, std::span<const Tensor> outputs);
}  // namespace detail

}  // namespace tapestry
