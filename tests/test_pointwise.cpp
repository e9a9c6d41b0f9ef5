// Pointwise ops and losses where they are singular, kinked or discontinuous, on whole numbers, and between dtypes: values and gradients as numbers.
// Not their ordinary values (test_op_table.cpp). Next: ../docs/policies.md.
#include <numbers>

#include "op_checks.h"

using namespace tapestry;
using namespace tapestry::testing;

namespace {

constexpr double inf = INFINITY, undefined = NAN, half_pi = std::numbers::pi / 2, ln2 = std::numbers::ln2;

/// f at inputs of one element: its value and its derivative by each of them.
struct Point {
  const char* name;
  Tensor (*f)(std::span<const Tensor>);
  std::vector<double> at;
  double value;
  std::vector<double> slopes;
};
using Args = std::span<const Tensor>;

// clang-format off
const Point points[] = {
    {"log at 0", [](Args a) { return log(a[0]); }, {0}, -inf, {inf}},
    {"log2 at 0", [](Args a) { return log2(a[0]); }, {0}, -inf, {inf}},
    {"log10 at 0", [](Args a) { return log10(a[0]); }, {0}, -inf, {inf}},
    {"asin at 1", [](Args a) { return asin(a[0]); }, {1}, half_pi, {inf}},
    {"asin at -1", [](Args a) { return asin(a[0]); }, {-1}, -half_pi, {inf}},
    {"acos at 1", [](Args a) { return acos(a[0]); }, {1}, 0, {-inf}},
    {"acosh at 1", [](Args a) { return acosh(a[0]); }, {1}, 0, {inf}},
    {"atanh at 1", [](Args a) { return atanh(a[0]); }, {1}, inf, {inf}},
    {"atanh at -1", [](Args a) { return atanh(a[0]); }, {-1}, -inf, {inf}},
    {"logit at 0", [](Args a) { return logit(a[0]); }, {0}, -inf, {inf}},
    {"logit at 1", [](Args a) { return logit(a[0]); }, {1}, inf, {inf}},
    {"hardtanh at its low bound", [](Args a) { return hardtanh(a[0]); }, {-1}, -1, {0}},
    {"hardtanh at its high bound", [](Args a) { return hardtanh(a[0]); }, {1}, 1, {0}},
    {"clamp at a bound", [](Args a) { return clamp(a[0], -1, 1); }, {1}, 1, {1}},
    {"relu6 at 0", [](Args a) { return relu6(a[0]); }, {0}, 0, {0}},
    {"relu6 at 6", [](Args a) { return relu6(a[0]); }, {6}, 6, {0}},
    {"hardsigmoid at -3", [](Args a) { return hardsigmoid(a[0]); }, {-3}, 0, {0}},
    {"hardswish at -3", [](Args a) { return hardswish(a[0]); }, {-3}, 0, {0}},
    {"hardswish at 3", [](Args a) { return hardswish(a[0]); }, {3}, 3, {1}},
    {"softshrink at lambda", [](Args a) { return softshrink(a[0]); }, {0.5}, 0, {0}},
    {"hardshrink at lambda", [](Args a) { return hardshrink(a[0]); }, {0.5}, 0, {0}},
    {"elu at 0", [](Args a) { return elu(a[0], 1.5); }, {0}, 0, {1.5}},
    {"prelu at 0", [](Args a) { return prelu(a[0], a[1]); }, {0, 0.25}, 0, {0.25, 0}},
    {"softsign at 0", [](Args a) { return softsign(a[0]); }, {0}, 0, {1}},
    {"mish far out", [](Args a) { return mish(a[0]); }, {1000}, 1000, {1}},
    {"mish far below", [](Args a) { return mish(a[0]); }, {-1000}, 0, {0}},
    {"elu far out", [](Args a) { return elu(a[0]); }, {1000}, 1000, {1}},
    {"frac at a whole number", [](Args a) { return frac(a[0]); }, {2}, 0, {1}},
    {"trunc below 0", [](Args a) { return trunc(a[0]); }, {-1.5}, -1, {0}},
    {"nan_to_num of NaN", [](Args a) { return nan_to_num(a[0], 7, 8, 9); }, {undefined}, 7, {0}},
    {"nan_to_num of inf", [](Args a) { return nan_to_num(a[0], 7, 8, 9); }, {inf}, 8, {0}},
    {"nan_to_num of -inf", [](Args a) { return nan_to_num(a[0], 7, 8, 9); }, {-inf}, 9, {0}},
    {"hypot at the origin", [](Args a) { return hypot(a[0], a[1]); }, {0, 0}, 0, {0, 0}},
    {"hypot of large numbers", [](Args a) { return hypot(a[0], a[1]); }, {3e200, 4e200}, 5e200, {0.6, 0.8}},
    {"atan2 at the origin", [](Args a) { return atan2(a[0], a[1]); }, {0, 0}, 0, {0, 0}},
    {"atan2 of large numbers", [](Args a) { return atan2(a[0], a[1]); }, {1e200, 1e200}, half_pi / 2, {0.5e-200, -0.5e-200}},
    {"fmod at a jump", [](Args a) { return fmod(a[0], a[1]); }, {4, 2}, 0, {1, -2}},
    {"fmod keeps the first sign", [](Args a) { return fmod(a[0], a[1]); }, {-7, 3}, -1, {1, 2}},
    {"fmod by 0", [](Args a) { return fmod(a[0], a[1]); }, {1, 0}, undefined, {1, undefined}},
    {"remainder at a jump", [](Args a) { return remainder(a[0], a[1]); }, {4, 2}, 0, {1, -2}},
    {"remainder has the second sign", [](Args a) { return remainder(a[0], a[1]); }, {-7, 3}, 2, {1, 3}},
    {"remainder by 0", [](Args a) { return remainder(a[0], a[1]); }, {1, 0}, undefined, {1, undefined}},
    {"floor_divide", [](Args a) { return floor_divide(a[0], a[1]); }, {-7, 3}, -3, {0, 0}},
    {"floor_divide by 0", [](Args a) { return floor_divide(a[0], a[1]); }, {-7, 0}, -inf, {0, 0}},
    {"xlogy at 0, 0", [](Args a) { return xlogy(a[0], a[1]); }, {0, 0}, 0, {-inf, 0}},
    {"xlogy at b = 0", [](Args a) { return xlogy(a[0], a[1]); }, {2, 0}, -inf, {-inf, inf}},
    {"xlogy of NaN", [](Args a) { return xlogy(a[0], a[1]); }, {0, undefined}, undefined, {undefined, 0}},
    {"logaddexp of nothing", [](Args a) { return logaddexp(a[0], a[1]); }, {-inf, -inf}, -inf, {0, 0}},
    {"logaddexp beside nothing", [](Args a) { return logaddexp(a[0], a[1]); }, {-inf, 2}, 2, {0, 1}},
    {"logaddexp at a tie", [](Args a) { return logaddexp(a[0], a[1]); }, {1000, 1000}, 1000 + ln2, {0.5, 0.5}},
    {"copysign of 0", [](Args a) { return copysign(a[0], a[1]); }, {0, -1}, 0, {0, 0}},
    {"copysign", [](Args a) { return copysign(a[0], a[1]); }, {-2, -0.0}, -2, {1, 0}},
    {"lerp at weight 1", [](Args a) { return lerp(a[0], a[1], a[2]); }, {1e16, 1, 1}, 1, {0, 1, 1 - 1e16}},
    {"l1 at 0", [](Args a) { return l1_loss(a[0], a[1]); }, {2, 2}, 0, {0, 0}},
    {"huber at delta", [](Args a) { return huber_loss(a[0], a[1], 0.5); }, {2.5, 2}, 0.125, {0.5, -0.5}},
    {"hinge at the margin", [](Args a) { return hinge_loss(a[0], a[1].detach()); }, {1, 1}, 0, {0, 0}},
    {"kl_div at t = 0", [](Args a) { return kl_div(a[0], a[1]); }, {-3, 0}, 0, {0, -inf}},
    {"kl_div where both are 0", [](Args a) { return kl_div(a[0], a[1].detach()); }, {-inf, 0}, 0, {0, 0}},
    {"bce: p = 0, t = 1", [](Args a) { return binary_cross_entropy(a[0], a[1]); }, {0, 1}, 100, {0, 100}},
    {"bce: p = 0, t = 0", [](Args a) { return binary_cross_entropy(a[0], a[1]); }, {0, 0}, 0, {1, 100}},
    {"bce: p = 1, t = 1", [](Args a) { return binary_cross_entropy(a[0], a[1]); }, {1, 1}, 0, {-1, -100}},
    {"gaussian_nll below eps", [](Args a) { return gaussian_nll_loss(a[0], a[1].detach(), a[2], 0.25); }, {1, 0, 0}, 0.5 * std::log(0.25) + 2, {4, 0, 0}},
};
// clang-format on

std::vector<Tensor> leaves(const Point& p) {
  std::vector<Tensor> xs;
  for (const double v : p.at) xs.push_back(full({1}, v, DType::f64).requires_grad_());
  return xs;
}

bool near(double got, double right) {
  if (std::isnan(right)) return std::isnan(got);
  return got == right || std::abs(got - right) <= 1e-12 * std::max(std::abs(right), 1e-190);
}

double number(const Tensor& x) { return x.defined() ? x.item() : 0; }

}  // namespace

