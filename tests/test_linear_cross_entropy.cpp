// The loss of a linear layer without its logits: equal to the loss of logits for every option and chunk, mixed precision, and what it takes in memory.
// Not its samples and derivatives in general (the op table). Next: test_loss.cpp.
#include "../autograd/allocator.h"
#include "op_checks.h"

using namespace tapestry;
using namespace tapestry::testing;

namespace {

/// Targets in [0, classes), every third one ignored.
Tensor some_targets(int64_t rows, int64_t classes) {
  std::vector<int64_t> t;
  for (int64_t i = 0; i < rows; ++i) t.push_back(i % 3 == 2 ? -100 : i * 7 % classes);
  return from(t, {rows});
}

Tensor of_logits(const Tensor& x, const Tensor& w, const Tensor& b, const Tensor& t,
                 const LinearCrossEntropyOptions& o) {
  const Tensor logits = linear(x, w, b);
  return cross_entropy(o.soft_cap > 0 ? soft_cap(logits, o.soft_cap) : logits, t,
                       {.ignore_index = o.ignore_index,
                        .reduction = o.reduction,
                        .label_smoothing = o.label_smoothing,
                        .z_loss = o.z_loss});
}

/// Bytes that f takes at most beyond what lives before.
template <class F>
int64_t peak_of(F&& f) {
  const int64_t before = memory_stats().live_bytes;
  reset_peak_memory();
  f();
  return memory_stats().peak_bytes - before;
}

}  // namespace

