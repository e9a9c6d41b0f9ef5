// Clipping: norms that neither overflow nor depend on threads, bounds, and gradients that are not finite.
// Not here: stored values (the golden tests read them). Next: ../optim/clip.h.
#include <doctest/doctest.h>

#include <limits>

#include "../autograd/factory.h"
#include "../optim/clip.h"
#include "../optim/optimizer.h"
#include "../optim/sgd.h"
#include "kernel_reference.h"

using namespace tapestry;
using tapestry::testing::same_bits;
using tapestry::testing::same_for_all_threads;
using tapestry::testing::values;

namespace {

constexpr double inf = std::numeric_limits<double>::infinity();
constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();

Tensor parameter(const Tensor& grad) {
  const Tensor p = zeros(grad.shape(), grad.dtype());
  p.requires_grad_();
  p.set_grad(grad);
  return p;
}

Tensor without_grad() {
  const Tensor p = zeros({3});
  p.requires_grad_();
  return p;
}

}  // namespace

TEST_SUITE("clip") {
  TEST_CASE("the norm is that of all gradients together, of any size and dtype") {
    struct Row {
      std::vector<Tensor> parameters;
      double want;
    };
    const Tensor twice = parameter(tensor<double>({3, 4}));
    const Row rows[] = {
        {{}, 0},
        {{without_grad()}, 0},
        {{parameter(zeros({0}))}, 0},
        {{parameter(tensor<double>({3})), without_grad(), parameter(tensor({{-4}}))}, 5},
        {{twice, twice}, 5},                                 // one parameter under two names
        {{parameter(full({4}, 1e200, DType::f64))}, 2e200},  // its square is past the range of double
        {{parameter(full({4}, 1.5e308, DType::f64).view_of({1}, {1}, 0))}, 1.5e308},
        {{parameter(full({4}, 1e-200, DType::f64))}, 2e-200},
        {{parameter(full({4}, 5e-324, DType::f64))}, 1e-323},
        {{parameter(full({4}, 0x1p120))}, 0x1p121},  // past the range of float
        {{parameter(full({4}, 0x1p-140)), parameter(zeros({2}))}, 0x1p-139},
        {{parameter(full({1 << 20}, 0.5, DType::bf16))}, 512},
        {{parameter(full({4}, inf))}, inf},
        {{parameter(full({4}, -inf)), parameter(full({1}, 1e200, DType::f64))}, inf},
    };
    for (size_t i = 0; i < std::size(rows); ++i) {
      CAPTURE(i);
      const double got = grad_norm(rows[i].parameters);
      CAPTURE(got);
      CHECK((got == rows[i].want || std::abs(got / rows[i].want - 1) < 1e-14));
    }
    CHECK(std::isnan(grad_norm(std::vector<Tensor>{parameter(tensor({1, not_a_number, inf}))})));
  }

  TEST_CASE("long sums keep their accuracy, and their bits for any number of threads") {
    constexpr int64_t n = (1 << 20) + 7;
    const auto g = values<float>(n, 3);
    long double sum = 0;
    for (const float x : g) sum += static_cast<long double>(x) * static_cast<long double>(x);
    const std::vector<Tensor> parameters{parameter(from(g, {n}))};
    CHECK(grad_norm(parameters) == doctest::Approx(static_cast<double>(std::sqrt(sum))).epsilon(1e-14));
    CHECK(same_for_all_threads([&] { return std::vector<double>{grad_norm(parameters)}; }));
  }

  TEST_CASE("gradients above the limit come down to it together; below it no bit changes") {
    struct Row {
      double max_norm, factor;
    };
    for (const Row& row : {Row{2.5, 2.5 / (5 + 1e-6)}, Row{5, 1}, Row{100, 1}, Row{inf, 1}, Row{0, 0}}) {
      const NamedTensors parameters{
          {"a", parameter(tensor<double>({3, 0}))}, {"b", without_grad()}, {"c", parameter(tensor<double>({{-4}}))}};
      CHECK(clip_grad_norm_(parameters, row.max_norm) == 5);
      CHECK(parameters[0].second.grad().to_vector<double>() == std::vector<double>{3 * row.factor, 0});
      CHECK(parameters[2].second.grad().item() == -4 * row.factor);
      CHECK_FALSE(parameters[1].second.grad().defined());
      CHECK(clip_coefficient(5, row.max_norm) == row.factor);
    }
    const Tensor strided = zeros({2, 3});
    strided.requires_grad_();
    strided.set_grad(tensor({{1, 2}, {3, 4}, {5, 6}}).view_of({2, 3}, {1, 2}, 0));
    clip_grad_norm_(std::vector<Tensor>{strided, strided}, std::sqrt(91.0) / 2);
    CHECK(strided.grad().to_vector<double>()[1] == doctest::Approx(1.5));
    CHECK(strided.grad().to_vector<double>()[5] == doctest::Approx(3));
  }

  TEST_CASE("the coefficient inside the step is clipping before it") {
    const auto run = [](bool folded) {
      const Tensor p = parameter(from(values<float>(1000, 5), {1000}));
      Optimizer<SGD> optimizer({{"p", p}}, {.lr = 0.1, .momentum = 0.9});
      for (uint64_t step = 0; step < 3; ++step) {
        p.set_grad(from(values<float>(1000, 20 + step), {1000}));
        if (folded) {
          optimizer.step(clip_coefficient(grad_norm(optimizer.parameters()), 1));
        } else {
          clip_grad_norm_(optimizer.parameters(), 1);
          optimizer.step();
        }
      }
      return p.to_vector<float>();
    };
    CHECK(same_bits(run(true), run(false)));
  }

  TEST_CASE("a norm that is not finite is reported and clips nothing") {
    for (const double bad : {not_a_number, inf, -inf}) {
      const NamedTensors parameters{{"a", parameter(tensor({7}))}, {"b", parameter(tensor({1, bad}))}};
      CHECK_FALSE(std::isfinite(clip_grad_norm_(parameters, 1, NonFinite::skip)));
      const std::string norm = std::isnan(bad) ? "nan" : "inf";
      CHECK_THROWS_WITH_AS(clip_grad_norm_(parameters, 1),
                           ("clip_grad_norm_: the gradient norm is " + norm +
                            ": the gradient of b ([2] f32) is the first that is not finite; skip the step")
                               .c_str(),
                           ValueError);
      CHECK(parameters[0].second.grad().item() == 7);
      CHECK(parameters[1].second.grad().to_vector<double>()[0] == 1);
    }
    const std::vector<Tensor> huge{parameter(full({4}, 1.5e308, DType::f64))};
    CHECK_THROWS_WITH_AS(clip_grad_norm_(huge, 1),
                         "clip_grad_norm_: the gradient norm is inf, though every gradient is finite; skip the step",
                         ValueError);
    CHECK_THROWS_WITH_AS(clip_coefficient(not_a_number, 1),
                         "clip_coefficient: norm must be finite and not negative: it is nan", ValueError);
  }

  TEST_CASE("values are cut at the bound") {
    const Tensor p = parameter(tensor({-3, -0.5, 0, 0.25, 2, inf, not_a_number})), q = without_grad();
    clip_grad_value_(std::vector<Tensor>{p, q}, 0.5);
    const auto got = p.grad().to_vector<double>();
    CHECK(std::vector<double>(got.begin(), got.end() - 1) == std::vector<double>{-0.5, -0.5, 0, 0.25, 0.5, 0.5});
    CHECK(std::isnan(got.back()));
    clip_grad_value_(NamedTensors{{"p", p}}, 0);
    CHECK(p.grad().to_vector<double>()[4] == 0);
  }

  TEST_CASE("bounds that are negative or NaN are errors") {
    const std::vector<Tensor> parameters{parameter(ones({2}))};
    for (const auto& [bound, text] : {std::pair{-1.0, "-1"}, {not_a_number, "nan"}}) {
      const std::string end = std::string(" must not be negative: it is ") + text;
      CHECK_THROWS_WITH_AS(clip_grad_norm_(parameters, bound), ("clip_grad_norm_: max_norm" + end).c_str(), ValueError);
      CHECK_THROWS_WITH_AS(clip_coefficient(1, bound), ("clip_coefficient: max_norm" + end).c_str(), ValueError);
      CHECK_THROWS_WITH_AS(clip_grad_value_(parameters, bound), ("clip_grad_value_: bound" + end).c_str(), ValueError);
    }
    CHECK(parameters[0].grad().to_vector<double>() == std::vector<double>{1, 1});
  }
}
