// Decoding step by step: what the cache remembers, and what happens at the end of its memory.
// Not here: the choice of a token (test_sampler.cpp).
// Next: ../models/transformer/generate.h.
#include <doctest/doctest.h>

#include <cmath>

#include "../autograd/error.h"
#include "../autograd/grad_mode.h"
#include "../autograd/random.h"
#include "../models/transformer/generate.h"
#include "../nn/visitor.h"
#include "../ops/ops.h"

using namespace tapestry;

namespace {

constexpr int64_t vocab = 11, window = 12;

Transformer small_model(DType dtype) {
  manual_seed(3);
  Transformer model({.vocab_size = vocab,
                     .max_seq_len = window,
                     .n_layers = 2,
                     .n_heads = 4,
                     .n_kv_heads = 2,
                     .d_model = 16,
                     .d_ff = 24});
  to(model, dtype);
  return model;
}

std::vector<float> uncached(const Transformer& model, const std::vector<int32_t>& tokens) {
  const NoGrad no_grad;
  const std::vector<int64_t> ids(tokens.begin(), tokens.end());
  return select(select(model(from(ids, {1, static_cast<int64_t>(ids.size())})), 0, 0), 0, -1).to_vector<float>();
}

void check_close(const std::vector<float>& a, const std::vector<float>& b, double tolerance) {
  REQUIRE(a.size() == b.size());
  for (size_t i = 0; i < a.size(); ++i) CHECK(std::abs(a[i] - b[i]) <= tolerance);
}

}  // namespace

TEST_SUITE("kv_cache") {
  TEST_CASE("a cache gives the logits of the whole sequence, however it is cut") {
    const NoGrad no_grad;
    const Transformer model = small_model(DType::f64);
    const Tensor tokens = randint(0, vocab, {3, window});
    const Tensor whole = model(tokens);
    for (const std::vector<int64_t>& pieces : {std::vector<int64_t>(window, 1), {5, 1, 6}, {window}}) {
      KeyValueCache cache(model.config, {.rows = 3, .dtype = DType::f64});
      int64_t at = 0;
      for (const int64_t n : pieces) {
        const Tensor part = model(slice(tokens, 1, at, at + n), TransformerArgs{.cache = &cache});
        CHECK(max(abs(part - slice(whole, 1, at, at + n))).item() < 1e-12);
        at += n;
        CHECK(cache.size() == at);
      }
      CHECK_THROWS_AS((void)model(slice(tokens, 1, 0, 1), TransformerArgs{.cache = &cache}), ShapeError);
      cache.clear();
      CHECK(cache.size() == 0);
    }
  }

  TEST_CASE("a cache refuses to be recorded and other sizes") {
    const Transformer model = small_model(DType::f32);
    KeyValueCache cache(model.config);
    CHECK_THROWS_AS((void)model(randint(0, vocab, {1, 3}), TransformerArgs{.cache = &cache}), AutogradError);
    const NoGrad no_grad;
    CHECK_THROWS_AS((void)model(randint(0, vocab, {2, 3}), TransformerArgs{.cache = &cache}), ShapeError);
    CHECK_THROWS_AS(KeyValueCache(model.config, {.rows = 0}), ValueError);
    TransformerConfig shallow = model.config;
    shallow.n_layers = 1;
    KeyValueCache other(shallow);
    CHECK_THROWS_AS((void)model(randint(0, vocab, {1, 3}), TransformerArgs{.cache = &other}), ValueError);
  }

  TEST_CASE("past the window the decoder reads its last half again, and goes on") {
    const Transformer model = small_model(DType::f32);
    Decoder decoder(model);
    std::vector<int32_t> seen;
    for (int32_t i = 0; i < 3 * window; ++i) {
      const int32_t token = i * 7 % vocab;
      if (static_cast<int64_t>(seen.size()) == window) seen.erase(seen.begin(), seen.end() - (window / 2 - 1));
      seen.push_back(token);
      check_close(decoder.read({&token, 1}), uncached(model, seen), 1e-5);
    }
    std::vector<int32_t> prompt(5 * window);
    for (size_t i = 0; i < prompt.size(); ++i) prompt[i] = static_cast<int32_t>(i * 5 % vocab);
    Decoder fresh(model);
    check_close(fresh.read(prompt), uncached(model, {prompt.end() - window / 2, prompt.end()}), 1e-5);
  }

  TEST_CASE("generation depends on prompt, options and seed alone") {
    const Transformer model = small_model(DType::f32);
    const auto write = [&](const GenerateOptions& options) {
      std::vector<int32_t> ids;
      generate(model, std::vector<int32_t>{1, 2}, options, [&](int32_t id) { ids.push_back(id); });
      return ids;
    };
    const std::vector<int32_t> a = write({.max_tokens = 30, .sampler = {}, .seed = 5});
    CHECK(a.size() == 30);
    CHECK(write({.max_tokens = 30, .sampler = {}, .seed = 5}) == a);
    CHECK(write({.max_tokens = 30, .sampler = {}, .seed = 6}) != a);
    CHECK(write({.max_tokens = 0, .sampler = {}, .seed = 5}).empty());
    const std::vector<int32_t> greedy = write({.max_tokens = 6, .sampler = {.temperature = 0}, .seed = 1});
    std::vector<int32_t> tokens = {1, 2};
    for (const int32_t id : greedy) {
      const std::vector<float> logits = uncached(model, tokens);
      CHECK(id == static_cast<int32_t>(std::max_element(logits.begin(), logits.end()) - logits.begin()));
      tokens.push_back(id);
    }
    CHECK_THROWS_AS(write({.max_tokens = -1, .sampler = {}, .seed = 1}), ValueError);
    CHECK_THROWS_AS(write({.max_tokens = 1, .sampler = {.temperature = -1}, .seed = 1}), ValueError);
    CHECK_THROWS_AS(generate(model, std::vector<int32_t>{vocab}, {}, [](int32_t) {}), IndexError);
    CHECK_THROWS_AS(generate(model, {}, {}, [](int32_t) {}), ValueError);
  }
}
