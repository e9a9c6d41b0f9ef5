// Faults that users of comparable frameworks reported, each as a small input and the right answer.
// Not here: those that concern a policy (test_policies.cpp) or one part alone (sampler, trainer, corpus, …).
// Next: test_golden_ops.cpp.
#include "../autograd/parallel.h"
#include "op_checks.h"

using namespace tapestry;
using namespace tapestry::testing;

namespace {

using V = std::vector<double>;
V list(const Tensor& x) { return x.to_vector<double>(); }

Tensor plain_softmax(const Tensor& x) {
  const Tensor e = exp(x - amax(x, {-1}, true));
  return e / sum(e, {-1}, true);
}
Tensor plain_rope(const Tensor& x) {  // adjacent pairs, positions 0 … T−1
  const RopeTable table = rope_table(x.size(-2), x.size(-1), 10000.0, x.dtype());
  const Tensor a = slice(x, -1, 0, {}, 2), b = slice(x, -1, 1, {}, 2);
  return reshape(stack({a * table.cos - b * table.sin, a * table.sin + b * table.cos}, -1), x.shape());
}
Tensor plain_attention(const Tensor& q, const Tensor& k, const Tensor& v) {
  const Tensor scores = matmul(q, mT(k)) / std::sqrt(static_cast<double>(q.size(-1)));
  const Tensor kept = to(tril(ones({q.size(-2), k.size(-2)})), DType::boolean);
  return matmul(plain_softmax(where(kept, scores, -INFINITY)), v);
}
const Tensor targets = from(std::vector<int64_t>{2, 0, 1});

/// A fused op of two or three (3, 4) inputs and its definition.
struct Fused {
  const char* name;
  TensorFunction fused, plain;
};
const Fused fused_ops[] = {
    {"softmax", [](const Tensor& x, const Tensor& w) { return softmax(x * w, -1); },
     [](const Tensor& x, const Tensor& w) { return plain_softmax(x * w); }},
    {"log_softmax", [](const Tensor& x, const Tensor& w) { return log_softmax(x * w, -1); },
     [](const Tensor& x, const Tensor& w) { return log(plain_softmax(x * w)); }},
    {"rms_norm", [](const Tensor& x, const Tensor& w) { return rms_norm(x, sum(w, {0})); },
     [](const Tensor& x, const Tensor& w) { return x * rsqrt(mean(x * x, {-1}, true) + 1e-5) * sum(w, {0}); }},
    {"layer_norm", [](const Tensor& x, const Tensor& w) { return layer_norm(x, sum(w, {0}), select(w, 0, 1)); },
     [](const Tensor& x, const Tensor& w) {
       const Tensor centred = x - mean(x, {-1}, true);
       return centred * rsqrt(mean(centred * centred, {-1}, true) + 1e-5) * sum(w, {0}) + select(w, 0, 1);
     }},
    {"linear", [](const Tensor& x, const Tensor& w) { return linear(x, w, select(w, 1, 0)); },
     [](const Tensor& x, const Tensor& w) { return matmul(x, mT(w)) + select(w, 1, 0); }},
    {"rope", [](const Tensor& x, const Tensor& w) { return rope(x * w, rope_table(3, 4, 10000.0, DType::f64)); },
     [](const Tensor& x, const Tensor& w) { return plain_rope(x * w); }},
    {"attention",
     [](const Tensor& x, const Tensor& w) { return scaled_dot_product_attention(x, w, x * w, {.causal = true}); },
     [](const Tensor& x, const Tensor& w) { return plain_attention(x, w, x * w); }},
    {"cross_entropy", [](const Tensor& x, const Tensor& w) { return cross_entropy(x * w, targets); },
     [](const Tensor& x, const Tensor& w) {
       return -mean(gather(log(plain_softmax(x * w)), 1, unsqueeze(targets, 1)));
     }},
    {"swiglu", [](const Tensor& x, const Tensor& w) { return swiglu(x, w); },
     [](const Tensor& x, const Tensor& w) { return x * sigmoid(x) * w; }},
};

}  // namespace

