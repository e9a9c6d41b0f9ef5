// Sorting, ranks and searching: order of equal elements, NaN and signed zeros, sizes around the change of algorithm, gradients at ties.
// Not values and derivatives in general: those are rows of the op table.
// Next: test_index.cpp.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "../autograd/engine.h"
#include "../autograd/parallel.h"
#include "../ops/ops.h"

using namespace tapestry;
using V = std::vector<double>;

namespace {

using Function = Tensor (*)(const Tensor&);
V list(const Tensor& x) { return x.to_vector<double>(); }

/// The gradient of Σ g·f(x).
V gradient(const Function f, const Tensor& x, const Tensor& g = {}) {
  const Tensor leaf = x.detach().requires_grad_(), y = f(leaf);
  return list(grad({y}, {leaf}, {.grad_outputs = {g.defined() ? g : ones(y.shape(), y.dtype())}})[0]);
}

/// Places in order by definition: NaN last, equal ones as they stand.
std::vector<int64_t> order(const V& x, bool descending) {
  std::vector<int64_t> at(x.size());
  std::iota(at.begin(), at.end(), 0);
  const auto less = [&](int64_t a, int64_t b) {
    const double u = x[static_cast<size_t>(a)], v = x[static_cast<size_t>(b)];
    return u < v || (u == u && v != v);
  };
  std::stable_sort(at.begin(), at.end(), [&](int64_t a, int64_t b) { return descending ? less(b, a) : less(a, b); });
  return at;
}

/// Numbers of few values, with NaN, infinities and both zeros among them, in this dtype.
Tensor awkward(int64_t n, DType dtype) {
  manual_seed(static_cast<uint64_t>(n));
  V x = list(randint(-40, 40, {n}));
  if (is_floating(dtype))
    for (size_t i = 0; i < x.size(); ++i) {
      const double special[] = {NAN, -0.0, INFINITY, -INFINITY, 1e-300, -NAN, x[i] * 1e30};
      if (i % 5 == 0) x[i] = special[i / 5 % 7];
    }
  return to(from(x), dtype);
}

}  // namespace

