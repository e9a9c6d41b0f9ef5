// Attention against its definition: masks, causality, grouped heads, layouts, fully masked rows, and every error.
#include "op_checks.h"

using namespace tapestry;
using namespace tapestry::testing;

namespace {

/// By loops in double: (B, H, Tq, Dv) for masks that broadcast to (B, H, Tq, Tk).
std::vector<double> reference(const Tensor& q, const Tensor& k, const Tensor& v, const AttentionOptions& o) {
  const int64_t batch = q.size(0), heads = q.size(1), queries = q.size(2), keys = k.size(2), width = q.size(3);
  const int64_t group = heads / k.size(1), values = v.size(3);
  const double scale = o.scale == 0 ? 1 / std::sqrt(static_cast<double>(width)) : o.scale;
  const auto qs = q.to_vector<double>(), ks = k.to_vector<double>(), vs = v.to_vector<double>();
  std::vector<double> allowed(static_cast<size_t>(batch * heads * queries * keys), 1);
  if (o.mask.defined()) allowed = to(expand(o.mask, {batch, heads, queries, keys}), DType::f64).to_vector<double>();
  std::vector<double> out;
  for (int64_t b = 0; b < batch; ++b)
    for (int64_t h = 0; h < heads; ++h)
      for (int64_t i = 0; i < queries; ++i) {
        const int64_t kv = b * k.size(1) + h / group;
        double total = 0;
        std::vector<double> row(static_cast<size_t>(values));
        for (int64_t j = 0; j < keys; ++j) {
          if (allowed[static_cast<size_t>(((b * heads + h) * queries + i) * keys + j)] == 0) continue;
          if (o.causal && j > i + keys - queries) continue;
          if (o.window > 0 && j <= i + keys - queries - o.window) continue;
          double score = 0;
          for (int64_t d = 0; d < width; ++d)
            score += qs[static_cast<size_t>(((b * heads + h) * queries + i) * width + d)] *
                     ks[static_cast<size_t>((kv * keys + j) * width + d)];
          score *= scale;
          if (o.soft_cap > 0) score = o.soft_cap * std::tanh(score / o.soft_cap);
          const double e = std::exp(score);
          total += e;
          for (int64_t d = 0; d < values; ++d)
            row[static_cast<size_t>(d)] += e * vs[static_cast<size_t>((kv * keys + j) * values + d)];
        }
        for (const double r : row) out.push_back(total == 0 ? 0 : r / total);
      }
  return out;
}

/// true where a seeded coin falls, so that rows of every kind occur.
Tensor coins(const Shape& shape, uint64_t seed) { return uniform(shape, seed) > -0.3; }

struct Setting {
  int64_t batch, heads, kv_heads, queries, keys, width, values;
};
const Setting settings[] = {{2, 3, 3, 4, 4, 5, 5}, {1, 4, 2, 3, 5, 4, 3}, {2, 2, 1, 5, 3, 2, 2}, {1, 1, 1, 1, 7, 4, 4}};

}  // namespace

