// A module of one's own, made of a layer, a parameter and both custom ops.
// Next: main.cpp.
#pragma once

#include <tapestry/nn/linear.h>
#include <tapestry/nn/module.h>

#include "log_cosh.h"
#include "row_variance.h"

/// y = log_cosh(Wx + b) − gain · variance of x: (N, in) to (N, out).
struct CalmLinear : tapestry::Layer<CalmLinear> {
  tapestry::Linear linear;
  tapestry::Parameter gain;

  CalmLinear(int64_t in, int64_t out) : linear(in, out), gain(tapestry::ones({out})) {}
  [[nodiscard]] tapestry::Tensor forward(const tapestry::Tensor& x) const {
    return log_cosh(linear(x)) - unsqueeze(row_variance(x), -1) * gain;
  }
  void visit(tapestry::Visitor& v) override {
    v.child("linear", linear);
    v.parameter("gain", gain);
  }
};
