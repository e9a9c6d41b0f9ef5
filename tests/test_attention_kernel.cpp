// The attention kernel against loops in double: causal offsets, masks, grouped heads, strides, rows that see nothing, every thread count.
// Not here: the op and its broadcasting (the op table). Next: test_elementwise_kernels.cpp.
#include "../ops/kernels/attention.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>

#include "kernel_reference.h"

using namespace tapestry;
using namespace tapestry::kernels;
using namespace tapestry::testing;

namespace {

using Doubles = std::vector<double>;

struct Case {
  AttentionSize size;
  bool masked;
};

constexpr Case cases[] = {
    //  B  H  KV  Tq   Tk   D   Dv  scale  causal (window, cap)  masked
    {{1, 1, 1, 1, 1, 1, 1, 1.0, false}, false},
    {{2, 3, 3, 5, 7, 4, 4, 0.5, false}, false},
    {{2, 3, 3, 5, 7, 4, 4, 0.5, true}, false},
    {{1, 2, 2, 7, 5, 3, 6, 0.5, true}, false},  // the first two queries see nothing
    {{1, 4, 2, 70, 70, 8, 8, 0.35, true}, false},
    {{2, 4, 1, 33, 65, 16, 5, 0.25, true}, true},
    {{1, 6, 3, 130, 200, 17, 17, 0.25, false}, true},
    {{1, 2, 1, 1, 300, 64, 64, 0.125, true}, false},
    {{1, 1, 1, 0, 5, 4, 4, 0.5, true}, false},
    {{1, 2, 2, 3, 0, 4, 4, 0.5, false}, false},
    {{1, 2, 2, 200, 200, 32, 32, 0.177, true}, true},
    {{2, 3, 3, 5, 7, 4, 4, 0.5, true, 1}, false},
    {{1, 2, 2, 7, 5, 3, 6, 0.5, true, 2}, true},
    {{1, 4, 2, 150, 150, 8, 8, 0.35, true, 30}, false},
    {{2, 4, 1, 33, 165, 16, 5, 0.25, true, 70}, true},
    {{1, 2, 2, 5, 7, 4, 4, 0.5, false, 0, 0.7}, false},
    {{1, 6, 3, 130, 200, 17, 17, 0.25, true, 0, 2.0}, true},
    {{1, 4, 2, 200, 130, 8, 8, 0.35, true, 64, 1.5}, true},
};

// Where a tensor of a case lives: (B, T, H, width + 1), so that heads interleave and rows are padded.
HeadRows<double> layout(int64_t heads, int64_t len, int64_t width) {
  return {nullptr, len * heads * (width + 1), width + 1, heads * (width + 1)};
}

template <class T, class U>
HeadRows<T> at(T* data, HeadRows<U> l) {
  return {data, l.batch, l.head, l.row};
}

struct Reference {
  Doubles o, lse, dq, dk, dv;
};

Reference reference(const AttentionSize& s, const Doubles& q, const Doubles& k, const Doubles& v, const Doubles& g,
                    const bool* mask) {
  const auto lq = layout(s.heads, s.q_len, s.head_dim), lk = layout(s.kv_heads, s.kv_len, s.head_dim);
  const auto lv = layout(s.kv_heads, s.kv_len, s.value_dim), lo = layout(s.heads, s.q_len, s.value_dim);
  Reference r{Doubles(g.size()), {}, Doubles(q.size()), Doubles(k.size()), Doubles(v.size())};
  const auto index = [](HeadRows<double> l, int64_t b, int64_t h, int64_t t, int64_t c) {
    return static_cast<size_t>(b * l.batch + h * l.head + t * l.row + c);
  };
  for (int64_t b = 0; b < s.batch; ++b)
    for (int64_t h = 0; h < s.heads; ++h)
      for (int64_t i = 0; i < s.q_len; ++i) {
        const int64_t kv = h / (s.heads / s.kv_heads);
        Doubles p(static_cast<size_t>(s.kv_len)), dp(static_cast<size_t>(s.kv_len)), scores(p.size());
        double most = -INFINITY, sum = 0, dot = 0;
        for (int64_t j = 0; j < s.kv_len; ++j) {
          double score = 0;
          for (int64_t c = 0; c < s.head_dim; ++c) score += q[index(lq, b, h, i, c)] * k[index(lk, b, kv, j, c)];
          const int64_t last = i + s.kv_len - s.q_len;
          const bool sees =
              (!s.causal || (j <= last && (s.window == 0 || j > last - s.window))) && (!mask || mask[i * s.kv_len + j]);
          score *= s.scale;
          if (s.soft_cap > 0) score = s.soft_cap * std::tanh(score / s.soft_cap);
          scores[static_cast<size_t>(j)] = score;
          p[static_cast<size_t>(j)] = sees ? score : -INFINITY;
          most = std::max(most, p[static_cast<size_t>(j)]);
        }
        if (most == -INFINITY) {
          r.lse.push_back(-INFINITY);
          continue;
        }
        for (double& x : p) sum += x = std::exp(x - most);
        r.lse.push_back(most + std::log(sum));
        for (int64_t j = 0; j < s.kv_len; ++j) {
          const auto n = static_cast<size_t>(j);
          p[n] /= sum;
          for (int64_t c = 0; c < s.value_dim; ++c) {
            r.o[index(lo, b, h, i, c)] += p[n] * v[index(lv, b, kv, j, c)];
            r.dv[index(lv, b, kv, j, c)] += p[n] * g[index(lo, b, h, i, c)];
            dp[n] += g[index(lo, b, h, i, c)] * v[index(lv, b, kv, j, c)];
          }
          dot += p[n] * dp[n];
        }
        for (int64_t j = 0; j < s.kv_len; ++j) {
          double ds = s.scale * p[static_cast<size_t>(j)] * (dp[static_cast<size_t>(j)] - dot);
          if (const double c = s.soft_cap; c > 0) ds *= 1 - std::pow(scores[static_cast<size_t>(j)] / c, 2);
          for (int64_t c = 0; c < s.head_dim; ++c) {
            r.dq[index(lq, b, h, i, c)] += ds * k[index(lk, b, kv, j, c)];
            r.dk[index(lk, b, kv, j, c)] += ds * q[index(lq, b, h, i, c)];
          }
        }
      }
  return r;
}

// Values in the layout, with zeros between the rows as the reference and the kernels leave them.
template <class T>
std::vector<T> heads(const AttentionSize& s, int64_t n_heads, int64_t len, int64_t width, uint64_t seed) {
  auto x = values<T>(s.batch * len * n_heads * (width + 1), seed);
  for (size_t i = static_cast<size_t>(width); i < x.size(); i += static_cast<size_t>(width + 1)) x[i] = T(0.0F);
  return x;
}

template <class T>
Doubles widened(const std::vector<T>& x) {
  Doubles out;
  for (const T v : x) out.push_back(to_double(v));
  return out;
}

// One mask for all batches and heads; row 1 of it sees nothing.
std::unique_ptr<bool[]> make_mask(const AttentionSize& s) {
  auto mask = std::make_unique<bool[]>(static_cast<size_t>(s.q_len * s.kv_len));
  const Ticket ticket{5, 5};
  for (int64_t i = 0; i < s.q_len * s.kv_len; ++i)
    mask[static_cast<size_t>(i)] = i / s.kv_len != 1 && ticket.word(static_cast<uint64_t>(i)) % 3 != 0;
  return mask;
}

template <class T>
struct Results {
  std::vector<T> o, dq, dk, dv;
  std::vector<compute_t<T>> lse;
};

template <class T>
Results<T> run(const AttentionSize& s, const std::vector<T>& q, const std::vector<T>& k, const std::vector<T>& v,
               const std::vector<T>& g, const AttentionMask& mask) {
  const auto lq = layout(s.heads, s.q_len, s.head_dim), lk = layout(s.kv_heads, s.kv_len, s.head_dim);
  const auto lv = layout(s.kv_heads, s.kv_len, s.value_dim), lo = layout(s.heads, s.q_len, s.value_dim);
  Results<T> r{
      std::vector<T>(g.size()), std::vector<T>(q.size()), std::vector<T>(k.size()), std::vector<T>(v.size()), {}};
  r.lse.resize(static_cast<size_t>(s.batch * s.heads * s.q_len));
  attention_forward<T>(s, at(q.data(), lq), at(k.data(), lk), at(v.data(), lv), mask, at(r.o.data(), lo), r.lse.data());
  attention_backward<T>(s, at(q.data(), lq), at(k.data(), lk), at(v.data(), lv), mask, r.lse.data(), at(g.data(), lo),
                        at(r.dq.data(), lq), at(r.dk.data(), lk), at(r.dv.data(), lv));
  return r;
}

template <class T>
void check(const Case& c) {
  const AttentionSize& s = c.size;
  CAPTURE(s.q_len);
  CAPTURE(s.kv_len);
  CAPTURE(s.heads);
  const auto q = heads<T>(s, s.heads, s.q_len, s.head_dim, 1), k = heads<T>(s, s.kv_heads, s.kv_len, s.head_dim, 2);
  const auto v = heads<T>(s, s.kv_heads, s.kv_len, s.value_dim, 3), g = heads<T>(s, s.heads, s.q_len, s.value_dim, 4);
  const auto mask = c.masked ? make_mask(s) : nullptr;
  const auto r = run(s, q, k, v, g, {mask.get(), 0, 0, s.kv_len, 1});
  const auto expected = reference(s, widened(q), widened(k), widened(v), widened(g), mask.get());
  const double tol = epsilon<T>() * 16;
  CHECK(max_error(r.lse, expected.lse) <= epsilon<compute_t<T>>() * 16);
  CHECK(max_error(r.o, expected.o) <= tol);
  CHECK(max_error(r.dq, expected.dq) <= tol);
  CHECK(max_error(r.dk, expected.dk) <= tol);
  CHECK(max_error(r.dv, expected.dv) <= tol);
}

}  // namespace

