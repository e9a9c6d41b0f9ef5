// matmul and linear: every rank combination against loops, through views, in every dtype, into an empty and a filled gradient.
#include "op_checks.h"

using namespace tapestry;
using namespace tapestry::testing;

namespace {

struct Factors {
  Shape a, b;
};
const Factors pairs[] = {
    {{3, 4}, {4, 2}},       {{4}, {4}},       {{4}, {4, 2}},       {{3, 4}, {4}},       {{2, 3, 4}, {4, 2}},
    {{2, 3, 4}, {2, 4, 5}}, {{2, 3, 4}, {4}}, {{4}, {2, 4, 5}},    {{3, 4}, {2, 4, 5}}, {{2, 1, 3, 4}, {5, 4, 2}},
    {{1, 3, 4}, {6, 4, 2}}, {{0, 4}, {4, 2}}, {{3, 0}, {0, 2}},    {{2, 3, 0}, {0, 2}}, {{2, 0, 4}, {4, 3}},
    {{2, 2, 3, 1}, {1, 3}}, {{1, 1}, {1, 1}}, {{0, 3, 4}, {4, 2}}, {{3, 4}, {2, 4, 0}}, {{2, 1, 4}, {1, 4, 3}},
};

/// Element sums over k with the batch dims broadcast, in double.
std::vector<double> reference(const Tensor& a, const Tensor& b) {
  const Tensor x = a.dim() == 1 ? unsqueeze(a, 0) : a, y = b.dim() == 1 ? unsqueeze(b, 1) : b;
  Shape xb, yb;
  for (int d = 0; d + 2 < x.dim(); ++d) xb.push_back(x.shape()[d]);
  for (int d = 0; d + 2 < y.dim(); ++d) yb.push_back(y.shape()[d]);
  Shape full_x = broadcast_shapes("reference", xb, yb), full_y = full_x;
  const int64_t m = x.size(-2), k = x.size(-1), n = y.size(-1), batches = numel(full_x);
  for (const int64_t s : {m, k}) full_x.push_back(s);
  for (const int64_t s : {k, n}) full_y.push_back(s);
  const auto xs = expand(x, full_x).to_vector<double>(), ys = expand(y, full_y).to_vector<double>();
  std::vector<double> out;
  for (int64_t batch = 0; batch < batches; ++batch)
    for (int64_t i = 0; i < m; ++i)
      for (int64_t j = 0; j < n; ++j) {
        double total = 0;
        for (int64_t l = 0; l < k; ++l)
          total += xs[static_cast<size_t>((batch * m + i) * k + l)] * ys[static_cast<size_t>((batch * k + l) * n + j)];
        out.push_back(total);
      }
  return out;
}

Tensor sample(const Shape& shape, uint64_t seed, DType dtype) {
  return dtype == DType::i64 ? to(round(uniform(shape, seed) * 9), DType::i64) : uniform(shape, seed, dtype);
}

double worst(const Tensor& y, const std::vector<double>& wanted) {
  const auto got = y.to_vector<double>();
  REQUIRE(got.size() == wanted.size());
  double most = 0;
  for (size_t i = 0; i < got.size(); ++i) most = std::max(most, std::abs(got[i] - wanted[i]));
  return most;
}

}  // namespace

