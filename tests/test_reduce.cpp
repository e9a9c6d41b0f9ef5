// Reductions: dims, ties, NaN, emptiness, precision, gradients at singular points, and the words of the errors.
// Not the values over every dtype and layout: those are rows of the op table.
// Next: test_index.cpp.
#include <doctest/doctest.h>

#include <limits>

#include "../autograd/parallel.h"
#include "../autograd/tools/gradcheck.h"
#include "../ops/ops.h"
#include "adjoint.h"

using namespace tapestry;
using testing::check_adjoint, testing::scattered, testing::whole_numbers;
using Values = std::vector<double>;

namespace {

constexpr double inf = std::numeric_limits<double>::infinity();

/// The gradient of Σ g·f(x).
Values gradient(Tensor (*f)(const Tensor&), const Tensor& x, const Tensor& g = {}) {
  const Tensor leaf = x.detach().requires_grad_(), y = f(leaf);
  return grad({y}, {leaf}, {.grad_outputs = {g.defined() ? g : ones(y.shape(), y.dtype())}})[0].to_vector<double>();
}

bool all_nan(const Tensor& x) { return all(isnan(x)).item<bool>(); }

}  // namespace

TEST_SUITE("reduce") {
  TEST_CASE("any set of dims, negative ones, keepdim") {
    const Tensor x = whole_numbers({2, 3, 4}, 5);
    const auto flat = x.to_vector<double>();
    Values expected(3);
    for (size_t i = 0; i < 24; ++i) expected[i / 4 % 3] += flat[i];
    CHECK(sum(x, {0, -1}).to_vector<double>() == expected);
    CHECK(sum(x, {-1, 0}, true).shape() == Shape{1, 3, 1});
    CHECK(sum(x).shape() == Shape{});
    CHECK(sum(x, {}, true).shape() == Shape{1, 1, 1});
    CHECK(sum(scalar(3)).item() == 3);
    CHECK(mean(x, {1}).shape() == Shape{2, 4});
    CHECK(max(x, 1, true)[1].shape() == Shape{2, 1, 4});
    CHECK(argmax(x, {}, true).shape() == Shape{1, 1, 1});
    CHECK(sum_to(x, {3, 1}).to_vector<double>() == expected);
  }

  TEST_CASE("sums are the adjoints of expand, in any layout") {
    const Tensor x = whole_numbers({2, 4, 4}, 5);
    for (const Tensor& in : {x, scattered(x)}) {
      check_adjoint([](const Tensor& t) { return sum(t); }, in);
      check_adjoint([](const Tensor& t) { return sum(t, {1}, true); }, in);
      check_adjoint([](const Tensor& t) { return sum_to(t, {4, 1}); }, in);
      check_adjoint([](const Tensor& t) { return sum_to(t, {4}); }, in);
      check_adjoint([](const Tensor& t) { return mean(t, {0, 2}); }, in);
      for (int64_t dim = 0; dim < 3; ++dim) check_adjoint([=](const Tensor& t) { return cumsum(t, dim); }, in);
    }
    check_adjoint([](const Tensor& t) { return sum(t, {0}); }, zeros({0, 3}, DType::f64));
    const Tensor a = ones({1}).requires_grad_(), b = ones({1, 2});
    CHECK(grad({sum(a * b)}, {a})[0].to_vector<double>() == Values{2});
    const Tensor y = zeros({2, 3}).requires_grad_();
    const Tensor g = grad({sum(y)}, {y})[0];
    CHECK(g.strides() == Strides{0, 0});
  }

  TEST_CASE("smooth ones against finite differences, first and second order") {
    const Tensor x = randn({3, 4}, DType::f64).requires_grad_();
    for (const TensorFunction& f : {TensorFunction([](const Tensor& t) { return norm(t, {1}); }),
                                    TensorFunction([](const Tensor& t) { return norm(t); }),
                                    TensorFunction([](const Tensor& t) { return logsumexp(t, {0}, true); }),
                                    TensorFunction([](const Tensor& t) { return logsumexp(t); }),
                                    TensorFunction([](const Tensor& t) { return amax(t, {0}); }),
                                    TensorFunction([](const Tensor& t) { return amin(t); }),
                                    TensorFunction([](const Tensor& t) { return max(t, -1)[0]; })}) {
      const GradcheckResult first = gradcheck(f, {x}), second = gradgradcheck(f, {x});
      CHECK_MESSAGE(first, first.message);
      CHECK_MESSAGE(second, second.message);
    }
  }

  TEST_CASE("ties: amax, amin and max of all share, max along a dim gives to the first") {
    const Tensor x = tensor<double>({{1, 3, 3}, {2, 2, 2}});
    CHECK(gradient([](const Tensor& t) { return amax(t, {1}); }, x, tensor<double>({1, 3})) ==
          Values{0, 0.5, 0.5, 1, 1, 1});
    CHECK(gradient([](const Tensor& t) { return amin(t, {1}); }, x, tensor<double>({1, 3})) ==
          Values{1, 0, 0, 1, 1, 1});
    CHECK(gradient([](const Tensor& t) { return max(t); }, x) == Values{0, 0.5, 0.5, 0, 0, 0});
    CHECK(gradient([](const Tensor& t) { return max(t, 1)[0]; }, x) == Values{0, 1, 0, 1, 0, 0});
    CHECK(gradient([](const Tensor& t) { return min(t, 0)[0]; }, x) == Values{1, 0, 0, 0, 1, 1});
    CHECK(argmax(x, 1).to_vector<double>() == Values{1, 0});
    CHECK(argmax(x).item<int64_t>() == 1);
    CHECK(argmin(x).item<int64_t>() == 0);
    const auto [values, at] = max(tensor({{1, 5}, {7, 5}}).requires_grad_(), 0);
    CHECK(at.to_vector<double>() == Values{1, 0});
    CHECK(values.requires_grad());
    CHECK_FALSE(at.requires_grad());
  }

  TEST_CASE("NaN is never lost") {
    const Tensor x = tensor<double>({{1, NAN, 9}, {4, 5, 6}});
    CHECK(all_nan(select(amax(x, {1}), 0, 0)));
    CHECK(all_nan(min(x)));
    CHECK(max(x, 1)[1].to_vector<double>() == Values{1, 2});
    CHECK(argmin(x).item<int64_t>() == 1);
    CHECK(gradient([](const Tensor& t) { return amax(t, {1}); }, x) == Values{0, 1, 0, 0, 0, 1});
    for (const Tensor& y : {sum(x), mean(x), norm(x), logsumexp(x), select(cumsum(x, 1), 1, 2)})
      CHECK(isnan(select(reshape(y, {-1}), 0, 0)).item<bool>());
    CHECK(any(tensor({NAN})).item<bool>());
  }

  TEST_CASE("over nothing") {
    const Tensor none = zeros({0, 3});
    CHECK(sum(none).item() == 0);
    CHECK(sum(none, {0}).to_vector<double>() == Values(3, 0));
    CHECK(sum(none, {1}).shape() == Shape{0});
    CHECK(all_nan(mean(none)));
    CHECK(norm(none).item() == 0);
    CHECK(logsumexp(none, {0}).to_vector<double>() == Values(3, -inf));
    CHECK(all(none).item<bool>());
    CHECK_FALSE(any(none).item<bool>());
    CHECK(cumsum(none, 0).shape() == Shape{0, 3});
    CHECK(amax(none, {1}).shape() == Shape{0});
    CHECK_THROWS_WITH_AS(amax(none, {0}),
                         "amax: [0, 3] f32 has no elements along dims [0]; there is no amax of nothing", ShapeError);
    CHECK_THROWS_AS(max(none), ShapeError);
    CHECK_THROWS_AS(min(none, 0), ShapeError);
    CHECK_THROWS_AS(argmax(none), ShapeError);
  }

  TEST_CASE("singular points have gradient 0") {
    const auto rows = [](const Tensor& t) { return norm(t, {1}); };
    CHECK(gradient([](const Tensor& t) { return norm(t); }, zeros({3}, DType::f64)) == Values{0, 0, 0});
    CHECK(gradient(rows, tensor<double>({{0, 0, 0}, {1, 2, 2}})) == Values{0, 0, 0, 1.0 / 3, 2.0 / 3, 2.0 / 3});
    const Tensor x = tensor<double>({{-inf, -inf}, {0, -inf}, {1e4, 1e4}});
    const auto lse = [](const Tensor& t) { return logsumexp(t, {1}); };
    CHECK(lse(x).to_vector<double>() == Values{-inf, 0, 1e4 + std::log(2)});
    const Values g = gradient(lse, x);
    for (const size_t i : {0, 1, 3}) CHECK(g[i] == 0);
    for (const size_t i : {2, 4, 5}) CHECK(g[i] == doctest::Approx(i == 2 ? 1 : 0.5).epsilon(1e-11));
    CHECK(logsumexp(tensor({-inf, inf, 0})).item() == inf);
  }

  TEST_CASE("precision") {
    const Tensor ones_bf16 = ones({4096}, DType::bf16);
    CHECK(sum(ones_bf16).item() == 4096);
    CHECK(mean(ones_bf16).item() == 1);
    CHECK(select(cumsum(ones_bf16, 0), 0, 4095).item() == 4096);
    const int64_t n = int64_t{1} << 25;
    CHECK(sum(expand(scalar(1), {n})).item() == static_cast<double>(n));
    CHECK(mean(full({n / 8}, 0.1)).item() == static_cast<double>(0.1F));
    CHECK(norm(full({4}, 1e200, DType::f64)).item() == doctest::Approx(2e200));
    CHECK(norm(full({4}, 1e30)).item() == doctest::Approx(2e30));
    CHECK(norm(full({4}, 1e-30)).item() == doctest::Approx(2e-30));
  }

  TEST_CASE("integers and booleans") {
    const Tensor mask = tensor<bool>({{1, 0, 1}, {1, 1, 1}}), big = full({3}, 4e18, DType::i64);
    CHECK(sum(mask).dtype() == DType::i64);
    CHECK(sum(mask, {1}).to_vector<double>() == Values{2, 3});
    CHECK(cumsum(mask, 1).dtype() == DType::i64);
    CHECK(cumsum(mask, 1).to_vector<double>() == Values{1, 1, 2, 1, 2, 3});
    CHECK(all(mask, {1}).to_vector<bool>() == std::vector<bool>{false, true});
    CHECK(any(logical_not(mask), {1}).to_vector<bool>() == std::vector<bool>{true, false});
    CHECK(amax(add(big, 1)).item<int64_t>() == 4000000000000000001);
    CHECK(amin(mask, {1}).dtype() == DType::boolean);
    CHECK_THROWS_WITH_AS(mean(big), "mean: needs a floating dtype, got [3] i64; convert with to(x, DType::f32)",
                         DTypeError);
    CHECK_THROWS_AS(norm(big), DTypeError);
    CHECK_THROWS_AS(logsumexp(mask), DTypeError);
  }

  TEST_CASE("results do not depend on the thread count") {
    const int threads = num_threads();
    const Tensor x = randn({300, 1000});
    const auto results = [&] {
      auto all_of_them = sum(x).to_vector();
      for (const Tensor& y : {sum(x, {0}), sum(x, {1}), mean(mT(x), {0}), norm(x), logsumexp(x, {0}), cumsum(x, 0)})
        for (const float value : y.to_vector()) all_of_them.push_back(value);
      return all_of_them;
    };
    const auto expected = results();
    for (const int n : {1, 2, 4}) {
      set_num_threads(n);
      CHECK(results() == expected);
    }
    set_num_threads(threads);
  }

  TEST_CASE("errors") {
    const Tensor x = zeros({2, 3});
    CHECK_THROWS_WITH_AS(sum(x, {1, -1}), "sum: dim 1 is named twice in [1, -1] for [2, 3] f32; name each dim once",
                         ShapeError);
    CHECK_THROWS_AS(sum(x, {2}), IndexError);
    CHECK_THROWS_AS(cumsum(x, 2), IndexError);
    CHECK_THROWS_WITH_AS(sum_to(x, {2}),
                         "sum_to: [2, 3] f32 cannot be summed to [2] (dim -1: 3 vs 2); a size stays or becomes 1",
                         ShapeError);
    CHECK_THROWS_WITH_AS(sum_to(x, {1, 2, 3}),
                         "sum_to: [2, 3] f32 cannot be summed to the higher rank of [1, 2, 3]; expand() adds dims",
                         ShapeError);
  }
}
