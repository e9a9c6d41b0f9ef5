// Running sums, products and extremes, and the product: kernels against plain loops in every layout, zeros, infinities, NaN, order of accumulation.
// Not values and derivatives in general: those are rows of the op table.
// Next: test_sort.cpp.
#include <doctest/doctest.h>

#include <cmath>

#include "../autograd/engine.h"
#include "../autograd/parallel.h"
#include "../autograd/tools/gradcheck.h"
#include "../ops/kernels/scan.h"
#include "../ops/ops.h"
#include "strided_arrays.h"

using namespace tapestry;
using V = std::vector<double>;

namespace {

using Function = Tensor (*)(const Tensor&);
constexpr double inf = INFINITY;

V list(const Tensor& x) { return x.to_vector<double>(); }

/// The gradient of Σ g·f(x).
V gradient(const Function& f, const Tensor& x, const Tensor& g = {}) {
  const Tensor leaf = x.detach().requires_grad_(), y = f(leaf);
  return list(grad({y}, {leaf}, {.grad_outputs = {g.defined() ? g : ones(y.shape(), y.dtype())}})[0]);
}

void check_both_orders(const TensorFunction& f, const Tensor& x) {
  const Tensor leaf = x.detach().requires_grad_();
  const GradcheckResult first = gradcheck(f, {leaf}, {.allow_zero = true}), second = gradgradcheck(f, {leaf});
  CHECK_MESSAGE(first, first.message);
  CHECK_MESSAGE(second, second.message);
}

}  // namespace