TEST_SUITE("attention_kernel") {
  TEST_CASE("forward and backward agree with loops in double") {
    for (const Case& c : cases) {
      check<double>(c);
      check<float>(c);
      check<bf16>(c);
    }
  }

  TEST_CASE("keys and values that no query of a block sees are never read") {
    const AttentionSize s{1, 2, 1, 64, 300, 8, 8, 0.35, true, 20};
    const auto q = heads<float>(s, 2, 64, 8, 1), g = heads<float>(s, 2, 64, 8, 4);
    auto k = heads<float>(s, 1, 300, 8, 2), v = heads<float>(s, 1, 300, 8, 3);
    const auto clean = run(s, q, k, v, g, {});
    const auto unseen = static_cast<ptrdiff_t>((300 - 64 + 1 - 20) * 9);
    std::fill(k.begin(), k.begin() + unseen, NAN);
    std::fill(v.begin(), v.begin() + unseen, NAN);
    const auto r = run(s, q, k, v, g, {});
    CHECK(same_bits(r.o, clean.o));
    CHECK(same_bits(r.dq, clean.dq));
    CHECK(same_bits(r.dk, clean.dk));
    CHECK(same_bits(r.dv, clean.dv));
    CHECK(std::all_of(r.dk.begin(), r.dk.begin() + unseen, [](float x) { return x == 0; }));
  }

  TEST_CASE("each gradient alone is the same as all together") {
    const AttentionSize s{2, 4, 2, 70, 90, 8, 8, 0.35, true, 40, 2.0};
    const auto q = heads<float>(s, 4, 70, 8, 1), k = heads<float>(s, 2, 90, 8, 2), v = heads<float>(s, 2, 90, 8, 3),
               g = heads<float>(s, 4, 70, 8, 4);
    const auto all = run(s, q, k, v, g, {});
    const auto lq = layout(4, 70, 8), lk = layout(2, 90, 8);
    std::vector<float> dq(q.size()), dk(k.size()), dv(v.size());
    const auto backward = [&](float* a, float* b, float* c) {
      attention_backward<float>(s, at(q.data(), lq), at(k.data(), lk), at(v.data(), lk), {}, all.lse.data(),
                                at(g.data(), lq), at(a, lq), at(b, lk), at(c, lk));
    };
    backward(dq.data(), nullptr, nullptr);
    backward(nullptr, dk.data(), nullptr);
    backward(nullptr, nullptr, dv.data());
    CHECK(same_bits(dq, all.dq));
    CHECK(same_bits(dk, all.dk));
    CHECK(same_bits(dv, all.dv));
  }

  TEST_CASE("inputs with strides BLAS cannot read: one key row and one query row repeated") {
    const AttentionSize s{1, 2, 2, 3, 4, 5, 5, 0.4, false};
    const auto q = values<double>(2 * 5, 1), k = values<double>(2 * 5, 2), v = values<double>(2 * 4 * 5, 3);
    std::vector<double> o(2 * 3 * 5), lse(6);
    attention_forward<double>(s, {q.data(), 0, 5, 0}, {k.data(), 0, 5, 0}, {v.data(), 0, 20, 5}, {},
                              {o.data(), 30, 15, 5}, lse.data());
    for (int64_t h = 0; h < 2; ++h)
      for (int64_t i = 0; i < 3; ++i)
        for (int64_t c = 0; c < 5; ++c) {  // equal scores: the mean of the values
          double mean = 0;
          for (int64_t j = 0; j < 4; ++j) mean += v[static_cast<size_t>(h * 20 + j * 5 + c)] / 4;
          CHECK(o[static_cast<size_t>(h * 15 + i * 5 + c)] == doctest::Approx(mean).epsilon(1e-14));
        }
  }

  TEST_CASE("large scores do not overflow, and a broadcast mask column hides a row") {
    const AttentionSize s{1, 1, 1, 2, 2, 1, 1, 1.0, false};
    const std::vector<float> q = {1e4F, 1e4F}, k = {1e4F, -1e4F}, v = {3, 5}, g = {1, 1};
    const bool may[] = {true, false};  // query 1 sees nothing
    std::vector<float> o(2), lse(2), dq(2), dk(2), dv(2);
    const HeadRows<const float> rows{nullptr, 2, 2, 1};
    const AttentionMask mask{may, 0, 0, 1, 0};
    attention_forward<float>(s, at(q.data(), rows), at(k.data(), rows), at(v.data(), rows), mask, at(o.data(), rows),
                             lse.data());
    attention_backward<float>(s, at(q.data(), rows), at(k.data(), rows), at(v.data(), rows), mask, lse.data(),
                              at(g.data(), rows), at(dq.data(), rows), at(dk.data(), rows), at(dv.data(), rows));
    CHECK(o == std::vector<float>{3, 0});
    CHECK(lse == std::vector<float>{1e8F, -INFINITY});
    CHECK(dq == std::vector<float>{0, 0});
    CHECK(dk == std::vector<float>{0, 0});
    CHECK(dv == std::vector<float>{1, 0});
  }

  TEST_CASE("the bits do not depend on the number of threads") {
    const AttentionSize s{3, 4, 2, 100, 150, 32, 32, 0.177, true, 90, 3.0};
    const auto q = heads<float>(s, 4, 100, 32, 1), k = heads<float>(s, 2, 150, 32, 2),
               v = heads<float>(s, 2, 150, 32, 3), g = heads<float>(s, 4, 100, 32, 4);
    CHECK(same_for_all_threads([&] {
      const auto r = run(s, q, k, v, g, {});
      auto all = r.o;
      for (const auto* part : {&r.dq, &r.dk, &r.dv, &r.lse}) all.insert(all.end(), part->begin(), part->end());
      return all;
    }));
  }
}