TEST_SUITE("pointwise") {
  TEST_CASE("values and derivatives at singular points, kinks and jumps") {
    for (const Point& p : points) {
      const auto xs = leaves(p);
      const Tensor y = sum(p.f(xs));
      CHECK_MESSAGE(near(y.item(), p.value), p.name << ": " << y.item());
      const auto slopes = grad({y}, xs, {.allow_unused = true});
      for (size_t i = 0; i < xs.size(); ++i)
        CHECK_MESSAGE(near(number(slopes[i]), p.slopes[i]), p.name << ", input " << i << ": " << number(slopes[i]));
    }
  }

  TEST_CASE("an upstream 0 stays 0 there, in an ordinary and in a recording walk") {
    for (const Point& p : points) {
      if (std::any_of(p.at.begin(), p.at.end(), [](double v) { return !std::isfinite(v); })) continue;
      for (const bool recording : {false, true}) {
        const auto xs = leaves(p);
        const Tensor y = p.f(xs);
        const auto slopes =
            grad({y}, xs, {.grad_outputs = {zeros_like(y)}, .create_graph = recording, .allow_unused = true});
        for (const Tensor& slope : slopes) CHECK_MESSAGE(number(slope) == 0, p.name << ": " << number(slope));
      }
    }
  }

  TEST_CASE("second derivatives are numbers where the first are 0 by choice") {
    for (const Point& p : points) {
      const std::string name = p.name;
      if (!name.ends_with("at the origin") && !name.ends_with("of nothing") && name != "logaddexp beside nothing")
        continue;
      const auto xs = leaves(p);
      const auto first = grad({p.f(xs)}, xs, {.create_graph = true});
      for (const Tensor& s : grad({first[0] + first[1]}, xs, {.allow_unused = true}))
        CHECK_MESSAGE(std::isfinite(number(s)), name << ": " << number(s));
    }
  }

  TEST_CASE("outside their domain functions are NaN") {
    for (const Tensor& y : {log(full({}, -1)), asin(full({}, 1.5)), acos(full({}, -1.5)), acosh(full({}, 0.5)),
                            atanh(full({}, 2)), logit(full({}, 2)), xlogy(full({}, 1), full({}, -1))})
      CHECK(std::isnan(y.item()));
  }

  TEST_CASE("NaN stays NaN through activations") {
    const Tensor x = full({1}, undefined);
    for (const Tensor& y : {elu(x), celu(x), selu(x), relu6(x), hardtanh(x), hardsigmoid(x), hardswish(x), softsign(x),
                            mish(x), softshrink(x), hardshrink(x), tanhshrink(x), trunc(x), frac(x)})
      CHECK(std::isnan(y.item()));
  }

  TEST_CASE("division of whole numbers, as in Python") {
    const Tensor a = tensor<int64_t>({7, -7, 7, -7, INT64_MIN}), b = tensor<int64_t>({3, 3, -3, -3, -1});
    using V = std::vector<int64_t>;
    CHECK(fmod(a, b).to_vector<int64_t>() == V{1, -1, 1, -1, 0});
    CHECK(remainder(a, b).to_vector<int64_t>() == V{1, 2, -2, -1, 0});
    CHECK(floor_divide(a, b).to_vector<int64_t>() == V{2, -3, -3, 2, INT64_MIN});
    CHECK(sign(a).to_vector<int64_t>() == V{1, -1, 1, -1, -1});
    CHECK(trunc(a).to_vector<int64_t>() == a.to_vector<int64_t>());
    CHECK(message<ValueError>([&] { (void)remainder(a, 0); }) ==
          "remainder: division of whole numbers by 0: a is [5] i64; convert with to(x, DType::f32)");
  }

  TEST_CASE("isclose: infinities are close to themselves alone, NaN to nothing") {
    const Tensor a = tensor<double>({INFINITY, INFINITY, 1, INFINITY, NAN, 1, 1}),
                 b = tensor<double>({INFINITY, -INFINITY, INFINITY, 1, NAN, 1 + 1e-6, 1 + 1e-4});
    CHECK(isclose(a, b).to_vector<bool>() == std::vector<bool>{true, false, false, false, false, true, false});
    CHECK(allclose(ones({2}), ones({2, 2})));
    CHECK(!allclose(a, a));
  }

  TEST_CASE("isinf, isnan and isfinite tell apart") {
    for (const DType dtype : {DType::f64, DType::f32, DType::bf16}) {
      const Tensor x = tensor({0, 1, inf, -inf, undefined}, dtype);
      using V = std::vector<double>;
      CHECK(isinf(x).to_vector<double>() == V{0, 0, 1, 1, 0});
      CHECK(isnan(x).to_vector<double>() == V{0, 0, 0, 0, 1});
      CHECK(isfinite(x).to_vector<double>() == V{1, 1, 0, 0, 0});
    }
    CHECK(!any(isinf(tensor<int64_t>({0, INT64_MAX}))).item<bool>());
  }

  TEST_CASE("no promotion: integers and bools beside floats are an error, and converted have no gradient") {
    const Tensor x = tensor({1, 2, 3}).requires_grad_();
    for (const DType dtype : {DType::i64, DType::boolean}) {
      const Tensor k = ones({3}, dtype);
      const std::string said = message<DTypeError>([&] { (void)(x * k); });
      CHECK(said == "mul: dtypes differ: f32 and " + std::string(name_of(dtype)) +
                        " (shapes [3] and [3]); convert with to(x, DType::f32)");
      CHECK(!to(k, x.dtype()).requires_grad());
      CHECK((x * to(k, x.dtype())).to_vector() == x.to_vector());
    }
  }

  TEST_CASE("y *= 2 rebinds the handle: what was recorded before stays as it was") {
    const Tensor x = tensor({1, 2}, DType::f64).requires_grad_();
    Tensor y = 3.0 * x;
    const Tensor before = y;
    y *= 2;
    y += x;
    CHECK(before.to_vector<double>() == std::vector<double>{3, 6});
    CHECK(difference(grad({y}, {x}, {.grad_outputs = {ones_like(y)}})[0], full({2}, 7, DType::f64)) == 0);
  }

  TEST_CASE("straight_through: values of the one, gradient of the other") {
    const Tensor x = tensor({0.4, 1.6, -2.2}, DType::f64).requires_grad_();
    const Tensor y = straight_through(round(x), x);
    CHECK(y.to_vector<double>() == std::vector<double>{0, 2, -2});
    CHECK(difference(grad({sum(y * y)}, {x})[0], 2 * y.detach()) == 0);
  }
}
