// Floating-point operations of the matrix products that really run, op by op and module by module.
// Not a prediction (models/transformer/accounting_flops.h), which is tested against it.
// Next: flop_counter.cpp.
#pragma once

#include <map>
#include <string>

#include "../autograd/observer.h"

namespace tapestry {

/// Counts what the calling thread runs while it lives: 2·m·n·p for a product (m, n)·(n, p), in forward and in backward, where only the gradients that are
/// needed cost. Pointwise ops, reductions and factorisations count as nothing. Attention counts all Tq·Tk pairs, whatever its mask spares the kernel; its
/// backward computes the scores once more. One counter at a time: a second one takes over until it goes.
///
///     const FlopCounter flops;
///     model.loss(tokens, targets).backward();
///     fmt::print("{} {}\n", flops.forward_pass(), flops.backward());
class FlopCounter : private Observer {
 public:
  FlopCounter() : observing_(this) {}
  FlopCounter(const FlopCounter&) = delete;
  FlopCounter& operator=(const FlopCounter&) = delete;

  [[nodiscard]] int64_t forward_pass() const { return forward_; }
  /// Of all that backward walks run: rules, and what checkpoints compute again.
  [[nodiscard]] int64_t backward() const { return backward_; }
  [[nodiscard]] int64_t total() const { return forward_ + backward_; }
  /// Forward and backward together, by module path ("layers.0.attention.q_proj").
  [[nodiscard]] const std::map<std::string, int64_t>& by_path() const { return by_path_; }
  /// The same by op ("linear").
  [[nodiscard]] const std::map<std::string, int64_t>& by_op() const { return by_op_; }

 private:
  void on_forward(std::string_view op, std::span<const Tensor* const> inputs, std::span<const Tensor> outputs) override;
  void before_backward(const Node& node, std::span<const Tensor> grad_outputs) override;
  void on_backward(const Node& node, std::span<const Tensor> grad_outputs,
                   std::span<const Tensor> grad_inputs) override;
  void count(std::string_view op, int64_t flops, bool in_backward);

  int rules_ = 0;  // rules being run, one inside the other
  int64_t forward_ = 0, backward_ = 0;
  std::map<std::string, int64_t> by_path_, by_op_;
  Observing observing_;
};

}  // namespace tapestry
