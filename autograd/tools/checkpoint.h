// Checkpointing: a part of a model whose activations are not kept but computed again in backward. Chen et al. 2016.
// Not saving to files (models/training/checkpoint.h).
// Next: checkpoint.cpp.
#pragma once

#include <type_traits>
#include <utility>

#include "tensor_function.h"

namespace tapestry {

namespace detail {
using Recomputed = std::function<std::vector<Tensor>(std::span<const Tensor>)>;
std::vector<Tensor> checkpoint(Recomputed f, std::vector<Tensor> inputs);
}  // namespace detail

/// f(inputs…), a tensor or a list of them, keeping for backward the inputs alone: backward runs f again and differentiates that.
///
///     x = checkpoint([&](const Tensor& t) { return block(t); }, x);
///
/// Gradients reach the inputs and whatever else f uses, as parameters of modules, whether the inputs require one or not; for every order (create_graph), with
/// checkpoints inside checkpoints. f runs again with the module path, random step and call numbers of the first time, so dropout drops the same. It must
/// be pure: it captures by value, or by reference what lives until backward, and computes the same each time; module hooks and running statistics see
/// it twice. AutogradError in backward where the outputs or the captured tensors are not those of the first time, or were overwritten.
///
/// Gradients have the bits of the plain run unless a tensor f uses several times also gets a gradient from elsewhere (or has a .grad already): then the sum is
/// made in another order. The first run keeps what f saves until it ends, so the peak is the inputs of all checkpoints and the inside of one.
template <class F, class... T>
requires(std::convertible_to<const T&, const Tensor&>&&...) auto checkpoint(F f, const T&... inputs) {
  using Result = std::remove_cvref_t<std::invoke_result_t<const F&, const T&...>>;
  auto ys = detail::checkpoint(
      [f = std::move(f)](std::span<const Tensor> xs) {
        return [&]<size_t... I>(std::index_sequence<I...>) {
          const Result result = f(xs[I]...);
          if constexpr (std::is_same_v<Result, Tensor>)
            return std::vector<Tensor>{result};
          else
            return std::vector<Tensor>(result.begin(), result.end());
        }
        (std::index_sequence_for<T...>{});
      },
      {inputs...});
  if constexpr (std::is_same_v<Result, Tensor>)
    return Tensor(ys[0]);
  else
    return ys;
}

}  // namespace tapestry
