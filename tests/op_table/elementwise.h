// Builders of rows for elementwise ops: one line per op gives its samples of several ranks and broadcasts.
// Next: pointwise_rows.cpp, binary_rows.cpp.
#pragma once

#include "row.h"

namespace tapestry::op_table {

/// What most elementwise rows leave out.
struct Elementwise {
  double low = -2, high = 2;    ///< of the first operand
  double low2 = -2, high2 = 2;  ///< of the second
  bool i64 = false, differentiable = true, zero_derivative = false;
  Bounds bounds = {};
  const char* formula = nullptr;
  const char* vjp = nullptr;
};

constexpr OpRow elementwise(const char* name, Function fn, Point point, const Elementwise& e) {
  OpRow row;
  row.name = name;
  row.formula = e.formula;
  row.vjp = e.vjp;
  row.fn = fn;
  row.point = point;
  row.bounds = e.bounds;
  row.i64 = e.i64;
  row.differentiable = e.differentiable;
  row.zero_derivative = e.zero_derivative;
  return row;
}

constexpr OpRow with(OpRow row, ErrorCase first, ErrorCase second = {}) {
  row.errors[0] = first;
  row.errors[1] = second;
  return row;
}

constexpr OpRow unary(const char* name, Function fn, Point point, const Elementwise& e = {}) {
  OpRow row = elementwise(name, fn, point, e);
  const auto x = [&](auto... sizes) { return Sample{{real(sizes...).in(e.low, e.high)}}; };
  row.samples[0] = x(3, 4);
  row.samples[1] = x();
  row.samples[2] = x(2, 1, 3);
  row.empty = x(0, 3);
  row.large = x(300, 401);
  return row;
}

constexpr OpRow binary(const char* name, Function fn, Point point, const Elementwise& e = {}) {
  OpRow row = elementwise(name, fn, point, e);
  const auto pair = [&](Input a, Input b) { return Sample{{a.in(e.low, e.high), b.in(e.low2, e.high2)}}; };
  row.samples[0] = pair(real(3, 4), real(3, 4));
  row.samples[1] = pair(real(3, 1), real(1, 4));
  row.samples[2] = pair(real(2, 3, 2), real(2));
  row.samples[3] = pair(real(), real(2, 2));
  row.empty = pair(real(0, 3), real(1, 3));
  row.large = pair(real(300, 401), real(401));
  return row;
}

}  // namespace tapestry::op_table