TEST_SUITE("cases") {
  TEST_CASE("repeated indices add up in every op that scatters, and so do their gradients") {
    const Tensor at = tensor<int64_t>({0, 0}), weights = tensor<double>({5, 7, 9});
    CHECK(list(index_add(zeros({3}), 0, at, ones({2}))) == V{2, 0, 0});
    CHECK(list(scatter_add(zeros({3}), 0, at, ones({2}))) == V{2, 0, 0});
    for (const auto scatter : {index_add, scatter_add}) {
      const Tensor base = zeros({3}, DType::f64).requires_grad_(), value = scalar(1, DType::f64).requires_grad_();
      sum(scatter(base, 0, at, expand(value, {2})) * weights).backward();
      CHECK(list(base.grad()) == V{5, 7, 9});
      CHECK(value.grad().item() == 10);
    }
    CHECK(list(index_put(zeros({3}), {at}, scalar(1), true)) == V{2, 0, 0});
    const Tensor base = zeros({3}, DType::f64).requires_grad_(), value = scalar(1, DType::f64).requires_grad_();
    sum(index_put(base, {at}, value, true) * weights).backward();
    CHECK(list(base.grad()) == V{5, 7, 9});
    CHECK(value.grad().item() == 10);
    const Tensor table = leaf({3, 1}, 1), x = leaf({3}, 1), twice = tensor<int64_t>({0, 0, 2});
    sum(embedding(table, twice) * tensor<double>({{10}, {100}, {1000}})).backward();
    CHECK(list(table.grad()) == V{110, 0, 1000});
    sum(index(x, {twice}) * tensor<double>({10, 100, 1000})).backward();
    CHECK(list(x.grad()) == V{110, 0, 1000});
  }

  TEST_CASE("a product's gradient does not divide by its factors: along a dim and in the second order, too") {
    const auto slope = [](const Tensor& values, const Dims& dims) {
      const Tensor x = values.detach().requires_grad_();
      sum(prod(x, dims)).backward();
      return list(x.grad());
    };
    CHECK(slope(tensor<double>({0, 2, 3}), {}) == V{6, 0, 0});
    CHECK(slope(tensor<double>({0, 0, 3}), {}) == V{0, 0, 0});
    CHECK(slope(tensor<double>({4, 0}), {}) == V{0, 4});
    CHECK(slope(tensor<double>({{0, 2, 3}, {0, 0, 3}}), {1}) == V{6, 0, 0, 0, 0, 0});
    CHECK(slope(tensor<double>({{0, 0}, {2, 0}, {3, 3}}), {0}) == V{6, 0, 0, 0, 0, 0});
    const Tensor x = tensor<double>({0, 2, 3}).requires_grad_();
    const Tensor first = grad({prod(x)}, {x}, {.create_graph = true})[0];
    CHECK(list(grad({select(first, 0, 0)}, {x})[0]) == V{0, 3, 2});
  }

  TEST_CASE("ten thousand rows into a hundred: the same bits for every number of threads, fifty times") {
    manual_seed(5);
    const Tensor at = randint(0, 100, {10000}), upstream = randn({10000, 3}), table = zeros({100, 3}).requires_grad_();
    const auto gradient = [&] {
      auto all = grad({embedding(table, at)}, {table}, {.grad_outputs = {upstream}})[0].to_vector();
      for (const bool accumulate : {false, true})
        for (const float v : index_put(table, {at}, upstream, accumulate).to_vector()) all.push_back(v);
      return all;
    };
    const int before = num_threads();
    const auto first = gradient();
    for (const int threads : {1, 2, 4}) {
      set_num_threads(threads);
      for (int i = 0; i < 50; ++i) REQUIRE(gradient() == first);
    }
    set_num_threads(before);
  }

  TEST_CASE("a write to a recorded tensor throws: at once while recording, else at backward or at the next op") {
    const Tensor a = tensor<double>({1, 2, 3}).requires_grad_();
    const Tensor b = sigmoid(a), loss = sum(b);
    CHECK_THROWS_AS(select(b, 0, 1).fill_(2), AutogradError);
    {
      const NoGrad quiet;
      select(b, 0, 1).fill_(2);
    }
    std::string error = message<AutogradError>([&] { loss.backward(); });
    CHECK_MESSAGE(error.starts_with("sigmoid: a tensor saved for backward (shape [3]) was overwritten by fill_"),
                  error);

    // Nothing saved c, but its value has another history than the graph: no gradient of it would be right.
    const Tensor c = 1.0 / (exp(-a) + 1.0);
    {
      const NoGrad quiet;
      select(c, 0, 1).fill_(2);
    }
    error = message<AutogradError>([&] { sum(c); });
    CHECK_MESSAGE(error.starts_with("sum: input 0 (shape [3], result of rdiv_scalar) was overwritten by fill_"), error);
  }

  TEST_CASE("a fused op in the middle of a graph passes on the gradients of its definition, on views too") {
    for (const Fused& op : fused_ops) {
      CAPTURE(op.name);
      const Tensor x = leaf({3, 4}, 1), w = leaf({3, 4}, 2);
      for (const auto& [u, v] : {std::pair{x, w}, std::pair{reversed_strides(x), reversed_strides(w)}}) {
        const auto fused = gradients(op.fused, {u, v}), plain = gradients(op.plain, {u, v});
        for (const size_t i : {0, 1}) {
          CHECK(difference(fused[i], plain[i]) < 1e-10);
          CHECK(max(abs(fused[i])).item() > 1e-3);
        }
      }
    }
  }

  TEST_CASE("rotary angles of a bf16 model are those of f64, far out too") {
    const RopeTable exact = rope_table(16384, 8, 10000.0, DType::f64), narrow = rope_table(16384, 8);
    CHECK(difference(to(narrow.cos, DType::f64), exact.cos) < 1e-7);
    CHECK(difference(to(narrow.sin, DType::f64), exact.sin) < 1e-7);
    const Tensor positions = from(std::vector<int64_t>{256, 257, 15962});
    const Tensor x = cat({ones({3, 4}), zeros({3, 4})}, -1);  // halves (1, 0): the result is (cos, sin)
    const Tensor y = rope(to(x, DType::bf16), narrow, positions, RopeLayout::half);
    const Tensor want = cat({index_select(exact.cos, 0, positions), index_select(exact.sin, 0, positions)}, -1);
    CHECK(difference(to(y, DType::f64), want) <= 0x1p-8);
    CHECK(std::abs(y.to_vector()[16] - -0.908015901F) <= 0x1p-8F);
  }

  TEST_CASE("every use of a tensor adds to its gradient: a value repeated in two dims and used again") {
    const Tensor x = tensor<double>({{1, 2}}).requires_grad_();
    const Tensor larger = reshape(expand(reshape(x, {1, 1, 2, 1}), {1, 2, 2, 2}), {2, 4});
    CHECK(list(larger) == V{1, 1, 2, 2, 1, 1, 2, 2});
    (sum(larger) + 10.0 * sum(x)).backward();
    CHECK(list(x.grad()) == V{14, 14});
  }

  TEST_CASE("a tensor outlives the vector it was made from, in its dtype") {
    Tensor x;
    {
      V values(9);
      for (size_t i = 0; i < 9; ++i) values[i] = 1.1 * static_cast<double>(i);
      x = from(values);
      values.assign(9, -1);
    }
    CHECK(x.dtype() == DType::f64);
    for (size_t i = 0; i < 9; ++i) CHECK(list(x)[i] == 1.1 * static_cast<double>(i));
  }

  TEST_CASE("query heads share keys and values by h / (H / Hkv), in order") {
    struct Row {
      int64_t heads, kv_heads;
      V kv_of_head;
    };
    for (const Row& row : {Row{8, 2, {0, 0, 0, 0, 1, 1, 1, 1}}, Row{6, 3, {0, 0, 1, 1, 2, 2}}}) {
      const Tensor q = ones({1, row.heads, 1, 2}),
                   v = reshape(arange(row.kv_heads, DType::f32), {1, row.kv_heads, 1, 1});
      CHECK(list(scaled_dot_product_attention(q, ones({1, row.kv_heads, 1, 2}), v)) == row.kv_of_head);
    }
  }
}
