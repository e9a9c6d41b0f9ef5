// A function from tensors to tensors, as the tools take one: gradcheck, vjp, jacobian, checkpoint.
// Not a recorded op (../function.h): it is any code that runs some.
// Next: functional.h.
#pragma once

#include <concepts>
#include <functional>
#include <span>
#include <vector>

#include "../tensor.h"

namespace tapestry {

/// Any callable from tensors to tensors: it takes a span or a vector of tensors, or one to three tensors, and returns a tensor or a list of them.
/// It must be pure: the same inputs give the same outputs.
class TensorFunction {
 public:
  template <class F>
  requires(!std::same_as<std::remove_cvref_t<F>, TensorFunction>)
      TensorFunction(F f)  // NOLINT(google-explicit-constructor): written as a lambda at the call
      : call_([f = std::move(f)](std::span<const Tensor> xs) {
          if constexpr (std::invocable<const F&, std::span<const Tensor>>) {
            return listed(f(xs));
          } else if constexpr (std::invocable<const F&, const std::vector<Tensor>&>) {
            return listed(f(std::vector<Tensor>(xs.begin(), xs.end())));
          } else if constexpr (std::invocable<const F&, const Tensor&>) {
            return listed(f(xs[0]));
          } else if constexpr (std::invocable<const F&, const Tensor&, const Tensor&>) {
            return listed(f(xs[0], xs[1]));
          } else {
            return listed(f(xs[0], xs[1], xs[2]));
          }
        }) {}
  std::vector<Tensor> operator()(std::span<const Tensor> xs) const { return call_(xs); }

 private:
  static std::vector<Tensor> listed(const Tensor& t) { return {t}; }
  template <class List>
  requires(!std::same_as<List, Tensor>) static std::vector<Tensor> listed(const List& list) {
    return std::vector<Tensor>(list.begin(), list.end());
  }
  std::function<std::vector<Tensor>(std::span<const Tensor>)> call_;
};

}  // namespace tapestry
