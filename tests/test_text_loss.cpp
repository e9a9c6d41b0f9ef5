// The loss over windows against one forward pass a token.
// Next: ../models/training/text_loss.h.
#include <doctest/doctest.h>

#include <cmath>

#include "../autograd/error.h"
#include "../autograd/grad_mode.h"
#include "../autograd/random.h"
#include "../models/training/text_loss.h"
#include "../models/transformer/sampler.h"
#include "../nn/visitor.h"
#include "../ops/ops.h"

using namespace tapestry;

namespace {

constexpr int64_t vocab = 7, context = 6;

/// −ln p of every token but the first, from the window in which it is predicted first.
double plain(const Transformer& model, const std::vector<int32_t>& ids, int64_t length, int64_t stride) {
  const NoGrad no_grad;
  double sum = 0;
  for (int64_t token = 1; token < static_cast<int64_t>(ids.size()); ++token) {
    int64_t begin = 0;
    while (begin + length < token) begin += stride;
    const std::vector<int64_t> seen(ids.begin() + begin, ids.begin() + token);
    const Tensor logits = model(from(seen, {1, token - begin}), TransformerArgs{.last_only = true});
    sum -= log_probability(logits.to_vector<float>(), ids[static_cast<size_t>(token)]);
  }
  return sum;
}

}  // namespace

TEST_SUITE("text_loss") {
  TEST_CASE("every token but the first counts once, in the first window that predicts it") {
    manual_seed(2);
    const Transformer model({.vocab_size = vocab,
                             .max_seq_len = context,
                             .n_layers = 1,
                             .n_heads = 2,
                             .n_kv_heads = 2,
                             .d_model = 8,
                             .d_ff = 8});
    for (const int32_t n : {2, 3, 6, 7, 8, 13, 30}) {
      std::vector<int32_t> ids;
      for (int32_t i = 0; i < n; ++i) ids.push_back((i * i + 3 * i) % vocab);
      for (const int64_t length : {0, 1, 4, 6})
        for (const int64_t stride : {0, 1, 3, 4}) {
          const int64_t real = length == 0 ? context : length;
          if (stride > real) continue;
          CAPTURE(n);
          CAPTURE(length);
          CAPTURE(stride);
          const TokenLoss loss = text_loss(model, ids, {.context = length, .stride = stride});
          CHECK(loss.tokens == n - 1);
          CHECK(loss.sum == doctest::Approx(plain(model, ids, real, stride == 0 ? real : stride)).epsilon(1e-5));
        }
    }
    const std::vector<int32_t> ids = {1, 2, 3};
    CHECK_THROWS_AS((void)text_loss(model, ids, {.context = context + 1}), ValueError);
    CHECK_THROWS_AS((void)text_loss(model, ids, {.context = 3, .stride = 4}), ValueError);
    CHECK_THROWS_AS((void)text_loss(model, ids, {.stride = -1}), ValueError);
    CHECK_THROWS_AS((void)text_loss(model, std::vector<int32_t>{1}, {}), ValueError);
    CHECK_THROWS_AS((void)text_loss(model, std::vector<int32_t>{1, vocab, 2}, {}), IndexError);
  }

  TEST_CASE("a bf16 model's loss is not rounded to bf16") {
    manual_seed(2);
    Transformer model({.vocab_size = vocab,
                       .max_seq_len = context,
                       .n_layers = 1,
                       .n_heads = 2,
                       .n_kv_heads = 2,
                       .d_model = 8,
                       .d_ff = 8});
    to(model, DType::bf16);
    std::vector<int32_t> ids;
    for (int32_t i = 0; i < 300; ++i) ids.push_back((i * i + 3 * i) % vocab);
    const double sum = text_loss(model, ids).sum, wanted = plain(model, ids, context, context);
    CHECK(sum == doctest::Approx(wanted).epsilon(2e-4));
  }

  TEST_CASE("bits per byte: 8 for bytes that are all equally likely") {
    const TokenLoss loss{.sum = 10 * std::log(256.0), .tokens = 10};
    CHECK(bits_per_byte(loss, 10) == doctest::Approx(8));
    CHECK(bits_per_byte(loss, 20) == doctest::Approx(4));
    CHECK(loss.perplexity() == doctest::Approx(256));
    CHECK_THROWS_AS((void)bits_per_byte(loss, 0), ValueError);
  }
}