TEST_SUITE("scan") {
  TEST_CASE("kernels along any dim and layout, forward and back") {
    using namespace strided_arrays;
    using kernels::Scan;
    for (const DType dtype : {DType::f64, DType::f32, DType::i64})
      for (const Shape& shape : {Shape{7}, Shape{1}, Shape{40, 30}, Shape{3, 4, 5}, Shape{2, 0}, Shape{5, 600}})
        for (const Layout layout : layouts)
          for (int dim = 0; dim < shape.rank(); ++dim)
            for (const bool reverse : {false, true}) {
              Array a = make(shape, dtype, layout, 11), y = make(shape, dtype, Layout::transposed, 12);
              kernels::scan(Scan::sum, shape, dim, dtype, {a.data(), a.strides}, {y.data(), y.strides}, reverse);
              Array h = make(shape, dtype, Layout::transposed, 13), b = make(shape, dtype, layout, 14);
              if (is_floating(dtype))
                kernels::linear_scan(shape, dim, dtype, {a.data(), a.strides}, {b.data(), b.strides},
                                     {h.data(), h.strides}, reverse);
              int64_t wrong = 0, inner = 1;
              for (int d = dim + 1; d < shape.rank(); ++d) inner *= shape[d];
              for (int64_t i = 0; i < numel(shape); ++i) {
                const int64_t at = i / inner % shape[dim], by = reverse ? -1 : 1;
                double sum = 0, linear = 0;
                for (int64_t j = reverse ? shape[dim] - 1 : 0; (j - at) * by <= 0; j += by) {
                  const double factor = get(a, shape, i + (j - at) * inner);
                  sum += factor;
                  linear = get(b, shape, i + (j - at) * inner) + factor * linear;
                }
                const auto rounded = [&](double v) { return dtype == DType::f32 ? double(float(v)) : v; };
                wrong += get(y, shape, i) != rounded(sum);
                wrong += is_floating(dtype) && get(h, shape, i) != rounded(linear);
              }
              INFO(to_string(shape, dtype), " dim ", dim, " layout ", int(layout));
              REQUIRE(wrong == 0);
            }
  }
  TEST_CASE("products of zeros have exact gradients, to the second order") {
    const auto all = [](const Tensor& x) { return prod(x); };
    CHECK(gradient(all, tensor<double>({0, 2, 3})) == V{6, 0, 0});
    CHECK(gradient(all, tensor<double>({0, 0, 3})) == V{0, 0, 0});
    CHECK(gradient(all, tensor<double>({4, 0})) == V{0, 4});
    CHECK(gradient(
              [](const Tensor& x) {
                return prod(x, {0, 2});
              },
              tensor<double>({{{0, 2}, {1, 3}}, {{5, 1}, {1, 0}}})) == V{10, 0, 0, 0, 0, 0, 0, 3});
    CHECK(gradient([](const Tensor& x) { return cumprod(x, 0); }, tensor<double>({2, 0, 3, 0, 5}),
                   ones({5}, DType::f64)) == V{1, 8, 0, 0, 0});
    for (const Tensor& x : {tensor<double>({0, 2, 3}), tensor<double>({0, 0, 3}), tensor<double>({0, 0, 0}),
                            tensor<double>({2, 0, 3, 0, 5, -1})})
      for (const TensorFunction& f :
           {TensorFunction(all), TensorFunction([](const Tensor& t) { return cumprod(t, 0); }),
            TensorFunction([](const Tensor& t) {
              return prod(reshape(t, {1, -1, 1}), {1, 2}, true);
            })})
        check_both_orders(f, x);
    const Tensor x = tensor<double>({0, 2, 3}).requires_grad_();
    const Tensor first = grad({prod(x)}, {x}, {.create_graph = true})[0];
    CHECK(list(grad({select(first, 0, 0)}, {x}, {.create_graph = true})[0]) == V{0, 3, 2});
  }

  TEST_CASE("a zero upstream gradient stays zero beside infinite products") {
    const Tensor x = tensor<double>({{1e200, 1e200, 1e200}, {1, 2, 3}});
    const auto rows = [](const Tensor& t) { return prod(t, {1}); };
    CHECK(gradient(rows, x, tensor<double>({0, 1})) == V{0, 0, 0, 6, 3, 2});
    const V g = gradient([](const Tensor& t) { return cumprod(t, 1); }, x, tensor<double>({{1, 0, 0}, {0, 0, 1}}));
    CHECK(g == V{1, 0, 0, 6, 3, 2});
  }

  TEST_CASE("logcumsumexp at infinities, far from 0 and in f32") {
    const auto f = [](const Tensor& x) { return logcumsumexp(x, 0); };
    CHECK(list(f(tensor<double>({-inf, -inf, 0, 0}))) == V{-inf, -inf, 0, std::log(2.0)});
    const V after_inf = list(f(tensor<double>({1, inf, 2})));
    CHECK(after_inf == V{1, inf, inf});
    CHECK(std::isnan(list(f(tensor<double>({1, NAN, 2})))[2]));
    CHECK(gradient(f, tensor<double>({-inf, -inf}), ones({2}, DType::f64)) == V{0, 0});
    const V g = gradient(f, tensor<double>({-inf, 0, -inf, 0}), tensor<double>({1, 1, 1, 1}));
    CHECK(g == V{0, 2.5, 0, 0.5});
    const V wide = gradient(f, tensor<float>({1e4, 1e4, -1e4}), tensor<float>({0, 1, 0}));
    CHECK(wide == V{0.5, 0.5, 0});
    check_both_orders(TensorFunction(f), tensor<double>({-800, 3, 700, -5, 699}));
  }

  TEST_CASE("cummax and cummin take the latest of equal ones and keep a NaN") {
    const Tensor x = tensor<double>({1, 3, 3, NAN, 9, NAN, 4});
    const auto [values, at] = cummax(x, 0);
    CHECK(list(at) == V{0, 1, 2, 3, 3, 5, 5});
    CHECK(list(slice(values, 0, 0, 3)) == V{1, 3, 3});
    CHECK(all(isnan(slice(values, 0, 3, {}))).item<bool>());
    CHECK(list(cummin(tensor<double>({2, 2, 5, 1}), 0)[1]) == V{0, 1, 1, 3});
    CHECK(gradient([](const Tensor& t) { return cummax(t, 0)[0]; }, tensor<double>({2, 2, 1, 3})) == V{1, 2, 0, 1});
    CHECK(list(cummax(tensor<bool>({0, 1, 0}), 0)[1]) == V{0, 1, 1});
  }

  TEST_CASE("narrow types keep their accuracy, whole numbers and bools count, nothing gives nothing") {
    CHECK(select(cumprod(full({4096}, 1.0078125, DType::bf16), 0), 0, 127).item() ==
          convert<double>(bf16(static_cast<float>(std::pow(1.0078125, 128)))));
    CHECK(list(cumprod(tensor<int64_t>({3, -2, 5}), 0)) == V{3, -6, -30});
    CHECK(prod(full({3}, 1e6, DType::i64)).item<int64_t>() == 1000000000000000000);
    CHECK(prod(tensor<bool>({1, 1})).dtype() == DType::i64);
    CHECK(cumprod(tensor<bool>({1, 0, 1}), 0).dtype() == DType::i64);
    CHECK(prod(zeros({0})).item() == 1);
    CHECK(gradient([](const Tensor& t) { return prod(t, {0}); }, zeros({0, 2}, DType::f64)).empty());
    CHECK(gradient([](const Tensor& t) { return cumprod(t, 0); }, zeros({0, 2}, DType::f64)).empty());
    CHECK(cummax(zeros({0, 2}), 0)[1].shape() == Shape{0, 2});
  }
}
