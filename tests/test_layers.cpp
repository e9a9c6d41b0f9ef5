// What the layers compute: derivatives of every one against finite differences, attention and the gated networks
// against plain loops, decoding against the whole. Not here: values from elsewhere (test_golden_nn.cpp) and the ops
// themselves (test_op_table.cpp). Next: ../nn/attention.h.
#include <doctest/doctest.h>

#include <cmath>

#include "../autograd/error.h"
#include "../autograd/grad_mode.h"
#include "../autograd/tools/gradcheck.h"
#include "../nn/attention.h"
#include "../nn/containers.h"
#include "../nn/dropout.h"
#include "../nn/embedding.h"
#include "../nn/feed_forward.h"
#include "../nn/init.h"
#include "../nn/norm.h"
#include "../nn/visitor.h"
#include "../ops/ops.h"

using namespace tapestry;

namespace {

/// First and second derivatives of f(module, x) at x and at every parameter.
template <class M, class F>
void check_derivatives(M module, const Tensor& x, F f) {
  to(module, DType::f64);
  std::vector<Tensor> inputs;
  if (is_floating(x.dtype())) inputs.push_back(x.requires_grad_());
  for (const auto& [name, p] : named_parameters(module)) inputs.push_back(p);
  const auto call = [&](std::span<const Tensor> xs) {
    M bound = module;
    size_t at = is_floating(x.dtype()) ? 1 : 0;
    for_each_parameter(bound, [&](const std::string&, Parameter& p) { static_cast<Tensor&>(p) = xs[at++]; });
    return f(bound, is_floating(x.dtype()) ? xs[0] : x);
  };
  const GradcheckResult first = gradcheck(call, inputs);
  CHECK_MESSAGE(first.ok, first.message);
  const GradcheckResult second = gradgradcheck(call, inputs, GradcheckOptions{.full_limit = 256});
  CHECK_MESSAGE(second.ok, second.message);
}
template <class M>
void check_derivatives(const M& module, const Tensor& x) {
  check_derivatives(module, x, [](const M& m, const Tensor& t) { return m(t); });
}

Tensor random(const Shape& shape, DType dtype = DType::f64) { return randn(shape, dtype); }

/// Largest |a − b|.
double distance(const Tensor& a, const Tensor& b) {
  REQUIRE(a.shape() == b.shape());
  const std::vector<double> u = a.to_vector<double>(), v = b.to_vector<double>();
  double d = 0;
  for (size_t i = 0; i < u.size(); ++i) d = std::max(d, std::abs(u[i] - v[i]));
  return d;
}

/// A matrix (…, D) times a weight (out, D)ᵀ, by loops.
std::vector<double> project(const std::vector<double>& x, const Linear& l) {
  const std::vector<double> w = l.weight.to_vector<double>();
  const auto in = static_cast<size_t>(l.weight.size(1)), out = static_cast<size_t>(l.weight.size(0));
  std::vector<double> y(x.size() / in * out);
  for (size_t r = 0; r < x.size() / in; ++r)
    for (size_t o = 0; o < out; ++o) {
      double& sum = y[r * out + o];
      if (l.bias.defined()) sum = l.bias.to_vector<double>()[o];
      for (size_t i = 0; i < in; ++i) sum += x[r * in + i] * w[o * in + i];
    }
  return y;
}

/// Turns adjacent pairs of every head of (T, H·Dh) by position · 10000^(−2i/Dh).
void turn(std::vector<double>& x, size_t heads, size_t dh, const std::vector<int64_t>& positions) {
  for (size_t t = 0; t < positions.size(); ++t)
    for (size_t h = 0; h < heads; ++h)
      for (size_t i = 0; i < dh; i += 2) {
        const double angle =
            static_cast<double>(positions[t]) * std::pow(1e4, -static_cast<double>(i) / static_cast<double>(dh));
        double& a = x[(t * heads + h) * dh + i];
        double& b = x[(t * heads + h) * dh + i + 1];
        const double u = a * std::cos(angle) - b * std::sin(angle), v = a * std::sin(angle) + b * std::cos(angle);
        a = u, b = v;
      }
}

/// Causal attention of one sequence (T, D) as the formula says, by loops.
Tensor reference_attention(const MultiHeadAttention& m, const Tensor& x, const std::vector<int64_t>& positions) {
  const auto heads = static_cast<size_t>(m.options.n_heads), kv = static_cast<size_t>(m.options.n_kv_heads),
             dh = static_cast<size_t>(m.options.head_dim), len = positions.size();
  const std::vector<double> rows = x.to_vector<double>();
  std::vector<double> q = project(rows, *m.q_proj), k = project(rows, *m.k_proj), y(len * heads * dh);
  const std::vector<double> v = project(rows, *m.v_proj);
  turn(q, heads, dh, positions);
  turn(k, kv, dh, positions);
  for (size_t h = 0; h < heads; ++h)
    for (size_t t = 0; t < len; ++t) {
      const size_t g = h / (heads / kv);
      double total = 0;
      for (size_t s = 0; s <= t; ++s) {
        double score = 0;
        for (size_t i = 0; i < dh; ++i) score += q[(t * heads + h) * dh + i] * k[(s * kv + g) * dh + i];
        const double p = std::exp(score / std::sqrt(static_cast<double>(dh)));
        total += p;
        for (size_t i = 0; i < dh; ++i) y[(t * heads + h) * dh + i] += p * v[(s * kv + g) * dh + i];
      }
      for (size_t i = 0; i < dh; ++i) y[(t * heads + h) * dh + i] /= total;
    }
  return from(project(y, m.o_proj), {x.size(0), m.o_proj.weight.size(0)});
}

struct GrowingStore : KeyValueStore {
  Tensor keys, values;
  StoredKeys extend(const Tensor& k, const Tensor& v) override {
    keys = keys.defined() ? cat({keys, k}, 2) : k;
    values = values.defined() ? cat({values, v}, 2) : v;
    return {keys, values};
  }
};

}  // namespace

