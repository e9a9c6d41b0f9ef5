// softmax and log_softmax along any dim, and the fused gate of SwiGLU: values, derivatives of both orders, edges.
#include "op_checks.h"

using namespace tapestry;
using namespace tapestry::testing;

namespace {

Tensor plain_softmax(const Tensor& x, int64_t dim) {
  const Tensor e = exp(x - amax(x, {dim}, true).detach());
  return e / sum(e, {dim}, true);
}

}  // namespace

TEST_SUITE("softmax") {
  TEST_CASE("along every dim, dense and through views") {
    for (const int64_t dim : {0, 1, 2, -1}) {
      const Tensor x = leaf({3, 4, 2}, 1);
      CHECK(difference(softmax(x, dim).detach(), plain_softmax(x, dim).detach()) < 1e-14);
      CHECK(difference(log_softmax(x, dim).detach(), log(plain_softmax(x, dim)).detach()) < 1e-13);
      const auto soft = [dim](const Tensor& t) { return softmax(t, dim); };
      const auto log_soft = [dim](const Tensor& t) { return log_softmax(t, dim); };
      const auto plain = [dim](const Tensor& t) { return plain_softmax(t, dim); };
      CHECK(difference(gradients(soft, {x})[0], gradients(plain, {x})[0]) < 1e-12);
      for (const Tensor& t : {x, reversed_strides(x)}) {
        check_derivatives(soft, {t});
        check_derivatives(log_soft, {t});
      }
    }
  }

  TEST_CASE("the fused path is not cut off the tape") {  // softmax in the middle of a graph
    const Tensor x = tensor({{0.5, -0.5}}, DType::f64), w = tensor({{1, 2}, {3, 5}}, DType::f64).requires_grad_();
    const auto loss = [&](const Tensor& in) {
      const Tensor p = softmax(matmul(in, w), -1);
      CHECK(difference(p.detach(), tensor({{0.62245933, 0.37754067}}, DType::f64)) < 1e-8);
      return sum(p * p);
    };
    const Tensor wanted = tensor({{0.05755679, -0.05755679}, {-0.05755679, 0.05755679}}, DType::f64);
    for (const Tensor& in : {x, mT(clone(mT(x)))}) {
      const Tensor l = loss(in);
      CHECK(l.item() == doctest::Approx(0.52999258).epsilon(1e-8));
      CHECK(difference(grad({l}, {w})[0], wanted) < 1e-8);
    }
  }

  TEST_CASE("extremes") {
    const double inf = INFINITY;
    const Tensor x = tensor({{1000, 0, -inf}, {0, 0, 0}}, DType::f64).requires_grad_();
    const Tensor p = softmax(x, -1);
    CHECK(difference(p.detach(), tensor({{1, 0, 0}, {1.0 / 3, 1.0 / 3, 1.0 / 3}}, DType::f64)) < 1e-15);
    CHECK(difference(grad({sum(p * p)}, {x})[0], zeros({2, 3}, DType::f64)) < 1e-15);
    CHECK(std::isnan(softmax(full({2}, -inf), 0).to_vector()[0]));
    for (const float q : softmax(full({512}, 3.0, DType::bf16), 0).to_vector()) CHECK(q == 1.0F / 512);
    CHECK(softmax(zeros({0, 3}), 1).shape() == Shape{0, 3});
  }

  TEST_CASE("errors") {
    CHECK(message<IndexError>([] { softmax(zeros({2, 3}), 2); }).starts_with("softmax: "));
    CHECK(message<DTypeError>([] { softmax(arange(3), 0); }).starts_with("softmax: needs a floating dtype"));
  }

  TEST_CASE("swiglu is silu(gate)·up, also on the halves of one tensor") {
    const auto fused = [](const Tensor& a, const Tensor& b) { return swiglu(a, b); };
    for (const Shape& shape : {Shape{}, Shape{5}, Shape{2, 3, 5}}) {
      const Tensor gate = leaf(shape, 1), up = leaf(shape, 2);
      CHECK(difference(swiglu(gate, up).detach(), (silu(gate) * up).detach()) < 1e-14);
      check_derivatives(fused, {gate, up});
      check_derivatives(fused, {reversed_strides(gate), up});
    }
    const Tensor both = leaf({3, 8}, 3);
    const auto halves = [](const Tensor& t) { return swiglu(slice(t, -1, 0, 4), slice(t, -1, 4, 8)); };
    const auto plain = [](const Tensor& t) { return silu(slice(t, -1, 0, 4)) * slice(t, -1, 4, 8); };
    CHECK(difference(gradients(halves, {both})[0], gradients(plain, {both})[0]) < 1e-14);
    check_derivatives([](const Tensor& t) { return swiglu(t, t); }, {both});
    const Tensor narrow = swiglu(uniform({3, 8}, 4, DType::bf16), uniform({3, 8}, 5, DType::bf16));
    CHECK(difference(to(narrow, DType::f64), swiglu(to(uniform({3, 8}, 4, DType::bf16), DType::f64),
                                                    to(uniform({3, 8}, 5, DType::bf16), DType::f64))) < 4e-3);
    CHECK(message<ShapeError>([] {
            swiglu(zeros({2, 4}), zeros({4}));
          }) == "swiglu: gate is [2, 4] f32, up is [4] f32; the shapes must be equal");
  }
}
