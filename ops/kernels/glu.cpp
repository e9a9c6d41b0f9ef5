// glu.cpp: glu.h, one loop over lanes for every activation.
// Next: dropout.cpp.
#include "glu.h"

#include <algorithm>

#include "../../autograd/parallel.h"
#include "lanes_erf.h"
#include "lanes_memory.h"

namespace tapestry::kernels {
namespace {

// What an activation gives at one register: its value and its derivative.
template <class V>
struct At {
  V value, derivative;
};

struct Silu {
  template <class V>
  static At<V> at(const V& x) {
    const V s = sigmoid(x), one = num<V>(1);
    return {x * s, s * (one + x * (one - s))};
  }
};
struct Gelu {
  template <class V>
  static At<V> at(const V& x) {
    const V half = num<V>(0.5), cdf = half * erfc(x * num<V>(-0.70710678118654752440));
    return {x * cdf, cdf + x * num<V>(0.39894228040143267794) * exp(-half * x * x)};
  }
};
struct GeluTanh {
  template <class V>
  static At<V> at(const V& x) {
    const V one = num<V>(1), half = num<V>(0.5), c = num<V>(0.79788456080286535588), x2 = x * x;
    const V t = tanh(c * x * (one + num<V>(0.044715) * x2));
    return {half * x * (one + t), half * (one + t) + half * x * (one - t * t) * c * (one + num<V>(0.134145) * x2)};
  }
};
struct Relu {
  template <class V>
  static At<V> at(const V& x) {
    const V zero = num<V>(0);
    return {where(x > zero, x, where(x <= zero, zero, x)), where(x > zero, num<V>(1), zero)};
  }
};
struct Sigmoid {
  template <class V>
  static At<V> at(const V& x) {
    const V s = sigmoid(x);
    return {s, s * (num<V>(1) - s)};
  }
};

template <class F>
void with(Gate activation, F f) {
  switch (activation) {
    case Gate::silu:
      return f(Silu{});
    case Gate::gelu:
      return f(Gelu{});
    case Gate::gelu_tanh:
      return f(GeluTanh{});
    case Gate::relu:
      return f(Relu{});
    case Gate::sigmoid:
      return f(Sigmoid{});
  }
}

// f(row, column, count) for every register.
template <class C, class F>
void each_register(int64_t rows, int64_t d, F f) {
  parallel_for(rows, std::max<int64_t>(1, 8192 / std::max<int64_t>(d, 1)), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) for_lanes<C>(d, [&](int64_t j, int64_t count) { f(i, j, count); });
  });
}

}  // namespace

template <class T>
void glu_forward(Gate activation, int64_t rows, int64_t d, Rows<const T> gate, Rows<const T> up, Rows<T> y) {
  with(activation, [&](auto act) {
    each_register<compute_t<T>>(rows, d, [&](int64_t i, int64_t j, int64_t count) {
      const auto value = act.at(load(gate.data + i * gate.stride + j, count)).value;
      store(value * load(up.data + i * up.stride + j, count), y.data + i * y.stride + j, count);
    });
  });
}

template <class T>
void glu_backward(Gate activation, int64_t rows, int64_t d, Rows<const T> gate, Rows<const T> up, Rows<const T> g,
                  Rows<T> dgate, Rows<T> dup) {
  with(activation, [&](auto act) {
    each_register<compute_t<T>>(rows, d, [&](int64_t i, int64_t j, int64_t count) {
      const auto a = act.at(load(gate.data + i * gate.stride + j, count));
      const auto above = load(g.data + i * g.stride + j, count), u = load(up.data + i * up.stride + j, count);
      if (dgate.data) store(above * u * a.derivative, dgate.data + i * dgate.stride + j, count);
      if (dup.data) store(above * a.value, dup.data + i * dup.stride + j, count);
    });
  });
}

#define TAPESTRY_GLU(T)                                                                        \
  template void glu_forward<T>(Gate, int64_t, int64_t, Rows<const T>, Rows<const T>, Rows<T>); \
  template void glu_backward<T>(Gate, int64_t, int64_t, Rows<const T>, Rows<const T>, Rows<const T>, Rows<T>, Rows<T>);
TAPESTRY_GLU(float)
TAPESTRY_GLU(double)
TAPESTRY_GLU(bf16)
#undef TAPESTRY_GLU

}  // namespace tapestry::kernels
