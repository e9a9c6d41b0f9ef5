// One row of the op table: everything the checks, the benchmarks and the page of ops need to know of an op, as constants.
// A row holds function pointers and fixed arrays only, so that hundreds of rows compile in seconds.
// Next: reference.h, pointwise_rows.cpp.
#pragma once

#include <concepts>
#include <span>

#include "../../autograd/error.h"
#include "../../autograd/tensor.h"
#include "reference.h"

namespace tapestry::op_table {

enum class Kind : uint8_t { none, real, constant, index, mask, undefined };

/// How to make one input: `real` is differentiated, `constant` is a floating tensor that is not, `index` holds i64
/// numbers in [low, high), `mask` bools; `undefined` passes Tensor{}.
struct Input {
  Kind kind = Kind::none;
  int8_t rank = 0;
  int64_t sizes[5] = {};
  double low = -2, high = 2;
  [[nodiscard]] Shape shape() const { return Shape(std::span<const int64_t>(sizes, static_cast<size_t>(rank))); }
  [[nodiscard]] constexpr Input in(double from, double to) const {
    Input copy = *this;
    copy.low = from;
    copy.high = to;
    return copy;
  }
};

template <std::integral... N>
constexpr Input input(Kind kind, N... sizes) {
  return {kind, sizeof...(N), {static_cast<int64_t>(sizes)...}, -2, 2};
}
template <std::integral... N>
constexpr Input real(N... sizes) {
  return input(Kind::real, sizes...);
}
template <std::integral... N>
constexpr Input constant(N... sizes) {
  return input(Kind::constant, sizes...);
}
template <std::integral... N>
constexpr Input index(int64_t below, N... sizes) {
  return input(Kind::index, sizes...).in(0, static_cast<double>(below));
}
template <std::integral... N>
constexpr Input mask(N... sizes) {
  return input(Kind::mask, sizes...);
}
inline constexpr Input undefined = {Kind::undefined, 0, {}, 0, 0};

inline constexpr int max_inputs = 7, max_samples = 6, max_errors = 3;

/// The inputs of one call, and numbers for the op's attributes: dims, sizes, flags.
struct Sample {
  Input inputs[max_inputs] = {};
  Params p = {};
  [[nodiscard]] constexpr bool given() const { return inputs[0].kind != Kind::none; }
  [[nodiscard]] int count() const {
    int n = 0;
    while (n < max_inputs && inputs[n].kind != Kind::none) ++n;
    return n;
  }
};

using Args = std::span<const Tensor>;

inline Tensors listed(const Tensor& t) { return {t}; }
inline Tensors listed(const Tensors& ts) { return ts; }
template <size_t N>
Tensors listed(const std::array<Tensor, N>& ts) {
  Tensors list;
  for (const Tensor& t : ts) list.push_back(t);
  return list;
}

/// A captureless lambda from (Args) or (Args, Params) to one or several tensors, as a function pointer.
struct Function {
  Tensors (*call)(Args, const Params&) = nullptr;
  constexpr Function() = default;
  template <class F>
  requires std::is_empty_v<F> &&(std::invocable<F, Args> || std::invocable<F, Args, const Params&>)constexpr Function(
      F)  // NOLINT(google-explicit-constructor): rows are written with plain lambdas
      : call([](Args a, const Params& p) -> Tensors {
          if constexpr (std::invocable<F, Args>)
            return listed(F{}(a));
          else
            return listed(F{}(a, p));
        }) {}
  Tensors operator()(Args a, const Params& p) const { return call(a, p); }
  constexpr explicit operator bool() const { return call != nullptr; }
};

/// The same for the reference: from arrays of doubles to one or several arrays.
struct Reference {
  Arrays (*call)(const Arrays&, const Params&) = nullptr;
  constexpr Reference() = default;
  template <class F>
  requires std::is_empty_v<F> &&
      (std::invocable<F, const Arrays&> ||
       std::invocable<F, const Arrays&, const Params&>)constexpr Reference(F)  // NOLINT(google-explicit-constructor)
      : call([](const Arrays& a, const Params& p) -> Arrays {
          if constexpr (std::invocable<F, const Arrays&>)
            return reference::listed(F{}(a));
          else
            return reference::listed(F{}(a, p));
        }) {}
  constexpr explicit operator bool() const { return call != nullptr; }
};

/// A formula on numbers, for elementwise rows: broadcasting and loops are added.
struct Point {
  double (*call)(const double*) = nullptr;
  int arity = 0;
  constexpr Point() = default;
  template <class F>
  requires std::invocable<F, double>
  constexpr Point(F)
      : call([](const double* x) -> double { return F{}(x[0]); }), arity(1) {}  // NOLINT(google-explicit-constructor)
  template <class F>
  requires std::invocable<F, double, double>
  constexpr Point(F)
      : call([](const double* x) -> double { return F{}(x[0], x[1]); }),
        arity(2) {}  // NOLINT(google-explicit-constructor)
  template <class F>
  requires std::invocable<F, double, double, double>
  constexpr Point(F)
      : call([](const double* x) -> double { return F{}(x[0], x[1], x[2]); }),
        arity(3) {}  // NOLINT(google-explicit-constructor)
  constexpr explicit operator bool() const { return call != nullptr; }
};

/// |result - reference| <= bound * max(1, |reference|), where the reference sees the rounded inputs.
struct Bounds {
  double f64 = 1e-13, f32 = 1e-6, bf16 = 0x1p-8;
};

struct ErrorCase {
  void (*call)() = nullptr;
  const char* text = nullptr;  ///< what() begins with it
};

struct OpRow {
  const char* name = nullptr;     ///< unique: the op and, after a blank, the variant
  const char* formula = nullptr;  ///< where the op's own node does not say it
  const char* vjp = nullptr;
  Function fn = {};
  Reference ref = {};  ///< one of ref and point
  Point point = {};
  Function composite = {};  ///< the same in plain ops, for fused ones
  Sample samples[max_samples] = {};
  Sample empty = {};  ///< with a size of 0; not given only where `no_empty` says why
  Sample large = {};  ///< cut over threads, also the benchmark
  ErrorCase errors[max_errors] = {};
  Bounds bounds = {};
  bool differentiable = true;
  bool i64 = false;              ///< also defined for i64, exactly
  bool zero_derivative = false;  ///< a step function: its derivative is 0, so finite differences prove nothing
  const char* no_gradgradcheck = nullptr;  ///< reasons
  const char* no_empty = nullptr;
  const char* no_bf16 = nullptr;
  const char* no_expanded = nullptr;
};

}  // namespace tapestry::op_table