TEST_SUITE("linear_cross_entropy") {
  TEST_CASE("equal to the loss of the logits, value and gradients, for every option and chunk") {
    const Tensor x = leaf({11, 5}, 1), w = leaf({7, 5}, 2), b = leaf({7}, 3), t = some_targets(11, 7);
    const LinearCrossEntropyOptions forms[] = {
        {},
        {.ignore_index = 0, .reduction = Reduction::sum},
        {.label_smoothing = 0.2, .z_loss = 0.1},
        {.reduction = Reduction::sum, .label_smoothing = 1, .z_loss = 0.3, .soft_cap = 0.5}};
    for (LinearCrossEntropyOptions o : forms) {
      const Tensor targets = o.ignore_index == 0 ? where(t < 0.0, 0.0, t) : t;
      for (const Tensor& bias : {b, Tensor{}})
        for (const int64_t chunk : {0, 1, 4, 11, 100}) {
          CAPTURE(chunk);
          o.chunk = chunk;
          std::vector<Tensor> leaves{x, w};
          if (bias.defined()) leaves.push_back(bias);
          const Tensor wanted = of_logits(x, w, bias, targets, o), got = linear_cross_entropy(x, w, bias, targets, o);
          CHECK(difference(got.detach(), wanted.detach()) < 1e-13);
          const auto expected = grad({wanted * 3}, leaves), gradients = grad({got * 3}, leaves);
          for (size_t i = 0; i < leaves.size(); ++i) CHECK(difference(gradients[i], expected[i]) < 1e-13);
        }
    }
  }

  TEST_CASE("each gradient alone, added to a filled .grad, walked twice, or unneeded") {
    const Tensor x = leaf({6, 5}, 1), w = leaf({7, 5}, 2), b = leaf({7}, 3), t = some_targets(6, 7);
    const Tensor loss = linear_cross_entropy(x, w, b, t, {.chunk = 4});
    const auto all = grad({loss}, {x, w, b}, {.retain_graph = true});
    for (size_t i = 0; i < 3; ++i) {
      const Tensor leaves[] = {x, w, b};
      CHECK(difference(grad({loss}, {leaves[i]}, {.retain_graph = true})[0], all[i]) == 0);
      CHECK(difference(grad({linear_cross_entropy(i == 0 ? x : x.detach(), i == 1 ? w : w.detach(),
                                                  i == 2 ? b : b.detach(), t, {.chunk = 4})},
                            {leaves[i]})[0],
                       all[i]) == 0);
    }
    loss.backward({}, {.retain_graph = true});
    loss.backward();
    CHECK(difference(w.grad(), all[1] * 2) == 0);
    const Tensor zero = grad({linear_cross_entropy(x, w, b, t) * 0}, {w})[0];
    CHECK(difference(zero, zeros({7, 5}, DType::f64)) == 0);
  }

  TEST_CASE("over no kept row the loss is 0 and so are the gradients, even beside infinite weights") {
    const Tensor x = leaf({2, 3}, 1), w = full({4, 3}, INFINITY, DType::f64).requires_grad_();
    for (const Tensor& t : {from(std::vector<int64_t>{-100, -100}), from(std::vector<int64_t>{}, {0})}) {
      const Tensor rows = slice(x, 0, 0, t.size(0)), loss = linear_cross_entropy(rows, w, {}, t);
      CHECK(loss.item() == 0);
      CHECK(difference(grad({loss}, {w})[0], zeros({4, 3}, DType::f64)) == 0);
    }
  }

  TEST_CASE("bf16 rows beside f32 or bf16 weights: logits stay f32, gradients have their parameters' dtypes") {
    const Tensor t = some_targets(40, 9);
    const Tensor wide_x = leaf({40, 8}, 1, DType::f32), wide_w = leaf({9, 8}, 2, DType::f32),
                 wide_b = leaf({9}, 3, DType::f32);
    for (const DType parameters : {DType::f32, DType::bf16}) {
      const Tensor x = to(wide_x.detach(), DType::bf16).requires_grad_(),
                   w = to(wide_w.detach(), parameters).requires_grad_(),
                   b = to(wide_b.detach(), parameters).requires_grad_();
      const LinearCrossEntropyOptions o{.z_loss = 1e-3, .soft_cap = 5, .chunk = 16};
      const Tensor loss = linear_cross_entropy(x, w, b, t, o);
      CHECK(loss.dtype() == DType::bf16);
      LinearCrossEntropyOptions unrounded = o;
      unrounded.f32_loss = true;
      const Tensor wide = linear_cross_entropy(x, w, b, t, unrounded),
                   same = of_logits(to(x, DType::f32), to(w, DType::f32), to(b, DType::f32), t, o);
      CHECK(wide.dtype() == DType::f32);
      if (parameters == DType::bf16) CHECK(difference(wide, same) < 1e-5);
      const auto got = grad({loss}, {x, w, b}),
                 expected = grad({of_logits(wide_x, wide_w, wide_b, t, o)}, {wide_x, wide_w, wide_b});
      CHECK(got[0].dtype() == DType::bf16);
      CHECK(difference(grad({wide}, {x})[0], got[0]) == 0);
      CHECK(got[1].dtype() == parameters);
      CHECK(got[2].dtype() == parameters);
      for (size_t i = 0; i < 3; ++i)
        CHECK(difference(to(got[i], DType::f32), expected[i]) < 0.02 * max(abs(expected[i])).item());
    }
  }

  TEST_CASE("memory: never the logits of all rows, forward or backward") {
    constexpr int64_t rows = 4096, width = 16, classes = 2048, logits = rows * classes * 4;
    const Tensor x = leaf({rows, width}, 1, DType::f32), w = leaf({classes, width}, 2, DType::f32),
                 t = some_targets(rows, classes);
    const auto step = [&] { linear_cross_entropy(x, w, {}, t, {.z_loss = 1e-4}).backward(); };
    const int64_t chunked = peak_of(step), whole = peak_of([&] { of_logits(x, w, {}, t, {}).backward(); });
    CHECK(whole > 2 * logits);
    CHECK(chunked < logits / 4);
    const int64_t small = peak_of([&] { linear_cross_entropy(x, w, {}, t, {.soft_cap = 30, .chunk = 64}).backward(); });
    CHECK(small < 2 * 64 * classes * 4 + 3 * (rows + classes) * width * 4 + (1 << 20));
    const NoGrad raw;  // no gradients are made where nobody will ask for them
    const int64_t loss_alone = peak_of([&] { (void)linear_cross_entropy(x, w, {}, t, {.chunk = 64}); });
    CHECK(loss_alone < 2 * 64 * classes * 4);
  }

  TEST_CASE("a write to an input before backward is noticed") {
    const Tensor x = leaf({2, 3}, 1), w = clone(uniform({4, 3}, 2)), t = some_targets(2, 4);
    const Tensor loss = linear_cross_entropy(x, w, {}, t);
    w.fill_(1);
    CHECK(message<AutogradError>([&] {
            (void)grad({loss}, {x}, {.create_graph = true});
          }).starts_with("linear_cross_entropy: a tensor saved for backward"));
  }

  TEST_CASE("errors") {
    const Tensor x = zeros({2, 3}), w = zeros({4, 3}), t = from(std::vector<int64_t>{0, 1});
    const auto said = [&](const Tensor& weight, const Tensor& bias, const Tensor& targets,
                          const LinearCrossEntropyOptions& o = {}) {
      return message<Error>([&] { (void)linear_cross_entropy(x, weight, bias, targets, o); });
    };
    CHECK(said(w, zeros({3}), t) == "linear_cross_entropy: bias is [3] f32, weight is [4, 3] f32; bias must be [4]");
    CHECK(said(zeros({4, 3}, DType::f64), {}, t) ==
          "linear_cross_entropy: dtypes differ: x is [2, 3] f32, weight is [4, 3] f64; convert with to(x, DType::f64)");
    CHECK(said(w, {}, zeros({2})) ==
          "linear_cross_entropy: targets is [2] f32; it must be i64: convert with to(x, DType::i64)");
    CHECK(said(zeros({0, 3}), {}, t) ==
          "linear_cross_entropy: weight is [0, 3] f32, targets is [2] i64; there must be a class to choose");
    CHECK(said(w, {}, from(std::vector<int64_t>{0, -1})) ==
          "linear_cross_entropy: target -1 at [1] is out of range for 4 classes");
    CHECK(said(w, {}, t, {.label_smoothing = 2}) ==
          "linear_cross_entropy: label_smoothing is 2; it must be from 0 to 1");
    CHECK(said(w, {}, t, {.z_loss = -1}) == "linear_cross_entropy: z_loss is -1; it must be finite and not negative");
  }
}
