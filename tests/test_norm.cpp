// rms_norm and layer_norm against their definitions, through views, in narrow dtypes and where weight and input are one graph.
#include "op_checks.h"

using namespace tapestry;
using namespace tapestry::testing;

namespace {

Tensor plain_rms(const Tensor& x, const Tensor& w, double eps) { return x * rsqrt(mean(x * x, {-1}, true) + eps) * w; }
Tensor plain_layer(const Tensor& x, const Tensor& w, const Tensor& b, double eps) {
  const Tensor centred = x - mean(x, {-1}, true);
  return centred * rsqrt(mean(centred * centred, {-1}, true) + eps) * w + b;
}

Tensor fused_rms(const Tensor& x, const Tensor& w) { return rms_norm(x, w, 1e-5); }
Tensor fused_layer(const Tensor& x, const Tensor& w, const Tensor& b) { return layer_norm(x, w, b, 1e-5); }

}  // namespace

TEST_SUITE("norm") {
  TEST_CASE("fused equals the definition, its derivatives finite differences") {
    for (const Shape& shape : {Shape{5}, Shape{3, 5}, Shape{2, 3, 5}, Shape{4, 1}}) {
      CAPTURE(to_string(shape));
      const Tensor x = leaf(shape, 1), w = leaf({shape[shape.rank() - 1]}, 2), b = leaf({shape[shape.rank() - 1]}, 3);
      CHECK(difference(rms_norm(x, w).detach(), plain_rms(x, w, 1e-5).detach()) < 1e-12);
      CHECK(difference(layer_norm(x, w, b).detach(), plain_layer(x, w, b, 1e-5).detach()) < 1e-12);
      check_derivatives(fused_rms, {x, w});
      check_derivatives(fused_rms, {reversed_strides(x), w});
      if (shape[shape.rank() - 1] == 1) continue;  // one entry: layer_norm is constant
      check_derivatives(fused_layer, {x, w, b});
      check_derivatives(fused_layer, {reversed_strides(x), w, b});
    }
  }

  TEST_CASE("weight and bias may be missing") {
    const Tensor x = leaf({3, 5}, 1), b = leaf({5}, 3), one = ones({5}, DType::f64);
    CHECK(difference(rms_norm(x).detach(), rms_norm(x, one).detach()) == 0);
    CHECK(difference(layer_norm(x).detach(), layer_norm(x, one).detach()) == 0);
    check_derivatives([](const Tensor& t) { return rms_norm(t); }, {x});
    check_derivatives([](const Tensor& t) { return layer_norm(t); }, {x});
    check_derivatives([](const Tensor& t, const Tensor& u) { return layer_norm(t, {}, u); }, {x, b});
  }

  TEST_CASE("slices and expanded rows are read in place") {
    const Tensor wide = uniform({4, 9}, 1), w = uniform({5}, 2), part = slice(wide, 1, 2, 7);
    CHECK(difference(rms_norm(part, w), rms_norm(clone(part), w)) == 0);
    CHECK(difference(layer_norm(part, w, w), layer_norm(clone(part), w, w)) == 0);
    const Tensor repeated = expand(uniform({1, 5}, 3), {4, 5});
    CHECK(difference(rms_norm(repeated, w), rms_norm(clone(repeated), w)) == 0);
  }

  TEST_CASE("an input that is also behind the weight counts once on each side") {
    const Tensor x = leaf({5}, 1);
    const auto fused = [](const Tensor& t) { return rms_norm(t, t * 2); };
    const auto plain = [](const Tensor& t) { return plain_rms(t, t * 2, 1e-5); };
    CHECK(difference(gradients(fused, {x})[0], gradients(plain, {x})[0]) < 1e-12);
    CHECK(difference(gradients(fused, {x}, true)[0].detach(), gradients(plain, {x})[0]) < 1e-12);
    check_derivatives(fused, {x});
    check_derivatives([](const Tensor& t) { return layer_norm(t, t, t); }, {x});
  }

  TEST_CASE("bf16 rows are summed in f32, f32 weights allowed, results in the input's dtype") {
    const Tensor x = leaf({3, 512}, 1, DType::bf16), w = leaf({512}, 2, DType::f32),
                 g = uniform({3, 512}, 3, DType::bf16);
    const Tensor xs = to(x.detach(), DType::f64).detach().requires_grad_(),
                 ws = to(w.detach(), DType::f64).requires_grad_();
    const Tensor y = rms_norm(x, w), exact = rms_norm(xs, ws);
    CHECK(y.dtype() == DType::bf16);
    CHECK(difference(to(y.detach(), DType::f64), exact.detach()) < 0.02);
    y.backward(g);
    exact.backward(to(g, DType::f64));
    CHECK(x.grad().dtype() == DType::bf16);
    CHECK(w.grad().dtype() == DType::f32);
    CHECK(difference(to(w.grad(), DType::f64), ws.grad()) < 1e-4);
    CHECK(difference(to(x.grad(), DType::f64), xs.grad()) < 0.02);
    CHECK(rms_norm(full({1, 4096}, 2.0, DType::bf16), {}, 0).to_vector()[7] == 1);  // a narrow sum would stall
  }

  TEST_CASE("no rows, no gradient lost") {
    const Tensor w = leaf({5}, 1);
    rms_norm(zeros({0, 5}, DType::f64), w).backward(zeros({0, 5}, DType::f64));
    CHECK(difference(w.grad(), zeros({5}, DType::f64)) == 0);
    CHECK(rms_norm(zeros({3, 0})).shape() == Shape{3, 0});
    CHECK(group_norm(zeros({2, 0, 3}), int64_t{1} << 62).shape() == Shape{2, 0, 3});  // no memory for so many groups
  }

  TEST_CASE("a write to what was saved is an error, not a wrong gradient") {
    const Tensor x = leaf({2, 5}, 1), y = x * 2, n = rms_norm(y);
    {
      const NoGrad raw;
      y.fill_(1);
    }
    CHECK(message<AutogradError>([&] {
            sum(n).backward();
          }).starts_with("rms_norm: a tensor saved for backward (shape [2, 5]) was"));
  }

  TEST_CASE("errors") {
    CHECK(message<ShapeError>([] {
            rms_norm(zeros({2, 4}), zeros({3}));
          }) == "rms_norm: weight is [3] f32, x is [2, 4] f32; weight must be [4]");
    CHECK(message<ShapeError>([] {
            layer_norm(zeros({2, 4}), {}, zeros({1, 4}));
          }) == "layer_norm: bias is [1, 4] f32, x is [2, 4] f32; bias must be [4]");
    CHECK(message<DTypeError>([] {
            rms_norm(zeros({2, 4}, DType::f64), zeros({4}));
          }) == "rms_norm: dtypes differ: x is [2, 4] f64, weight is [4] f32; convert with to(x, DType::f32)");
    CHECK(message<ValueError>([] { rms_norm(zeros({2, 4}), {}, -1); }) == "rms_norm: eps is -1; it must be 0 or more");
  }
}
