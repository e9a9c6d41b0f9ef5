// A pointwise op of one's own: a row of formula and derivative, which the library turns into an op of every dtype and order.
// Next: row_variance.h.
#pragma once

#include <tapestry/ops/ops.h>
#include <tapestry/ops/pointwise_row.h>

#include <numbers>

/// ln cosh x, without overflow; derivative tanh x.
inline tapestry::Tensor log_cosh(const tapestry::Tensor& x) {
  using namespace tapestry;
  static constexpr auto row =
      Unary{"log_cosh",
            Saves::x,
            []<class T>(const T& v) { return abs(v) + log1p(exp(num<T>(-2) * abs(v))) - num<T>(std::numbers::ln2); },
            []<class T>(const T& g, const T& v, const T&) { return g * tanh(v); },
            "ln cosh x",
            "g·tanh x"};
  return pointwise(row, x);
}