TEST_SUITE("attention") {
  TEST_CASE("fused equals loops and its derivatives finite differences, for every mask, head grouping and layout") {
    for (const Setting& s : settings) {
      const Tensor q = leaf({s.batch, s.heads, s.queries, s.width}, 1),
                   k = leaf({s.batch, s.kv_heads, s.keys, s.width}, 2);
      const Tensor v = leaf({s.batch, s.kv_heads, s.keys, s.values}, 3);
      const Tensor masks[] = {{},
                              coins({1, 1, s.queries, s.keys}, 4),
                              coins({s.batch, 1, s.queries, s.keys}, 5),
                              coins({1, s.heads, s.queries, s.keys}, 6),
                              coins({s.batch, s.heads, s.queries, s.keys}, 7),
                              coins({s.batch, 1, 1, s.keys}, 8)};
      const AttentionOptions forms[] = {{},
                                        {.causal = true, .scale = 0.7},
                                        {.causal = true, .window = 2},
                                        {.scale = 2, .soft_cap = 0.5},
                                        {.causal = true, .scale = 0.7, .window = 3, .soft_cap = 1.5}};
      for (const Tensor& mask : masks)
        for (AttentionOptions options : forms) {
          options.mask = mask;
          CAPTURE(s.queries);
          CAPTURE(s.keys);
          const auto f = [&](const Tensor& a, const Tensor& b, const Tensor& c) {
            return scaled_dot_product_attention(a, b, c, options);
          };
          const Tensor wanted = from(reference(q, k, v, options), {s.batch, s.heads, s.queries, s.values});
          CHECK(difference(f(q, k, v).detach(), wanted) < 1e-13);
          CHECK(difference(f(reversed_strides(q), reversed_strides(k), reversed_strides(v)).detach(), wanted) < 1e-13);
          const auto fused = gradients(f, {q, k, v}), plain = gradients(f, {q, k, v}, true);
          for (size_t i = 0; i < 3; ++i) CHECK(difference(fused[i], plain[i].detach()) < 1e-10);
          if (options.window > 0 && mask.defined()) continue;  // often one key is left, and the gradient of q is 0
          check_derivatives(f, {q, k, v});
        }
    }
  }

  TEST_CASE("heads that are views of (B, T, H, Dh) are read in place, and the result is one again") {
    const auto heads = [](const Tensor& x) { return transpose(reshape(x, {2, 5, 3, 4}), 1, 2); };
    const Tensor x = leaf({2, 5, 12}, 1);
    const auto fused = [&](const Tensor& t) {
      return scaled_dot_product_attention(heads(t), heads(t * 2), heads(t + 1), {.causal = true});
    };
    const Tensor y = fused(x);
    CHECK(transpose(y, 1, 2).is_contiguous());
    CHECK(reshape(transpose(y, 1, 2), {2, 5, 12}).shares_storage(y));
    const auto copied = [&](const Tensor& t) {
      return scaled_dot_product_attention(contiguous(heads(t)), contiguous(heads(t * 2)), contiguous(heads(t + 1)),
                                          {.causal = true});
    };
    CHECK(difference(y.detach(), copied(x).detach()) < 1e-14);
    CHECK(difference(gradients(fused, {x})[0], gradients(copied, {x})[0]) < 1e-12);
    check_derivatives(fused, {x});
  }

  TEST_CASE("a row that may attend nothing is 0 with gradient 0, in every dtype") {
    for (const DType dtype : {DType::f64, DType::f32, DType::bf16}) {
      CAPTURE(name_of(dtype));
      const double tolerance = dtype == DType::f64 ? 1e-8 : dtype == DType::f32 ? 1e-6 : 0.02;
      const Tensor q = tensor({{1, 0}, {0, 1}}, dtype).requires_grad_(),
                   k = tensor({{1, 2}, {3, 4}}, dtype).requires_grad_();
      const Tensor v = tensor({{1, 2}, {3, 4}}, dtype).requires_grad_(),
                   mask = from(std::vector<int64_t>{0, 0, 1, 1}, {2, 2}) > 0;
      const Tensor wanted[] = {tensor({{0, 0}, {0.88995084, 0.88995084}}, dtype),
                               tensor({{0, -0.44497542}, {0, 0.44497542}}, dtype),
                               tensor({{0.19557032, 0.19557032}, {0.80442968, 0.80442968}}, dtype)};
      for (const bool recording : {false, true}) {
        const Tensor y = scaled_dot_product_attention(q, k, v, {.mask = mask});
        CHECK(difference(y.detach(), tensor({{0, 0}, {2.60885937, 3.60885937}}, dtype)) < tolerance);
        const auto g = grad({sum(y)}, {q, k, v}, {.create_graph = recording});
        for (size_t i = 0; i < 3; ++i) CHECK(difference(g[i].detach(), wanted[i]) < tolerance);
      }
    }
  }

  TEST_CASE("ranks 2 and 3 are one head; a mask of rank 3 is one per batch row") {
    const Tensor q = leaf({2, 3, 4}, 1), k = leaf({2, 5, 4}, 2), v = leaf({2, 5, 4}, 3), mask = coins({2, 3, 5}, 4);
    const Tensor wanted = squeeze(
        scaled_dot_product_attention(unsqueeze(q, 1), unsqueeze(k, 1), unsqueeze(v, 1), {.mask = unsqueeze(mask, 1)}),
        1);
    CHECK(difference(scaled_dot_product_attention(q, k, v, {.mask = mask}).detach(), wanted.detach()) == 0);
    CHECK(difference(scaled_dot_product_attention(select(q, 0, 1), select(k, 0, 1), select(v, 0, 1),
                                                  {.mask = select(mask, 0, 1)})
                         .detach(),
                     select(wanted, 0, 1).detach()) == 0);
    // B = H: the mask must land on the batch, not on the heads.
    const Tensor q4 = uniform({2, 2, 3, 4}, 5), k4 = uniform({2, 2, 5, 4}, 6);
    CHECK(difference(scaled_dot_product_attention(q4, k4, k4, {.mask = mask}),
                     scaled_dot_product_attention(q4, k4, k4, {.mask = unsqueeze(mask, 1)})) == 0);
  }

  TEST_CASE("no key at all gives zeros; a mask overwritten after the call is noticed") {
    CHECK(difference(scaled_dot_product_attention(ones({1, 1, 2, 4}), zeros({1, 1, 0, 4}), zeros({1, 1, 0, 3})),
                     zeros({1, 1, 2, 3})) == 0);
    const Tensor q = leaf({3, 4}, 1), mask = clone(coins({3, 3}, 2)),
                 y = scaled_dot_product_attention(q, q, q, {.mask = mask});
    mask.fill_(1);
    CHECK(message<AutogradError>([&] {
            sum(y).backward();
          }).starts_with("scaled_dot_product_attention: a tensor saved for backward"));
  }

  TEST_CASE("a window as long as the keys, or longer, hides none; a window of 1 returns the values") {
    const Tensor q = leaf({1, 2, 5, 4}, 1), k = leaf({1, 2, 5, 4}, 2), v = leaf({1, 2, 5, 4}, 3);
    const auto windowed = [&](int64_t window) {
      return scaled_dot_product_attention(q, k, v, {.causal = true, .window = window}).detach();
    };
    for (const int64_t window : {int64_t{5}, int64_t{6}, INT64_MAX})
      CHECK(difference(windowed(window), windowed(0)) == 0);
    CHECK(difference(windowed(4), windowed(0)) > 0.01);
    CHECK(difference(windowed(1), v.detach()) < 1e-15);
  }

  TEST_CASE("a soft cap bounds scores before the mask: the future stays unseen, a large cap changes nothing") {
    const Tensor q = leaf({3, 4}, 1), k = leaf({3, 4}, 2), v = leaf({3, 4}, 3);
    const auto capped = [&](const Tensor& values, double cap) {
      return scaled_dot_product_attention(q, k, values, {.causal = true, .soft_cap = cap}).detach();
    };
    const Tensor later = clone(v.detach());
    select(later, 0, 2).fill_(1e6);
    CHECK(difference(select(capped(later, 0.1), 0, 1), select(capped(v, 0.1), 0, 1)) == 0);
    CHECK(difference(capped(v, 1e6), capped(v, 0)) < 1e-11);
    // Equal scores where all are squeezed to nothing: the mean of what is seen.
    CHECK(difference(select(capped(v, 1e-9), 0, 2), mean(v.detach(), {0})) < 1e-8);
  }

  TEST_CASE("dropout of probabilities: kept ones grow, the mean stays, masks and dtypes as without") {
    const Tensor q = zeros({1, 1, 1, 2}), k = zeros({1, 1, 20000, 2}), v = ones({1, 1, 20000, 1});
    manual_seed(5);
    CHECK(scaled_dot_product_attention(q, k, v, {.dropout = 0.3}).item() == doctest::Approx(1).epsilon(0.02));
    CHECK(scaled_dot_product_attention(q, k, v, {.dropout = 1}).item() == 0);
    const Tensor x = leaf({4, 3}, 1, DType::bf16);
    manual_seed(5);
    const Tensor y = scaled_dot_product_attention(x, x, x, {.causal = true, .dropout = 0.5});
    CHECK(y.dtype() == DType::bf16);
    manual_seed(5);
    const Tensor again = scaled_dot_product_attention(x, x, x, {.causal = true, .dropout = 0.5});
    CHECK(difference(y.detach(), again.detach()) == 0);
    const Tensor first = select(y.detach(), 0, 0), seen = select(x.detach(), 0, 0);  // sees itself alone, kept or not
    CHECK((difference(first, zeros({3}, DType::bf16)) == 0 || difference(first, seen * 2) == 0));
  }

  TEST_CASE("errors") {
    const auto f32 = [](const Shape& shape) { return zeros(shape); };
    const auto attend = [](const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& mask = {}) {
      return message<Error>([&] { scaled_dot_product_attention(q, k, v, {.mask = mask}); });
    };
    const Tensor q = f32({2, 4, 3, 8}), k = f32({2, 2, 5, 8});
    CHECK(attend(q, f32({2, 3, 5, 8}), f32({2, 3, 5, 8})) ==
          "scaled_dot_product_attention: the heads of k (dim 1) must divide those of q: q is [2, 4, 3, 8] f32, k is "
          "[2, 3, 5, 8] f32, v is "
          "[2, 3, 5, 8] f32");
    CHECK(attend(q, f32({2, 2, 5, 6}), k)
              .starts_with("scaled_dot_product_attention: q and k differ in their last dim: q is [2, 4, 3, 8] f32"));
    CHECK(
        attend(q, k, f32({2, 2, 4, 8})).starts_with("scaled_dot_product_attention: k and v differ in length (dim -2)"));
    CHECK(attend(q, f32({1, 2, 5, 8}), k).starts_with("scaled_dot_product_attention: batch sizes (dim 0) differ"));
    CHECK(attend(q, k, f32({2, 1, 5, 8})).starts_with("scaled_dot_product_attention: k and v differ in heads (dim 1)"));
    CHECK(attend(q, f32({5, 8}), f32({5, 8})).starts_with("scaled_dot_product_attention: ranks must be equal"));
    CHECK(attend(q, zeros({2, 2, 5, 8}, DType::f64), k)
              .starts_with("scaled_dot_product_attention: dtypes differ: q is [2, 4, 3, 8] f32"));
    CHECK(attend(q, k, k, f32({3, 5})) ==
          "scaled_dot_product_attention: mask is [3, 5] f32; it must be bool, true where a query may attend");
    CHECK(attend(q, k, k, coins({4, 3, 5}, 1)) ==
          "scaled_dot_product_attention: mask is [4, 3, 5] bool, scores are [2, 4, 3, 5]; it must be (Tq, Tk), (B, Tq, "
          "Tk) or (B or 1, H or 1, "
          "Tq, Tk)");
  }
}
