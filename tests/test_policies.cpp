// test_policies.cpp: the choices of docs/policies.md that concern values and gradients, each as a number.
// Not whole ops (test_op_table.cpp). Next: ../docs/policies.md.
#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "../autograd/engine.h"
#include "../autograd/parallel.h"
#include "../ops/ops.h"

using namespace tapestry;
using V = std::vector<double>;

namespace {

Tensor leaf(std::initializer_list<NestedList> values, DType dtype = DType::f64) {
  return tensor(values, dtype).requires_grad_();
}

void check_close(const Tensor& x, const V& right, double tolerance = 1e-8) {
  const V v = x.to_vector<double>();
  REQUIRE(v.size() == right.size());
  for (size_t i = 0; i < v.size(); ++i)
    CHECK_MESSAGE((v[i] == right[i] || std::abs(v[i] - right[i]) <= tolerance),
                  "element " << i << ": " << v[i] << ", not " << right[i]);
}
bool all_nan(const Tensor& x) {
  for (const double v : x.to_vector<double>())
    if (!std::isnan(v)) return false;
  return true;
}

constexpr double inf = INFINITY;

}  // namespace

TEST_SUITE("policies") {
  TEST_CASE("an upstream gradient of 0 stays 0 beside an infinite factor") {
    const Tensor x = leaf({0, 3}), y = leaf({0, 4});
    sum(maximum(sqrt(x * x + y * y), 1e-10)).backward();
    check_close(x.grad(), {0, 0.6});
    check_close(y.grad(), {0, 0.8});
    const Tensor z = leaf({0, 4, -1});
    sum(where(z > 0, sqrt(z), 0)).backward();
    check_close(z.grad(), {0, 0.25, 0});
    const Tensor bare = leaf({0, 4});
    sum(sqrt(bare)).backward();
    check_close(bare.grad(), {inf, 0.25});
  }

  TEST_CASE("a kink has subgradient 0, and so has a norm at 0") {
    const Tensor x = leaf({-1, 0, 2});
    sum(abs(x) + relu(x)).backward();
    check_close(x.grad(), {-1, 0, 2});
    const Tensor zero = leaf({0, 0, 0});
    norm(zero).backward();
    check_close(zero.grad(), {0, 0, 0});
    const Tensor rows = leaf({{0, 0, 0}, {1, 2, 2}});
    sum(norm(rows, {1})).backward();
    check_close(rows.grad(), {0, 0, 0, 1 / 3., 2 / 3., 2 / 3.});
    const Tensor direction = leaf({{0, 0, 0}, {1, 2, 2}});
    sum(direction / maximum(norm(direction, {1}, true), 1e-12)).backward();
    for (const double v : direction.grad().to_vector<double>()) CHECK(std::isfinite(v));
  }

  TEST_CASE("powers at 0") {
    const auto slope = [](double at, double p) {
      const Tensor x = leaf({at});
      sum(pow(x, p)).backward();
      return x.grad().item();
    };
    CHECK(slope(0, 2) == 0);
    CHECK(slope(0, 0) == 0);
    CHECK(slope(0, 1) == 1);
    const Tensor y = leaf({2});
    sum(pow(zeros({1}, DType::f64), y)).backward();
    CHECK(y.grad().item() == 0);
  }

  TEST_CASE("ties: over all they share, along a dim the first takes all, between two tensors they halve") {
    const Tensor x = leaf({1, 3, 3});
    max(x).backward();
    check_close(x.grad(), {0, 0.5, 0.5});
    x.clear_grad();
    max(x, 0)[0].backward();
    check_close(x.grad(), {0, 1, 0});
    CHECK(max(x.detach(), 0)[1].item<int64_t>() == 1);
    const Tensor a = leaf({1, 2}), b = leaf({1, 3});
    sum(maximum(a, b)).backward();
    check_close(a.grad(), {0.5, 0});
    check_close(b.grad(), {0.5, 1});
  }

  TEST_CASE("products: the gradient is the product of the others, with any number of zeros; of nothing 1") {
    for (const auto& [values, gradient] :
         {std::pair{V{0, 2, 3}, V{6, 0, 0}}, std::pair{V{0, 0, 3}, V{0, 0, 0}}, std::pair{V{4, 0}, V{0, 4}}}) {
      const Tensor x = from(values).requires_grad_();
      prod(x).backward();
      check_close(x.grad(), gradient, 0);
    }
    const Tensor x = leaf({2, 0, 3, 0});
    sum(cumprod(x, 0)).backward();
    check_close(x.grad(), {1, 8, 0, 0}, 0);
    CHECK(prod(zeros({0, 2})).item() == 1);
  }

  TEST_CASE("variance is NaN where n ≤ correction; a standard deviation of 0 has gradient 0") {
    CHECK(all_nan(var(ones({1}))));
    CHECK(all_nan(stddev(ones({0, 2}), {0})));
    CHECK(all_nan(var(ones({2}), {}, false, 3)));
    CHECK(var(ones({1}), {}, false, 0).item() == 0);
    const Tensor x = leaf({{0.1, 0.1, 0.1}, {1, 2, 3}});
    sum(stddev(x, {1})).backward();
    check_close(x.grad(), {0, 0, 0, -0.5, 0, 0.5});
    CHECK(var(tensor({16777216, 16777218})).item() == 2);
  }

  TEST_CASE("norms of order p: gradient 0 at 0, ties of the largest share, order 0 counts, nothing has no largest") {
    for (const double p : {0.0, 0.5, 1.0, 1.5, 2.0, 3.0, inf, -inf}) {
      CAPTURE(p);
      const Tensor zero = leaf({0, 0, 0});
      CHECK(vector_norm(zero, p).item() == 0);
      vector_norm(zero, p).backward();
      check_close(zero.grad(), {0, 0, 0}, 0);
    }
    const Tensor x = leaf({-3, 1, 3});
    vector_norm(x, inf).backward();
    check_close(x.grad(), {-0.5, 0, 0.5});
    CHECK(vector_norm(x, 0).item() == 3);
    const Tensor half = leaf({0, 4});
    vector_norm(half, 0.5).backward();
    check_close(half.grad(), {0, 1});
    CHECK(vector_norm(zeros({0}), 3).item() == 0);
    CHECK_THROWS_AS(vector_norm(zeros({0}), inf), ShapeError);
    const Tensor direction = leaf({{0, 0}, {3, 4}});
    check_close(normalize(direction), {0, 0, 0.6, 0.8});
    sum(normalize(direction)).backward();
    for (const double v : direction.grad().to_vector<double>()) CHECK(std::isfinite(v));
  }

  TEST_CASE("order: NaN is larger than every number, equal elements keep their order, ranks give to one element") {
    const Tensor x = tensor<double>({2, NAN, 1, 2});
    check_close(argsort(x), {2, 0, 3, 1});
    check_close(argsort(x, 0, true), {1, 0, 3, 2});
    CHECK(all_nan(median(x)));
    CHECK(all_nan(quantile(x, 0.5, 0)));
    CHECK(all_nan(slice(cummax(x, 0)[0], 0, 1, {})));
    const Tensor y = leaf({4, 1, 3, 2});
    median(y).backward();
    check_close(y.grad(), {0, 0, 0, 1});
    y.clear_grad();
    (quantile(y, 0, 0) + quantile(y, 1, 0) + quantile(y, 0.25, 0)).backward();
    check_close(y.grad(), {1, 1.25, 0, 0.75});
    const Tensor ties = leaf({2, 2, 1});
    sum(cummax(ties, 0)[0]).backward();
    check_close(ties.grad(), {1, 2, 0});
    CHECK_THROWS_AS(median(zeros({0})), ShapeError);
    CHECK_THROWS_AS(quantile(zeros({0}), 0.5, 0), ShapeError);
  }

  TEST_CASE("a fully masked attention row is 0, forward and backward, in every dtype; true means may attend") {
    for (const DType dtype : {DType::f64, DType::f32, DType::bf16}) {
      const double tolerance = dtype == DType::f64 ? 1e-8 : dtype == DType::f32 ? 1e-6 : 0.03;
      const Tensor q = leaf({{1, 0}, {0, 1}}, dtype), k = leaf({{1, 2}, {3, 4}}, dtype),
                   v = leaf({{1, 2}, {3, 4}}, dtype);
      const Tensor out = scaled_dot_product_attention(q, k, v, {.mask = tensor<bool>({{0, 0}, {1, 1}})});
      check_close(out, {0, 0, 2.60885937, 3.60885937}, tolerance);
      sum(out).backward();
      check_close(q.grad(), {0, 0, 0.88995084, 0.88995084}, tolerance);
      check_close(k.grad(), {0, -0.44497542, 0, 0.44497542}, tolerance);
      check_close(v.grad(), {0.19557032, 0.19557032, 0.80442968, 0.80442968}, tolerance);
    }
    // (B, Tq, Tk) means (B, 1, Tq, Tk): batch 0 attends its first key, batch 1 its second.
    const Tensor q = ones({2, 2, 1, 1}, DType::f64),
                 kv = tensor<double>({{{{1}, {2}}, {{3}, {4}}}, {{{5}, {6}}, {{7}, {8}}}});
    check_close(scaled_dot_product_attention(q, kv, kv, {.mask = tensor<bool>({{{1, 0}}, {{0, 1}}})}), {1, 3, 6, 8});
  }

  TEST_CASE("softmax of all -inf is NaN; logsumexp of all -inf is -inf with gradient 0") {
    const Tensor x = leaf({-inf, -inf});
    CHECK(all_nan(softmax(x, 0)));
    CHECK(logsumexp(x).item() == -inf);
    logsumexp(x).backward();
    check_close(x.grad(), {0, 0});
  }

  TEST_CASE("narrow types lose nothing in sums") {
    const Tensor x = ones({4096}, DType::bf16);
    CHECK(sum(x).item() == 4096);
    CHECK(mean(x).item() == 1);
    CHECK(select(cumsum(x, 0), 0, -1).item() == 4096);
    CHECK(matmul(x, x).item() == 4096);
    const Tensor p = softmax(full({512}, 3, DType::bf16), 0);
    for (const double v : p.to_vector<double>()) CHECK(v == 1 / 512.);
    CHECK(sum(p).item() == 1);
    const int64_t n = int64_t{1} << 25;
    CHECK(sum(expand(ones({1}), {n})).item() == static_cast<double>(n));
    CHECK(mean(expand(full({1}, 0.1), {n})).item<float>() == 0.1F);
  }

  TEST_CASE("norms do not overflow before the root") {
    CHECK(norm(tensor({3e20, 4e20})).item() == doctest::Approx(5e20).epsilon(1e-6));
    CHECK(norm(tensor<bf16>({3e20, 4e20})).item() == doctest::Approx(5e20).epsilon(1e-2));
    CHECK(norm(tensor<double>({3e200, 4e200})).item() == doctest::Approx(5e200));
    CHECK(norm(tensor<double>({3e-200, 4e-200})).item() == doctest::Approx(5e-200));
    for (const double p : {0.5, 3.0}) {
      CAPTURE(p);
      const double right = p == 3 ? std::cbrt(91) : std::pow(std::sqrt(3) + 2, 2);
      for (const double scale : {1e300, 1e-300})
        CHECK(vector_norm(tensor<double>({3 * scale, 4 * scale}), p).item() == doctest::Approx(right * scale));
    }
  }

  TEST_CASE("cross entropy: ignored rows, bad targets, a mean over nothing") {
    const Tensor x = leaf({{2, 1, 0}, {0, 0, 0}});
    const Tensor loss = cross_entropy(x, tensor<int64_t>({0, -100}));
    check_close(loss, {0.40760596});
    loss.backward();
    check_close(x.grad(), {-0.33475904, 0.24472847, 0.09003057, 0, 0, 0});
    CHECK_THROWS_WITH_AS(cross_entropy(x, tensor<int64_t>({0, -4})),
                         "cross_entropy: target -4 at [1] is out of range for 3 classes", IndexError);
    CHECK_THROWS_WITH_AS(cross_entropy(x, tensor<int64_t>({0, 3})),
                         "cross_entropy: target 3 at [1] is out of range for 3 classes", IndexError);
    for (const Reduction r : {Reduction::sum, Reduction::mean}) {
      x.clear_grad();
      const Tensor none = cross_entropy(x, tensor<int64_t>({-100, -100}), {.reduction = r});
      CHECK(none.item() == 0);
      none.backward();
      check_close(x.grad(), {0, 0, 0, 0, 0, 0});
    }
  }

  TEST_CASE("repeated indices add up, with the same bits whatever the threads") {
    const Tensor x = leaf({1, 2, 3});
    sum(index_select(x, 0, tensor<int64_t>({0, 0, 2})) * tensor<double>({10, 100, 1000})).backward();
    check_close(x.grad(), {110, 0, 1000});
    manual_seed(5);
    const Tensor at = randint(0, 100, {10000}), src = randn({10000}), base = zeros({100});
    const int before = num_threads();
    const auto first = index_add(base, 0, at, src).to_vector();
    for (const int threads : {1, 2, 4}) {
      set_num_threads(threads);
      for (int i = 0; i < 10; ++i) CHECK(index_add(base, 0, at, src).to_vector() == first);
    }
    set_num_threads(before);
  }

  TEST_CASE("floating numbers that i64 does not hold become its ends, NaN becomes 0") {
    constexpr double inf = std::numeric_limits<double>::infinity();
    const std::vector<int64_t> wanted{INT64_MAX, INT64_MIN, INT64_MAX, INT64_MIN, 0, -2, INT64_MIN};
    const Tensor x = tensor<double>({1e300, -1e300, inf, -inf, NAN, -2.9, -0x1p63});
    CHECK(to(x, DType::i64).to_vector<int64_t>() == wanted);
    for (const DType narrow : {DType::f32, DType::bf16})
      for (size_t i : {size_t{2}, size_t{3}, size_t{4}, size_t{6}})
        CHECK(to(to(x, narrow), DType::i64).to_vector<int64_t>()[i] == wanted[i]);
  }

  TEST_CASE("a broadcast operand's gradient has its own shape") {
    const Tensor a = leaf({2}), b = leaf({{1, 1}});
    sum(a * b).backward();
    CHECK(a.grad().shape() == Shape{1});
    CHECK(a.grad().item() == 2);
  }

  TEST_CASE("fused ops never cut the tape: softmax by its kernel equals its definition") {
    const Tensor x = tensor<double>({{0.5, -0.5}}), w = leaf({{1, 2}, {3, 5}});
    const Tensor p = softmax(matmul(x, w), -1), loss = sum(p * p);
    check_close(p, {0.62245933, 0.37754067});
    check_close(loss, {0.52999258});
    loss.backward();
    check_close(w.grad(), {0.05755679, -0.05755679, -0.05755679, 0.05755679});
  }
}
