// Tiny f64 ops written with apply(), for tests of the core and its tools without ops/: contiguous results, plain loops.
// Not fast and not complete. Next: test_engine.cpp.
#pragma once

#include <cmath>
#include <functional>

#include "../autograd/factory.h"
#include "../autograd/function.h"

namespace plain {

using namespace tapestry;

template <class F>
Tensor map(const Tensor& a, F&& f) {
  const auto x = a.to_vector<double>();
  std::vector<double> y(x.size());
  for (size_t i = 0; i < x.size(); ++i) y[i] = f(x[i]);
  return from(y, a.shape());
}
template <class F>
Tensor map(const Tensor& a, const Tensor& b, F&& f) {
  const auto x = a.to_vector<double>(), z = b.to_vector<double>();
  std::vector<double> y(x.size());
  for (size_t i = 0; i < x.size(); ++i) y[i] = f(x[i], z[i]);
  return from(y, a.shape());
}

Tensor scale(const Tensor& x, double k);
Tensor add(const Tensor& a, const Tensor& b);
Tensor mul(const Tensor& a, const Tensor& b);
Tensor sin(const Tensor& x);
Tensor cos(const Tensor& x);
Tensor exp(const Tensor& x);
Tensor sum(const Tensor& x);
Tensor spread(const Tensor& x, const Shape& shape);
Tensor transpose(const Tensor& x);
Tensor matmul(const Tensor& a, const Tensor& b);

struct Scale {
  static constexpr std::string_view name = "scale";
  double k;
  Tensor forward(Context&, const Tensor& x) const {
    return map(x, [this](double v) { return k * v; });
  }
  Grads backward(Context&, const Tensor& g) const { return {scale(g, k)}; }
};
/// Hands the same gradient to both inputs.
struct Add {
  static constexpr std::string_view name = "add";
  Tensor forward(Context&, const Tensor& a, const Tensor& b) const { return map(a, b, std::plus<>()); }
  Grads backward(Context&, const Tensor& g) const { return {g, g}; }
};
struct Mul {
  static constexpr std::string_view name = "mul";
  Tensor forward(Context& c, const Tensor& a, const Tensor& b) const {
    c.save(a, b);
    return map(a, b, std::multiplies<>());
  }
  Grads backward(Context& c, const Tensor& g) const {
    const Tensor a = c.saved(0), b = c.saved(1);
    return grads(
        c, [&] { return mul(g, b); }, [&] { return mul(g, a); });
  }
};
struct Sin {
  static constexpr std::string_view name = "sin";
  Tensor forward(Context& c, const Tensor& x) const {
    c.save(x);
    return map(x, [](double v) { return std::sin(v); });
  }
  Grads backward(Context& c, const Tensor& g) const { return {mul(g, cos(c.saved(0)))}; }
};
struct Cos {
  static constexpr std::string_view name = "cos";
  Tensor forward(Context& c, const Tensor& x) const {
    c.save(x);
    return map(x, [](double v) { return std::cos(v); });
  }
  Grads backward(Context& c, const Tensor& g) const { return {scale(mul(g, sin(c.saved(0))), -1)}; }
};
/// Saves its output.
struct Exp {
  static constexpr std::string_view name = "exp";
  Tensor forward(Context& c, const Tensor& x) const {
    Tensor y = map(x, [](double v) { return std::exp(v); });
    c.save(y);
    return y;
  }
  Grads backward(Context& c, const Tensor& g) const { return {mul(g, c.saved(0))}; }
};
struct Sum {
  static constexpr std::string_view name = "sum";
  Shape shape;
  Tensor forward(Context&, const Tensor& x) const {
    double total = 0;
    for (const double v : x.to_vector<double>()) total += v;
    return full({}, total, DType::f64);
  }
  Grads backward(Context&, const Tensor& g) const { return {spread(g, shape)}; }
};
/// One number seen as any shape: a view of stride 0.
struct Spread {
  static constexpr std::string_view name = "spread";
  Shape shape;
  Tensor forward(Context&, const Tensor& x) const {
    Strides still = shape;
    for (int64_t& step : still) step = 0;
    return x.view_of(shape, still, x.offset());
  }
  Grads backward(Context&, const Tensor& g) const { return {sum(g)}; }
};
/// A view of a matrix.
struct Transpose {
  static constexpr std::string_view name = "transpose";
  Tensor forward(Context&, const Tensor& x) const {
    return x.view_of({x.size(1), x.size(0)}, {x.strides()[1], x.strides()[0]}, x.offset());
  }
  Grads backward(Context&, const Tensor& g) const { return {transpose(g)}; }
};
struct Matmul {
  static constexpr std::string_view name = "matmul";
  Tensor forward(Context& c, const Tensor& a, const Tensor& b) const {
    c.save(a, b);
    const int64_t m = a.size(0), k = a.size(1), n = b.size(1);
    const auto x = a.to_vector<double>(), y = b.to_vector<double>();
    std::vector<double> z(static_cast<size_t>(m * n));
    for (int64_t i = 0; i < m * n; ++i)
      for (int64_t l = 0; l < k; ++l)
        z[static_cast<size_t>(i)] += x[static_cast<size_t>(i / n * k + l)] * y[static_cast<size_t>(l * n + i % n)];
    return from(z, {m, n});
  }
  Grads backward(Context& c, const Tensor& g) const {
    const Tensor a = c.saved(0), b = c.saved(1);
    return grads(
        c, [&] { return matmul(g, transpose(b)); }, [&] { return matmul(transpose(a), g); });
  }
};

inline Tensor scale(const Tensor& x, double k) { return apply(Scale{k}, x); }
inline Tensor add(const Tensor& a, const Tensor& b) { return apply(Add{}, a, b); }
inline Tensor mul(const Tensor& a, const Tensor& b) { return apply(Mul{}, a, b); }
inline Tensor sin(const Tensor& x) { return apply(Sin{}, x); }
inline Tensor cos(const Tensor& x) { return apply(Cos{}, x); }
inline Tensor exp(const Tensor& x) { return apply(Exp{}, x); }
inline Tensor sum(const Tensor& x) { return apply(Sum{x.shape()}, x); }
inline Tensor spread(const Tensor& x, const Shape& shape) { return apply(Spread{shape}, x); }
inline Tensor transpose(const Tensor& x) { return apply(Transpose{}, x); }
inline Tensor matmul(const Tensor& a, const Tensor& b) { return apply(Matmul{}, a, b); }

/// A leaf of the given values.
inline Tensor leaf(std::initializer_list<NestedList> values) { return tensor<double>(values).requires_grad_(); }

/// An op of one or two inputs whose rule is a lambda, for rules that are wrong on purpose.
struct Rule {
  static constexpr std::string_view name = "rule";
  std::function<Tensor(const Tensor&)> f;
  std::function<Tensor(Context&, const Tensor& g)> df;
  Tensor forward(Context& c, const Tensor& x) const {
    const Tensor y = f(x);
    c.save(x, y);
    return y;
  }
  Grads backward(Context& c, const Tensor& g) const { return {df(c, g)}; }
};
struct Rule2 {
  static constexpr std::string_view name = "rule2";
  std::function<Tensor(const Tensor&, const Tensor&)> f;
  std::function<Grads(Context&, const Tensor& g)> df;
  Tensor forward(Context& c, const Tensor& a, const Tensor& b) const {
    c.save(a, b);
    return f(a, b);
  }
  Grads backward(Context& c, const Tensor& g) const { return df(c, g); }
};

}  // namespace plain