TEST_SUITE("layers") {
  TEST_CASE("derivatives of every layer agree with finite differences") {
    manual_seed(11);
    const Tensor x = random({2, 3, 4});
    check_derivatives(Linear(4, 3), x);
    check_derivatives(Linear(4, 3, LinearOptions{.bias = false}), random({4}));
    check_derivatives(Embedding(5, 3), tensor<int64_t>({{0, 4, 0}, {1, 1, 3}}));
    check_derivatives(Sequential(Linear(4, 3), LeakyReLU(), ELU(0.5), Softplus(), Softmax(-1)), x);
    check_derivatives(LayerNorm(4), x);
    check_derivatives(LayerNorm(4, LayerNormOptions{.bias = false}), x);
    check_derivatives(RMSNorm(4), x);
    check_derivatives(Sequential(Linear(4, 3), Tanh(), Sigmoid(), SiLU(), GELU(), ReLU(), Linear(3, 1)), x);
    for (const Activation a : {Activation::silu, Activation::sigmoid, Activation::gelu, Activation::tanh})
      check_derivatives(FeedForward(4, 3, FeedForwardOptions{.activation = a}), x);
    check_derivatives(
        FeedForward(4, 3,
                    FeedForwardOptions{
                        .activation = Activation::gelu_tanh, .gated = false, .up_bias = true, .down_bias = true}),
        x);
    check_derivatives(Dropout(0.4), x);
  }

  TEST_CASE("the padding row of an embedding starts as zeros and stays so") {
    const Embedding table(4, 2, EmbeddingOptions{.padding_idx = 1});
    const Tensor y = table(tensor<int64_t>({1, 3, 1}));
    CHECK(select(y, 0, 0).to_vector() == std::vector<float>{0, 0});
    sum(y).backward();
    CHECK(table.weight.grad().to_vector() == std::vector<float>{0, 0, 0, 0, 0, 0, 1, 1});
    CHECK_THROWS_WITH_AS(Embedding(4, 2, EmbeddingOptions{.padding_idx = 4}),
                         "Embedding: padding_idx 4 is no row of vocab_size 4", ValueError);
  }

  TEST_CASE("derivatives of attention agree with finite differences") {
    manual_seed(12);
    const RotaryEmbedding rope(2, 16);
    const MultiHeadAttention attention(4, MultiHeadAttentionOptions{.n_heads = 2, .n_kv_heads = 1});
    const Tensor positions = tensor<int64_t>({{3, 4, 5}, {0, 9, 2}}),
                 mask = tensor<bool>({{1, 0, 1}, {0, 0, 0}, {1, 1, 1}});
    check_derivatives(attention, random({2, 3, 4}), [&](const auto& m, const Tensor& t) {
      return m(t, AttentionArgs{.mask = mask, .causal = true, .rope = &rope, .positions = positions});
    });
    // Without rope the bias of the keys moves all scores of a query alike, and has no gradient to check.
    const Tensor context = random({1, 5, 4});
    check_derivatives(
        MultiHeadAttention(
            4,
            MultiHeadAttentionOptions{
                .n_heads = 3, .head_dim = 2, .q_bias = true, .k_bias = true, .v_bias = true, .o_bias = true}),
        random({1, 2, 4}),
        [&](const auto& m, const Tensor& t) { return m(t, AttentionArgs{.rope = &rope, .context = context}); });
  }

  TEST_CASE("attention is its formula: grouped heads, causal, rotated by position") {
    struct Row {
      int64_t n_heads, n_kv_heads, head_dim;
    };
    for (const Row& row : {Row{1, 1, 0}, Row{4, 0, 0}, Row{4, 2, 0}, Row{4, 1, 0}, Row{3, 3, 6}}) {
      CAPTURE(row.n_heads);
      manual_seed(5);
      MultiHeadAttention m(8, MultiHeadAttentionOptions{.n_heads = row.n_heads,
                                                        .n_kv_heads = row.n_kv_heads,
                                                        .head_dim = row.head_dim,
                                                        .q_bias = true,
                                                        .k_bias = true,
                                                        .v_bias = true,
                                                        .o_bias = true});
      init::normal_(m.v_proj->bias);
      to(m, DType::f64);
      const RotaryEmbedding rope(m.options.head_dim, 64);
      const Tensor x = random({2, 5, 8}), positions = tensor<int64_t>({{0, 1, 2, 3, 4}, {40, 7, 8, 9, 63}});
      const NoGrad guard;
      const Tensor y = m(x, AttentionArgs{.causal = true, .rope = &rope, .positions = positions});
      const std::vector<int64_t> at[] = {{0, 1, 2, 3, 4}, {40, 7, 8, 9, 63}};
      for (int64_t b : {0, 1}) {
        const Tensor one = select(x, 0, b);
        CHECK(distance(select(y, 0, b), reference_attention(m, one, at[b])) < 1e-12);
        CHECK(distance(m(one, AttentionArgs{.causal = true, .rope = &rope, .positions = select(positions, 0, b)}),
                       select(y, 0, b)) < 1e-12);
      }
      // Undefined positions count from 0, and a causal mask says the same as the option.
      CHECK(distance(m(select(x, 0, 0), AttentionArgs{.causal = true, .rope = &rope}), select(y, 0, 0)) < 1e-12);
      const Tensor mask = to(tril(ones({5, 5})), DType::boolean);
      CHECK(distance(m(x, AttentionArgs{.mask = mask, .rope = &rope, .positions = positions}), y) < 1e-12);
    }
  }

  TEST_CASE("decoding in pieces equals the whole") {
    manual_seed(6);
    MultiHeadAttention m(8, MultiHeadAttentionOptions{.n_heads = 4, .n_kv_heads = 2});
    to(m, DType::f64);
    const RotaryEmbedding rope(m.options.head_dim, 16);
    const NoGrad guard;
    const Tensor x = random({2, 7, 8}), whole = m(x, AttentionArgs{.causal = true, .rope = &rope});
    GrowingStore store;
    int64_t at = 0;
    for (const int64_t n : {3, 1, 2, 1}) {
      const Tensor positions = arange(7);
      const Tensor y = m(
          slice(x, 1, at, at + n),
          AttentionArgs{.causal = true, .rope = &rope, .positions = slice(positions, 0, at, at + n), .store = &store});
      CHECK(distance(y, slice(whole, 1, at, at + n)) < 1e-12);
      at += n;
    }
  }

  TEST_CASE("feed-forward networks are their formulas") {
    manual_seed(8);
    const Tensor x = random({3, 4}, DType::f32);
    FeedForward plain(
        4, 6, FeedForwardOptions{.activation = Activation::relu, .gated = false, .up_bias = true, .down_bias = true}),
        gated(4, 6);
    init::normal_(plain.up_proj->bias), init::normal_(plain.down_proj.bias);
    CHECK(distance(plain(x), linear(relu(linear(x, plain.up_proj->weight, plain.up_proj->bias)), plain.down_proj.weight,
                                    plain.down_proj.bias)) < 1e-6);
    const Tensor gate = linear(x, gated.gate_proj->weight), up = linear(x, gated.up_proj->weight);
    CHECK(distance(gated(x), linear(gate * sigmoid(gate) * up, gated.down_proj.weight)) < 1e-6);
    gated.activation = Activation::relu;
    CHECK(distance(gated(x), linear(relu(gate) * up, gated.down_proj.weight)) < 1e-6);
    std::vector<std::string> names;
    for (const auto& [name, p] : named_parameters(gated)) names.push_back(name);
    CHECK(names == std::vector<std::string>{"gate_proj.weight", "up_proj.weight", "down_proj.weight"});
    struct Row {
      int64_t d_model, multiple, width;
    };
    for (const Row& row :
         {Row{128, 64, 384}, Row{384, 64, 1024}, Row{512, 64, 1408}, Row{512, 1, 1366}, Row{24, 64, 64}, Row{3, 8, 8}})
      CHECK(gated_width(row.d_model, row.multiple) == row.width);
  }

  TEST_CASE("norms have the stated moments and gains") {
    const Tensor x = tensor<double>({{1, 2, 3, 6}, {-1, -1, 1, 1}});
    LayerNorm norm(4, LayerNormOptions{.eps = 0});
    RMSNorm rms(4, RMSNormOptions{.eps = 0});
    to(norm, DType::f64), to(rms, DType::f64);
    const double root = std::sqrt(3.5), square = std::sqrt(12.5);
    CHECK(distance(norm(x), tensor<double>({{-2 / root, -1 / root, 0, 3 / root}, {-1, -1, 1, 1}})) < 1e-12);
    CHECK(distance(rms(x), tensor<double>({{1 / square, 2 / square, 3 / square, 6 / square}, {-1, -1, 1, 1}})) < 1e-12);
    const Tensor before = rms(x);
    init::scale_(rms.weight, 3);
    CHECK(distance(rms(x), before * 3.0) < 1e-12);
    CHECK_THROWS_AS(RMSNorm(0), ValueError);
    CHECK_THROWS_AS(LayerNorm(4, LayerNormOptions{.eps = -1}), ValueError);
  }

  TEST_CASE("f32 parameters take bf16 activations and give bf16") {
    manual_seed(9);
    const RotaryEmbedding rope(4, 8);
    const MultiHeadAttention attention(8, MultiHeadAttentionOptions{.n_heads = 2});
    const FeedForward feed_forward(8, 12);
    const RMSNorm norm(8);
    const auto run = [&](const Tensor& t) {
      return feed_forward(norm(attention(t, AttentionArgs{.causal = true, .rope = &rope})));
    };
    const Tensor x = random({2, 3, 8}, DType::f32), half = to(x, DType::bf16);
    const Tensor y = run(half);
    CHECK(y.dtype() == DType::bf16);
    CHECK(distance(y, run(to(half, DType::f32))) < 0.03);
    sum(to(y, DType::f32)).backward();
    CHECK(attention.q_proj->weight.grad().dtype() == DType::f32);
    CHECK(norm.weight.grad().dtype() == DType::f32);
  }

  TEST_CASE("activations are found by name, and mistakes are named") {
    for (int i = 0; i <= static_cast<int>(Activation::softplus); ++i) {
      const auto a = static_cast<Activation>(i);
      CHECK(activation_named(name_of(a)) == a);
      CHECK(activate(a, tensor({0.5})).to_vector()[0] != 0);
    }
    CHECK(activate(Activation::relu_squared, tensor({3})).item() == 9);
    CHECK(activate(Activation::leaky_relu, tensor({-1})).item() == doctest::Approx(-0.01));
    CHECK_THROWS_WITH_AS(static_cast<void>(activation_named("swish")),
                         "activation: 'swish' is not known; take one of identity, relu, relu_squared, leaky_relu, "
                         "gelu, gelu_tanh, silu, tanh, sigmoid, softplus",
                         ValueError);
    CHECK_THROWS_WITH_AS(MultiHeadAttention(10, MultiHeadAttentionOptions{.n_heads = 4}),
                         "MultiHeadAttention: n_heads 4 does not divide d_model 10; choose another, or give head_dim",
                         ValueError);
    CHECK_THROWS_AS(MultiHeadAttention(8, MultiHeadAttentionOptions{.n_heads = 4, .n_kv_heads = 3}), ValueError);
    CHECK_THROWS_AS(MultiHeadAttention(8, MultiHeadAttentionOptions{.n_heads = 0}), ValueError);
    CHECK_THROWS_AS(RotaryEmbedding(3, 8), ValueError);
    CHECK_THROWS_AS(RotaryEmbedding(4, 0), ValueError);
    CHECK_THROWS_AS(static_cast<void>(gated_width(0)), ValueError);
    CHECK_THROWS_AS(static_cast<void>(MultiHeadAttention(4, {.n_heads = 2})(zeros({4}))), ShapeError);
  }

  TEST_CASE("dropout keeps its share and its mean, and another call draws another mask") {
    manual_seed(4);
    Dropout drop(0.1);
    const Tensor x = ones({100, 1000});
    const std::vector<float> y = drop(x).to_vector(), again = drop(x).to_vector();
    double kept = 0;
    bool exact = true;
    for (const float v : y) {
      exact = exact && (v == 0 || v == static_cast<float>(1 / 0.9));
      kept += v != 0 ? 1 : 0;
    }
    CHECK(exact);
    CHECK(std::abs(kept / 1e5 - 0.9) < 5 * std::sqrt(0.09 / 1e5));
    CHECK(y != again);
    drop.eval();
    CHECK(drop(x).is_same(x));
    CHECK(Dropout(0)(x).is_same(x));
  }
}
