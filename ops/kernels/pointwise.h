// Runs one formula over strided operands of any element types: the template makes one small loop per formula and compute type, all else is shared.
// Not the formulas (../pointwise_table.h) and not SIMD: with only this header a formula runs as a scalar loop; kernels use pointwise_lanes.h.
// Next: pointwise_lanes.h, then pointwise.cpp.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <tuple>
#include <type_traits>
#include <utility>

#include "../../autograd/dtype.h"
#include "../../autograd/shape.h"
#include "formula.h"

namespace tapestry::kernels {

/// An operand of a pointwise loop over a common shape: strides in elements, one per dim of that shape, 0 along repeated dims.
struct Input {
  const void* data;
  DType dtype;
  Strides strides;
};
/// Elements must not overlap each other; they may be exactly those of an input (in place).
struct Output {
  void* data;
  DType dtype;
  Strides strides;
};

/// The one loop a formula is compiled into: n dense elements of the compute type per operand, in any memory.
using Chunk = void (*)(const void* formula, const void* const* in, void* const* out, int64_t n);

/// Feeds `chunk` with every element of `shape`: operands that are dense and of the compute type straight from memory, the others through buffers
/// in L1 that gather, widen, convert (bool is 0 and 1, and != 0 back) and round. `compute` is f32, f64 or i64. Uses the pool.
void run_pointwise(const Shape& shape, DType compute, Chunk chunk, const void* formula, std::span<const Output> outs,
                   std::span<const Input> ins);

/// The type a formula over tensors of `dtype` computes in: f32 for bf16 and bool.
constexpr DType compute_dtype(DType dtype) {
  return dtype == DType::bf16 || dtype == DType::boolean ? DType::f32 : dtype;
}

/// [[noreturn]] DTypeError: the formula is not defined for integers.
[[noreturn]] void fail_integers();

/// What a formula may be compiled over: real (f32 and f64) or also i64.
enum class Domain : uint8_t { reals, numbers };

namespace pointwise {

/// Writes a formula's results: one value, or a tuple of them (a truth value becomes 0 or 1).
template <class T, class R>
void put(const R& result, void* const* out, int64_t i) {
  if constexpr (requires { std::tuple_size<R>::value; }) {
    [&]<size_t... K>(std::index_sequence<K...>) {
      ((static_cast<T*>(out[K])[i] = static_cast<T>(std::get<K>(result))), ...);
    }
    (std::make_index_sequence<std::tuple_size_v<R>>());
  } else {
    static_cast<T*>(out[0])[i] = static_cast<T>(result);
  }
}

}  // namespace pointwise

/// Compiles a formula as a loop over scalars, with the flags of whoever includes this.
struct ScalarLoop {
  template <class T, class F, size_t... I>
  static void chunk(const void* formula, const void* const* in, void* const* out, int64_t n,
                    std::index_sequence<I...>) {
    const F& f = *static_cast<const F*>(formula);
    for (int64_t i = 0; i < n; ++i) pointwise::put<T>(f(static_cast<const T*>(in[I])[i]...), out, i);
  }
};

/// outs = f(ins...) at every element of `shape`. `f` takes one value kind per input (float, double, Lanes, and int64_t with Domain::numbers) and
/// returns one value, a comparison, or a std::tuple of as many values as there are outputs. `dtype` names the inputs' type: bf16 and bool compute
/// in f32. Lambdas may capture; up to 4 inputs and 3 outputs.
///
///     map<LanesLoop>(shape, DType::f32, [](auto a, auto b) { return a + b; }, {{y, DType::f32, ys}}, {{a, DType::f32, as}, {b, DType::bf16, bs}});
template <class Loop = ScalarLoop, Domain domain = Domain::reals, class F, size_t O, size_t I>
void map(const Shape& shape, DType dtype, const F& f, const Output (&outs)[O], const Input (&ins)[I]) {
  static_assert(I <= 4 && O <= 3, "a pointwise loop has up to 4 inputs and 3 outputs");
  constexpr auto chunk_of = []<class T>() -> Chunk {
    return [](const void* formula, const void* const* in, void* const* out, int64_t n) {
      Loop::template chunk<T, F>(formula, in, out, n, std::make_index_sequence<I>());
    };
  };
  const DType compute = compute_dtype(dtype);
  Chunk chunk = nullptr;
  if (compute == DType::f64) {
    chunk = chunk_of.template operator()<double>();
  } else if (compute == DType::f32) {
    chunk = chunk_of.template operator()<float>();
  } else if constexpr (domain == Domain::numbers) {
    chunk = chunk_of.template operator()<int64_t>();
  } else {
    fail_integers();
  }
  run_pointwise(shape, compute, chunk, &f, outs, ins);
}

}  // namespace tapestry::kernels