TEST_SUITE("matmul") {
  TEST_CASE("every rank combination and dtype equals loops, dense and through views") {
    for (const Factors& p : pairs)
      for (const DType dtype : {DType::f64, DType::f32, DType::bf16, DType::i64}) {
        CAPTURE(to_string(p.a, dtype));
        CAPTURE(to_string(p.b));
        const double tolerance = dtype == DType::f32 ? 1e-6 : dtype == DType::bf16 ? 2e-2 : 1e-14;
        const Tensor a = sample(p.a, 1, dtype), b = sample(p.b, 2, dtype);
        const auto wanted = reference(a, b);
        CHECK(worst(matmul(a, b), wanted) <= tolerance);
        CHECK(worst(matmul(reversed_strides(a), reversed_strides(b)), wanted) <= tolerance);
        CHECK(matmul(a, b).dtype() == dtype);
      }
  }

  TEST_CASE("stepped, backward and expanded operands are read as they are") {
    const Tensor wide = uniform({5, 8}, 3), b = uniform({4, 3}, 4);
    CHECK(worst(matmul(slice(wide, 1, {}, {}, 2), b), reference(slice(wide, 1, {}, {}, 2), b)) < 1e-14);
    CHECK(worst(matmul(slice(wide, 1, 3, {}, -1), b), reference(slice(wide, 1, 3, {}, -1), b)) < 1e-14);
    const Tensor repeated = expand(uniform({1, 4}, 5), {6, 4});
    CHECK(worst(matmul(repeated, b), reference(repeated, b)) < 1e-14);
    const Tensor heads = permute(uniform({2, 5, 3, 4}, 6), {0, 2, 1, 3});  // (B, H, T, Dh), a view of (B, T, H, Dh)
    CHECK(worst(matmul(heads, mT(heads)), reference(heads, mT(heads))) < 1e-14);
    CHECK(worst(matmul(heads, b), reference(heads, b)) < 1e-14);
  }

  TEST_CASE("derivatives") {
    const auto f = [](const Tensor& a, const Tensor& b) { return matmul(a, b); };
    for (const Factors& p : pairs) {
      if (numel(p.a) == 0 || numel(p.b) == 0) continue;
      CAPTURE(to_string(p.a));
      CAPTURE(to_string(p.b));
      check_derivatives(f, {leaf(p.a, 1), leaf(p.b, 2)});
      check_derivatives(f, {reversed_strides(leaf(p.a, 1)), reversed_strides(leaf(p.b, 2))});
    }
    check_derivatives([](const Tensor& a) { return matmul(a, mT(a)); }, {leaf({3, 4}, 1)});
    check_derivatives([](const Tensor& a) { return matmul(a, a); }, {leaf({2, 3, 3}, 1)});
  }

  TEST_CASE("gradients of empty products are zeros") {
    const Tensor a = leaf({0, 4}, 1), b = leaf({4, 2}, 2);
    matmul(a, b).backward(zeros({0, 2}, DType::f64));
    CHECK(a.grad().shape() == Shape{0, 4});
    CHECK(difference(b.grad(), zeros({4, 2}, DType::f64)) == 0);
  }

  TEST_CASE("a weight's gradient is added into the .grad that exists, in place") {
    for (const bool fused : {false, true}) {
      const Tensor x = leaf({2, 5, 4}, 1), w = leaf(fused ? Shape{3, 4} : Shape{4, 3}, 2),
                   upstream = uniform({2, 5, 3}, 3);
      const auto walk = [&] { (fused ? linear(x, w) : matmul(x, w)).backward(upstream); };
      walk();
      const Tensor once = clone(w.grad());
      const void* memory = w.grad().raw_data();
      walk();
      CHECK(difference(w.grad(), once * 2) < 1e-12);
      CHECK(w.grad().raw_data() == memory);
    }
    const Tensor square = leaf({3, 3}, 4);  // both operands are the same leaf
    const auto both = [&] { matmul(square, square).backward(uniform({3, 3}, 5)); };
    both();
    const Tensor once = clone(square.grad());
    both();
    CHECK(difference(square.grad(), once * 2) < 1e-12);
  }

  TEST_CASE("errors name both operands") {
    const auto f32 = [](const Shape& shape) { return zeros(shape); };
    CHECK(message<ShapeError>([&] {
            matmul(f32({2, 3}), f32({4, 5}));
          }) == "matmul: inner dimensions differ: a is [2, 3] f32, b is [4, 5] f32 (a.size(-1) = 3, b.size(-2) = 4)");
    CHECK(message<ShapeError>([&] {
            matmul(f32({2, 3}), f32({4}));
          }) == "matmul: inner dimensions differ: a is [2, 3] f32, b is [4] f32 (a.size(-1) = 3, b.size(-1) = 4)");
    CHECK(message<ShapeError>([&] {
            matmul(f32({2, 1, 3}), f32({5, 3, 1}));
          }) ==
          "matmul: batch dimensions do not broadcast: a is [2, 1, 3] f32, b is [5, 3, 1] f32 (a.size(-3) = 2, "
          "b.size(-3) = 5)");
    CHECK(message<ShapeError>([&] { matmul(f32({}), f32({3})); }) ==
          "matmul: a single number is no matrix: a is [] f32, b is [3] f32; use a * b");
    CHECK(message<DTypeError>([&] {
            matmul(f32({2, 3}), zeros({3, 2}, DType::f64));
          }) == "matmul: dtypes differ: a is [2, 3] f32, b is [3, 2] f64; convert with to(x, DType::f32)");
    CHECK(message<DTypeError>([&] {
            matmul(zeros({1, 1}, DType::boolean), zeros({1, 1}, DType::boolean));
          }) == "matmul: bool has no product: a is [1, 1] bool, b is [1, 1] bool; convert with to(x, DType::i64)");
    CHECK(
        message<ShapeError>([&] {
          linear(f32({2, 3}), f32({5, 4}));
        }) ==
        "linear: inner dimensions differ: x is [2, 3] f32, weight is [5, 4] f32 (x.size(-1) = 3, weight.size(1) = 4)");
    CHECK(message<ShapeError>([&] {
            linear(f32({2, 3}), f32({5, 3}), f32({3}));
          }) == "linear: bias is [3] f32, weight is [5, 3] f32; bias must be [5]");
    CHECK(message<DTypeError>([&] {
            linear(zeros({2, 3}, DType::f64), f32({5, 3}));
          }) == "linear: dtypes differ: x is [2, 3] f64, weight is [5, 3] f32; convert with to(x, DType::f32)");
  }

  TEST_CASE("linear is x wᵀ + b") {
    for (const Shape& shape : {Shape{4}, Shape{3, 4}, Shape{2, 3, 4}, Shape{0, 4}}) {
      const Tensor x = leaf(shape, 1), w = leaf({5, 4}, 2), b = leaf({5}, 3);
      CHECK(difference(linear(x, w, b).detach(), (matmul(x, mT(w)) + b).detach()) < 1e-14);
      CHECK(difference(linear(x, w).detach(), matmul(x, mT(w)).detach()) < 1e-14);
      if (x.numel() == 0) continue;
      const auto f = [](const Tensor& t, const Tensor& u, const Tensor& v) { return linear(t, u, v); };
      check_derivatives(f, {x, w, b});
      check_derivatives(f, {reversed_strides(x), reversed_strides(w), b});
    }
    const Tensor no_inputs = linear(zeros({2, 0}), zeros({3, 0}), ones({3}));
    CHECK(difference(no_inputs, ones({2, 3})) == 0);
  }

  TEST_CASE("f32 parameters with bf16 activations: rounded for the product, their gradients f32") {
    const Tensor x = leaf({6, 32}, 1, DType::bf16), w = leaf({8, 32}, 2, DType::f32), b = leaf({8}, 3, DType::f32);
    const Tensor y = linear(x, w, b), g = uniform({6, 8}, 4, DType::bf16);
    CHECK(y.dtype() == DType::bf16);
    const auto wide = [](const Tensor& t) { return to(to(t.detach(), DType::bf16), DType::f32); };
    const Tensor exact = matmul(wide(x), mT(wide(w))) + wide(b);
    CHECK(difference(to(y.detach(), DType::f32), exact) < 0.02);
    for (int pass = 1; pass <= 2; ++pass) {  // into an empty and a filled gradient
      y.backward(g, {.retain_graph = true});
      CHECK(difference(w.grad(), matmul(mT(wide(g)), wide(x)) * pass) < 1e-5);
      CHECK(difference(b.grad(), sum(wide(g), {0}) * pass) < 1e-5);
    }
    CHECK(x.grad().dtype() == DType::bf16);
    const Tensor ones4096 = ones({1, 4096}, DType::bf16);
    CHECK(linear(ones4096, ones({1, 4096})).item() == 4096);
    CHECK(matmul(ones4096, mT(ones4096)).item() == 4096);
  }
}
