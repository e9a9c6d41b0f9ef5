// test_anomaly.cpp: the finder of NaN and infinities, and the observer it is.
// Not the trainer's use of it (test_trainer.cpp, test_programs.cpp).
#include "../autograd/tools/anomaly.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <thread>

#include "../autograd/engine.h"
#include "../autograd/function.h"
#include "../autograd/grad_mode.h"
#include "../autograd/scope.h"
#include "../nn/linear.h"
#include "../ops/ops.h"

using namespace tapestry;

namespace {

constexpr double inf = std::numeric_limits<double>::infinity();

/// Writes down what it is told.
struct Log : Observer {
  std::vector<std::string> lines;
  bool alone = true;
  void on_forward(std::string_view op, std::span<const Tensor* const> inputs,
                  std::span<const Tensor> outputs) override {
    alone = alone && !grad_enabled() && detail::observer == nullptr;
    lines.push_back(std::string(op) + " " + std::to_string(inputs.size()) + "->" + std::to_string(outputs.size()));
    (void)(outputs[0] * 2.0);  // not observed
  }
  void before_backward(const Node& node, std::span<const Tensor>) override {
    lines.push_back("begin " + std::string(node.name()));
  }
  void on_backward(const Node& node, std::span<const Tensor> in, std::span<const Tensor> out) override {
    lines.push_back("end " + std::string(node.name()) + " " + std::to_string(in.size()) + "->" +
                    std::to_string(out.size()));
  }
};

/// Its rule is wrong, and overflows.
struct Squares {
  static constexpr std::string_view name = "squares";
  Tensor forward(Context& c, const Tensor& x) const {
    c.save(x);
    return x * 1.0;
  }
  Grads backward(Context& c, const Tensor& g) const { return {g * (c.saved(0) * c.saved(0))}; }
};

struct Exploding : Layer<Exploding> {
  Linear fine{2, 2};
  Linear huge{2, 2};
  [[nodiscard]] Tensor forward(const Tensor& x) const { return exp(huge(fine(x)) * 1e30); }
  void visit(Visitor& v) override {
    v.child("fine", fine);
    v.child("huge", huge);
  }
};

}  // namespace