TEST_SUITE("sort") {
  TEST_CASE("every dtype and size: sort, topk, kthvalue and median agree with the definition") {
    for (const DType dtype : {DType::f32, DType::f64, DType::bf16, DType::i64, DType::boolean})
      for (const int64_t n : {1, 2, 63, 64, 65, 200, 511, 512, 5000})
        for (const bool descending : {false, true}) {
          INFO(name_of(dtype), " ", n, " ", descending);
          const Tensor x = awkward(n, dtype);
          const auto right = order(list(x), descending);
          const auto [values, at] = sort(x, 0, descending);
          REQUIRE(at.to_vector<int64_t>() == right);
          REQUIRE(argsort(x, 0, descending).to_vector<int64_t>() == right);
          const auto picked = list(index_select(to(x, DType::f64), 0, at)), sorted = list(values);
          for (size_t i = 0; i < picked.size(); ++i)
            REQUIRE((sorted[i] == picked[i] || (std::isnan(sorted[i]) && std::isnan(picked[i]))));
          for (const int64_t k : {int64_t{0}, int64_t{1}, n / 3, n}) {
            const auto best = topk(x, k, 0, descending)[1].to_vector<int64_t>();
            REQUIRE(std::equal(best.begin(), best.end(), right.begin(), right.begin() + k));
          }
          if (!descending)
            REQUIRE(kthvalue(x, (n + 1) / 2, 0)[1].item<int64_t>() == right[static_cast<size_t>((n - 1) / 2)]);
        }
  }

  TEST_CASE("NaN is larger than every number; median and quantile give it back") {
    const Tensor x = tensor<double>({{3, NAN, 1, NAN}, {4, 2, 1, 3}});
    CHECK(list(argsort(x)) == V{2, 0, 1, 3, 2, 1, 3, 0});
    CHECK(list(argsort(x, -1, true)) == V{1, 3, 0, 2, 0, 3, 1, 2});
    CHECK(list(topk(x, 1, 1)[1]) == V{1, 0});
    CHECK(list(kthvalue(x, 2, 1)[0]) == V{3, 2});
    CHECK(list(median(x, 1)[1]) == V{1, 1});
    CHECK(std::isnan(list(median(x, 1)[0])[0]));
    CHECK(std::isnan(median(x).item()));
    CHECK(std::isnan(list(quantile(x, 0, 1))[0]));
    CHECK(list(searchsorted(tensor<double>({1, 2, NAN}), tensor<double>({NAN, 5, -0.0}))) == V{2, 2, 0});
    CHECK(list(searchsorted(tensor<double>({-1, 0, 1, NAN}), tensor<double>({NAN, -0.0}), true)) == V{4, 2});
  }

  TEST_CASE("the median is the lower of two, and takes the whole gradient") {
    CHECK(median(tensor<double>({4, 1, 3, 2})).item() == 2);
    CHECK(gradient([](const Tensor& t) { return median(t); }, tensor<double>({4, 1, 3, 2})) == V{0, 0, 0, 1});
    CHECK(gradient([](const Tensor& t) { return median(t); }, tensor<double>({2, 2, 2})) == V{0, 1, 0});
    CHECK(median(tensor<int64_t>({{5, 1, 3}}), 1)[0].dtype() == DType::i64);
  }

  TEST_CASE("quantiles at the ends and between") {
    const Tensor x = tensor<double>({3, 1, 2, 10});
    CHECK(quantile(x, 0, 0).item() == 1);
    CHECK(quantile(x, 1, 0).item() == 10);
    CHECK(quantile(x, 0.5, 0).item() == 2.5);
    CHECK(gradient([](const Tensor& t) { return quantile(t, 1, 0); }, x) == V{0, 0, 0, 1});
    CHECK(gradient([](const Tensor& t) { return quantile(t, 0.25, 0, true); }, x) == V{0, 0.25, 0.75, 0});
    CHECK(quantile(tensor<double>({INFINITY, INFINITY, 0}), 0.75, 0).item() == INFINITY);
    CHECK_THROWS_AS(quantile(x, NAN, 0), ValueError);
  }

  TEST_CASE("gradients of values go back to where they lay, each its own") {
    const Tensor x = tensor<double>({2, 3, 2, 1});
    CHECK(gradient([](const Tensor& t) { return sort(t)[0]; }, x, tensor<double>({1, 2, 3, 4})) == V{2, 4, 3, 1});
    CHECK(gradient([](const Tensor& t) { return topk(t, 2)[0]; }, x, tensor<double>({5, 7})) == V{7, 5, 0, 0});
    const auto [values, at] = sort(x.detach().requires_grad_());
    CHECK(values.requires_grad());
    CHECK_FALSE(at.requires_grad());
  }

  TEST_CASE("searching rows and in one row") {
    const Tensor sorted = tensor<double>({{1, 2, 2, 4}, {10, 20, 30, 40}});
    CHECK(list(searchsorted(sorted, tensor<double>({{2, 5}, {2, 25}}))) == V{1, 4, 0, 2});
    CHECK(list(searchsorted(sorted, tensor<double>({{2, 5}, {2, 25}}), true)) == V{3, 4, 0, 2});
    CHECK(searchsorted(select(sorted, 0, 0), scalar(3, DType::f64)).item<int64_t>() == 3);
    CHECK(list(searchsorted(select(sorted, 1, 1), tensor<double>({{2}, {20}}))) == V{0, 1});
    CHECK(list(searchsorted(zeros({0}), zeros({2}))) == V{0, 0});
    CHECK_THROWS_AS(searchsorted(sorted, scalar(1, DType::f64)), ShapeError);
  }

  TEST_CASE("results do not depend on the thread count") {
    const int before = num_threads();
    manual_seed(3);
    const Tensor x = randn({64, 1500});
    const auto results = [&] {
      V all;
      for (const auto& pair : {sort(x, 1), sort(x, 0, true), topk(x, 7, 1), median(x, 0), cummax(x, 0)})
        for (const Tensor& y : pair)
          for (const double v : list(y)) all.push_back(v);
      return all;
    };
    const V first = results();
    for (const int n : {1, 2, 4}) {
      set_num_threads(n);
      CHECK(results() == first);
    }
    set_num_threads(before);
  }
}
