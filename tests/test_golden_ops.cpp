// Every op against values and gradients of PyTorch, in f64 and f32, with second derivatives where there are any.
// Not here: layers (test_golden_nn.cpp). Which op a case means is in golden_*_ops.cpp.
// Next: golden_check.h.
#include <doctest/doctest.h>

#include <cmath>

#include "../ops/ops.h"
#include "golden_check.h"

using namespace tapestry;
using namespace tapestry::golden;

namespace {

/// A gradient that PyTorch lets become NaN where nothing flows: ours is 0 (docs/policies.md).
Tensor zero_for_nan(const FixtureCase&, const Tensor& stored, const Tensor&) {
  return where(isnan(stored), 0.0, stored);
}

/// The gradient of logsumexp is softmax, whose rows sum to 1 at any magnitude (PyTorch's is e^(x − y), which forgets ln 2
/// beside 1e30); a row that is all −inf gives 0, and one with +inf keeps the stored value.
Tensor softmax_rows(const FixtureCase& c, const Tensor& stored, const Tensor&) {
  const Tensor x = *c.find("in/x"), largest = amax(x, {-1}, true);
  const Tensor rows = unsqueeze(*c.find("cot/y"), -1) * softmax(x, -1);
  return where(isfinite(largest), rows, where(largest < 0.0, 0.0, stored));
}

/// −inf, the derivative of x·ln x, where PyTorch has NaN.
Tensor minus_infinity(const FixtureCase&, const Tensor& stored, const Tensor&) {
  return where(isnan(stored), -INFINITY, stored);
}

/// Any finite number will do.
Tensor any_finite(const FixtureCase&, const Tensor& stored, const Tensor& got) {
  return where(isfinite(got), got, stored);
}

}  // namespace

TEST_SUITE("golden_ops") {
  TEST_CASE("pointwise") {
    constexpr std::string_view fixtures[] = {
        "ops/add",   "ops/mul",        "ops/div", "ops/minimum", "ops/scalar_operand", "ops/unary",
        "ops/clamp", "ops/where_mask", "ops/nan", "ops/losses",  "ops/graph"};
    constexpr Policy policies[] = {{"ops/where_mask:c5", "grad/in/x", zero_for_nan},
                                   {"ops/losses:c12", "grad/in/p", any_finite}};
    check_fixtures(fixtures, {}, policies);
  }

  TEST_CASE("reductions") {
    constexpr std::string_view fixtures[] = {
        "ops/sum",     "ops/amax",        "ops/var",  "ops/logsumexp", "ops/logsumexp_extremes",
        "ops/max_dim", "ops/reduce_edge", "ops/ties", "ops/at_zero",   "ops/scans",
        "ops/prod"};
    constexpr Policy policies[] = {{"ops/logsumexp_extremes:c0", "grad/in/x", softmax_rows},
                                   {"ops/at_zero:c15", "grad/in/x", minus_infinity}};
    check_fixtures(fixtures, {}, policies);
  }

  TEST_CASE("products, views and indices") {
    constexpr std::string_view fixtures[] = {"ops/matmul", "ops/views", "ops/gather_scatter", "ops/indexing",
                                             "ops/embedding_padding"};
    check_fixtures(fixtures);
  }

  TEST_CASE("normalisation, convolution and second derivatives") {
    constexpr std::string_view fixtures[] = {"ops/norms", "ops/conv", "ops/double_backward"};
    check_fixtures(fixtures);
  }

  TEST_CASE("recurrent sequences") {
    constexpr std::string_view fixtures[] = {"ops/recurrent"};
    check_fixtures(fixtures);
  }

  TEST_CASE("odd sizes up to ten thousand") {
    constexpr std::string_view fixtures[] = {"size/medium"};
    check_fixtures(fixtures);
  }
}
