// Losses: cross-entropy's rows, reductions and bad targets; the others against their formulas.
#include "op_checks.h"

using namespace tapestry;
using namespace tapestry::testing;

namespace {

const Reduction reductions[] = {Reduction::none, Reduction::sum, Reduction::mean};

Tensor targets_of(std::initializer_list<int64_t> list, const Shape& shape) {
  return from(std::vector<int64_t>(list), shape);
}

}  // namespace

TEST_SUITE("loss") {
  TEST_CASE("cross_entropy: a known case with an ignored row") {
    for (const DType dtype : {DType::f64, DType::f32}) {
      const double tolerance = dtype == DType::f64 ? 1e-8 : 1e-6;
      const Tensor logits = tensor({{2, 1, 0}, {0, 0, 0}}, dtype).requires_grad_();
      const Tensor loss = cross_entropy(logits, targets_of({0, -100}, {2}));
      CHECK(loss.item() == doctest::Approx(0.40760596).epsilon(tolerance));
      const Tensor g = grad({loss}, {logits})[0];
      CHECK(difference(g, tensor({{-0.33475904, 0.24472847, 0.09003057}, {0, 0, 0}}, dtype)) < tolerance);
      CHECK(g.to_vector<double>()[3] == 0);
    }
  }

  TEST_CASE("over no kept row the mean is 0 and so is the gradient") {
    const Tensor logits = leaf({2, 3}, 1), targets = targets_of({-100, -100}, {2});
    for (const Reduction reduction : reductions) {
      const Tensor loss = sum(cross_entropy(logits, targets, {.reduction = reduction}));
      CHECK(loss.item() == 0);
      CHECK(difference(grad({loss}, {logits})[0], zeros({2, 3}, DType::f64)) == 0);
      CHECK(sum(nll_loss(logits, targets, {.reduction = reduction})).item() == 0);
    }
    CHECK(cross_entropy(zeros({0, 3}), targets_of({}, {0})).item() == 0);
    CHECK(nll_loss(zeros({0, 3}), targets_of({}, {0})).item() == 0);
  }

  TEST_CASE("fused equals log_softmax and nll_loss, its derivatives finite differences") {
    const Tensor targets = targets_of({0, 3, -100, 2, 1, 3}, {2, 3}), logits = leaf({2, 3, 4}, 1);
    for (const Reduction reduction : reductions) {
      const CrossEntropyOptions options{.reduction = reduction};
      const auto fused = [&](const Tensor& x) { return cross_entropy(x, targets, options); };
      const auto plain = [&](const Tensor& x) { return nll_loss(log_softmax(x, -1), targets, options); };
      CHECK(difference(fused(logits).detach(), plain(logits).detach()) < 1e-14);
      CHECK(difference(gradients(fused, {logits})[0], gradients(plain, {logits})[0]) < 1e-14);
      check_derivatives(fused, {logits});
      check_derivatives(fused, {reversed_strides(logits)});
    }
    const Tensor strided = slice(uniform({6, 9}, 2), 1, 3, 7), flat = reshape(targets, {6});
    CHECK(difference(cross_entropy(strided, flat), cross_entropy(clone(strided), flat)) == 0);
  }

  TEST_CASE("other ignored targets, or none") {
    const Tensor logits = uniform({2, 3}, 1);
    CHECK(difference(cross_entropy(logits, targets_of({1, 2}, {2}), {.ignore_index = 2}),
                     cross_entropy(slice(logits, 0, 0, 1), targets_of({1}, {1}))) < 1e-15);
    CHECK(message<IndexError>([&] {
            cross_entropy(logits, targets_of({1, -100}, {2}), {.ignore_index = no_ignore_index});
          }) == "cross_entropy: target -100 at [1] is out of range for 3 classes");
    const Tensor leaf_logits = leaf({2, 3}, 1);
    check_derivatives(
        [](const Tensor& x) {
          return cross_entropy(x, targets_of({1, 2}, {2}), {.ignore_index = no_ignore_index});
        },
        {leaf_logits});
  }

  TEST_CASE("large logits overflow nothing; bf16 sums in f32") {
    const Tensor big = tensor({{1000, 0}, {0, 1000}}, DType::f32).requires_grad_();
    const Tensor loss = cross_entropy(big, targets_of({0, 0}, {2}), {.reduction = Reduction::sum});
    CHECK(loss.item() == 1000);
    CHECK(difference(grad({loss}, {big})[0], tensor({{0, 0}, {-1, 1}})) == 0);
    const Tensor narrow = zeros({1, 4096}, DType::bf16).requires_grad_();
    const Tensor each = cross_entropy(narrow, targets_of({5}, {1}), {.reduction = Reduction::none});
    CHECK(each.dtype() == DType::bf16);
    CHECK(each.to_vector()[0] == doctest::Approx(std::log(4096)).epsilon(0x1p-8));
    CHECK(grad({each}, {narrow}, {.grad_outputs = {ones({1}, DType::bf16)}})[0].to_vector()[7] == 1.0F / 4096);
  }

  TEST_CASE("errors name position and value") {
    const Tensor logits = zeros({4, 20, 57});
    std::vector<int64_t> ids(80, 1);
    ids[77] = 57;
    CHECK(message<IndexError>([&] {
            cross_entropy(logits, from(ids, {4, 20}));
          }) == "cross_entropy: target 57 at [3, 17] is out of range for 57 classes");
    CHECK(message<IndexError>([&] {
            nll_loss(logits, from(ids, {4, 20}));
          }) == "nll_loss: target 57 at [3, 17] is out of range for 57 classes");
    for (const int64_t bad : {-4, 3})
      CHECK(message<IndexError>([&] {
              cross_entropy(zeros({2, 3}), targets_of({0, bad}, {2}));
            }) == "cross_entropy: target " + std::to_string(bad) + " at [1] is out of range for 3 classes");
    CHECK(message<ShapeError>([] {
            cross_entropy(zeros({2, 3}), targets_of({0}, {1}));
          }) ==
          "cross_entropy: logits is [2, 3] f32, targets is [1] i64; targets must have the shape of logits without its "
          "last dim");
    CHECK(message<DTypeError>([] {
            cross_entropy(zeros({2, 3}), zeros({2}));
          }) == "cross_entropy: targets is [2] f32; it must be i64: convert with to(x, DType::i64)");
    CHECK(message<ShapeError>([] {
            cross_entropy(zeros({2, 0}), targets_of({0, 0}, {2}));
          }).starts_with("cross_entropy: logits is [2, 0] f32"));
    CHECK(message<ShapeError>([] {
            mse_loss(zeros({3, 1}), zeros({3}));
          }) == "mse_loss: x is [3, 1] f32, target is [3] f32; the shapes must be equal: expand(target, x.shape())");
  }

  TEST_CASE("mse and binary cross-entropy") {
    const Tensor x = leaf({2, 3}, 1), t = leaf({2, 3}, 2);
    for (const Reduction reduction : reductions) {
      check_derivatives([=](const Tensor& a, const Tensor& b) { return mse_loss(a, b, reduction); }, {x, t});
      check_derivatives(
          [=](const Tensor& a, const Tensor& b) { return binary_cross_entropy_with_logits(a, b, reduction); }, {x, t});
    }
    CHECK(mse_loss(tensor({1, 2}), tensor({3, 2})).item() == 2);
    // max(x, 0) − x t + ln(1 + e^(−|x|)), exact where it is tiny, and smooth at 0.
    const Tensor logits = tensor({0, 40, -40, 1000, 2}, DType::f64).requires_grad_(),
                 labels = tensor({1, 1, 0, 0, 0.25}, DType::f64);
    const Tensor each = binary_cross_entropy_with_logits(logits, labels, Reduction::none);
    const std::vector<double> wanted{std::log(2), std::exp(-40), std::exp(-40), 1000,
                                     2 - 0.5 + std::log1p(std::exp(-2))};
    for (size_t i = 0; i < wanted.size(); ++i)
      CHECK(each.to_vector<double>()[i] == doctest::Approx(wanted[i]).epsilon(1e-12));
    CHECK(grad({sum(each)}, {logits})[0].to_vector<double>()[0] == -0.5);
  }

  TEST_CASE("class weights and label smoothing: ignored rows, impossible classes, a mean over no weight") {
    const Tensor logits = leaf({3, 4}, 1), weight = tensor({0.5, 2, 0, 1}, DType::f64);
    const Tensor targets = targets_of({1, -100, 3}, {3}), kept = targets_of({1, 3}, {2});
    for (const double s : {0.0, 0.3})
      for (const bool weighted : {false, true}) {
        const CrossEntropyOptions options{.label_smoothing = s, .weight = weighted ? weight : Tensor{}};
        const auto f = [&](const Tensor& x) { return cross_entropy(x, targets, options); };
        CHECK(f(logits).item() ==
              doctest::Approx(cross_entropy(index_select(logits, 0, tensor<int64_t>({0, 2})), kept, options).item()));
        check_derivatives(f, {logits});
      }
    // Targets of weight 0 cost nothing, even where they are impossible.
    const Tensor impossible = tensor({{0, 0, -INFINITY, 0}}, DType::f64).requires_grad_();
    for (const Reduction reduction : reductions) {
      const Tensor loss =
          sum(cross_entropy(impossible, targets_of({2}, {1}), {.reduction = reduction, .weight = weight}));
      CHECK(loss.item() == 0);
      CHECK(difference(grad({loss}, {impossible})[0], zeros({1, 4}, DType::f64)) == 0);
      CHECK(sum(nll_loss(impossible, targets_of({2}, {1}), {.reduction = reduction, .weight = weight})).item() == 0);
    }
  }

  TEST_CASE("label smoothing beside a logit of -inf: the loss is inf, the gradient softmax - q") {
    const Tensor x = tensor({{0, 0, -INFINITY}}, DType::f64).requires_grad_();
    for (const bool recording : {false, true}) {
      const Tensor loss = cross_entropy(x, targets_of({0}, {1}), {.label_smoothing = 0.3});
      CHECK(loss.item() == INFINITY);
      const Tensor g = grad({loss}, {x}, {.create_graph = recording})[0];
      CHECK(difference(g.detach(), tensor({{-0.3, 0.4, -0.1}}, DType::f64)) < 1e-15);
    }
  }

  TEST_CASE("gumbel_softmax draws from softmax(logits), one-hot where hard, with the soft gradient") {
    const Tensor logits = log(tensor({0.1, 0.3, 0.6}, DType::f64));
    manual_seed(3);
    const Tensor draws = gumbel_softmax(expand(logits, {20000, 3}), 1, true), share = mean(draws, {0});
    CHECK(difference(share, exp(logits)) < 0.015);
    CHECK(all(sum(draws, {1}) == 1).item<bool>());
    CHECK(all(logical_or(draws == 0, draws == 1)).item<bool>());
    for (const int64_t dim : {0, -1}) {
      const Tensor x = leaf({3, 4}, 5);
      const auto gradient = [&](bool hard) {
        manual_seed(7);
        const Tensor y = gumbel_softmax(x, 0.5, hard, dim);
        return grad({y}, {x}, {.grad_outputs = {uniform({3, 4}, 9)}})[0];
      };
      CHECK(difference(gradient(true), gradient(false)) == 0);
    }
    manual_seed(7);
    const Tensor narrow = gumbel_softmax(zeros({2, 3}, DType::bf16), 1, true);
    CHECK(narrow.dtype() == DType::bf16);
    CHECK(sum(narrow).item() == 2);
    CHECK(message<IndexError>([] {
            (void)gumbel_softmax(zeros({}), 1);
          }).starts_with("gumbel_softmax: dim -1 is out of range for rank 0"));
  }
}