TEST_SUITE("anomaly") {
  TEST_CASE("an observer is told of every op and rule of its thread, in order, and only while it is installed") {
    const Tensor x = tensor<double>({1, 2}).requires_grad_();
    Log log;
    Tensor y;
    {
      const Observing observing(&log);
      y = sum(mul(x, x));
      std::thread([&] { (void)(x * 3.0); }).join();
      {
        const NoGrad off;
        (void)(x * 3.0);
      }
      {
        const Observing nobody(nullptr);
        (void)(x * 3.0);
      }
      y.backward({}, {.retain_graph = true});
    }
    y.backward();
    CHECK(log.lines == std::vector<std::string>{"mul 2->1", "sum 1->1", "mul_scalar 1->1", "begin sum", "reshape 1->1",
                                                "expand 1->1", "end sum 1->1", "begin mul", "end mul 1->2"});
    CHECK(log.alone);
    CHECK(x.grad().to_vector<double>() == std::vector<double>{4, 8});
  }

  TEST_CASE("the first op whose inputs were finite, with what is needed to see why") {
    const Tensor x = tensor<double>({{0, 1, 2}, {3, 1000, -1000}});
    const AnomalyMode watch({.throws = false});
    CHECK_FALSE(watch.found());
    const Scope scope(intern_path("layers.3"));
    const Tensor y = exp(x * 2.0);
    const Tensor z = y - y;  // NaN, but from an infinity that is not its own
    REQUIRE(watch.found());
    const Anomaly& a = *watch.found();
    CHECK(a.op == "exp");
    CHECK_FALSE(a.in_backward);
    CHECK(a.path == "layers.3");
    CHECK(a.outputs.at(0).infinities == 1);
    CHECK(a.outputs.at(0).first == std::vector<std::string>{"[1, 1]"});
    CHECK(a.inputs.at(0).min == -2000);
    CHECK(a.inputs.at(0).max == 2000);
    CHECK(a.to_string() ==
          "exp: output 0 ([2, 3] f64) is not finite: 1 inf of 6 elements, first at [1, 1], the others in [0, 403.429]; "
          "input 0 ([2, 3] f64) is in [-2000, 2000]; in layers.3");
  }

  TEST_CASE("it throws at the op, with the module path, and is over when it goes") {
    manual_seed(1);
    const Exploding model;
    const Tensor x = ones({1, 2});
    {
      const AnomalyMode watch;
      CHECK_THROWS_WITH_AS((void)model(x), doctest::Contains("exp: output 0 ([1, 2] f32) is not finite: "),
                           AutogradError);
      CHECK(watch.found()->op == "exp");
    }
    CHECK_NOTHROW((void)model(x));
    const AnomalyMode watch;
    {
      const NoGrad off;
      model.huge.weight.fill_(3e38);
    }
    CHECK_THROWS_WITH_AS((void)model(x), doctest::Contains("; in huge"), AutogradError);
  }

  TEST_CASE("a rule: finite gradient and saved values in, infinite out") {
    const Tensor x = tensor<double>({4, 0, 1}).requires_grad_();
    const Tensor y = sum(sqrt(x));
    const AnomalyMode watch;
    CHECK_THROWS_AS(y.backward(), AutogradError);
    REQUIRE(watch.found());
    const Anomaly& a = *watch.found();
    CHECK(a.op == "sqrt");
    CHECK(a.in_backward);
    CHECK(a.outputs.at(0).role == "gradient of input 0");
    CHECK(a.outputs.at(0).first == std::vector<std::string>{"[1]"});
    CHECK(a.inputs.at(0).role == "gradient of output 0");
    CHECK(a.inputs.back().role == "saved 1");
    CHECK(a.inputs.back().min == 0);
    CHECK(a.to_string().find("sqrt (backward): gradient of input 0 ([3] f64) is not finite: 1 inf of 3 elements, first "
                             "at [1]") == 0);
  }

  TEST_CASE("forward and backward are told apart, and a rule written in ops names the one that did it") {
    const Tensor x = tensor<double>({1e200}).requires_grad_();
    const AnomalyMode watch({.throws = false});
    apply(Squares{}, x).backward(ones({1}, DType::f64));
    REQUIRE(watch.found());
    CHECK(watch.found()->op == "squares");
    CHECK(watch.found()->in_backward);
    CHECK(watch.found()->inside == "mul");
    CHECK(std::isinf(x.grad().item()));
  }

  TEST_CASE("infinities that are put in are no finding; NaN they lead to is") {
    const Tensor x = tensor<double>({{1, 2}, {3, 4}}), mask = less(x, full({}, 2.5, DType::f64));
    const AnomalyMode watch({.throws = false, .may_overflow = {"log"}});
    const Tensor masked = masked_fill(x, mask, -inf);
    CHECK_FALSE(softmax(masked * 2.0, 0).to_vector<double>().empty());
    (void)log(zeros({2}, DType::f64));  // meant
    CHECK_FALSE(watch.found());
    (void)softmax(masked, 1);  // a row of −∞
    REQUIRE(watch.found());
    CHECK(watch.found()->op == "softmax");
    CHECK(watch.found()->outputs[0].nans == 2);
    CHECK(watch.found()->to_string().find("input 0 ([2, 2] f64) is, where finite, in [3, 4]") != std::string::npos);
  }

  TEST_CASE("values that are not finite from the start are looked for by hand") {
    CHECK_FALSE(first_not_finite(ones({3}), "w"));
    CHECK_FALSE(first_not_finite(arange(int64_t{3}), "ids"));
    CHECK_FALSE(first_not_finite(Tensor{}, "none"));
    const auto bad = first_not_finite(mT(tensor<double>({{1, NAN}, {inf, 4}})), "w");
    REQUIRE(bad);
    CHECK(to_string(*bad) ==
          "w ([2, 2] f64) is not finite: 1 NaN and 1 inf of 4 elements, first at [0, 1], [1, 0], the others in [1, 4]");
    CHECK(to_string(*first_not_finite(full({1}, NAN), "b")) ==
          "b ([1] f32) is not finite: 1 NaN of 1 element, first at [0]");
  }
}
