// The check of one's own model finds nothing where there is nothing, and finds a cache that does not fit the model.
// Next: ../models/transformer/check_cache.h.
#include <doctest/doctest.h>

#include "../autograd/error.h"
#include "../autograd/random.h"
#include "../models/transformer/check_cache.h"

using namespace tapestry;

namespace {

TransformerConfig small_config() {
  return {.vocab_size = 13, .max_seq_len = 90, .n_layers = 2, .n_heads = 2, .n_kv_heads = 1, .d_model = 16, .d_ff = 16};
}

}  // namespace

TEST_SUITE("check_cache") {
  TEST_CASE("a model with a cache computes what it computes without") {
    for (const int64_t window : {0, 5, 70, 1000}) {
      TransformerConfig config = small_config();
      config.window = window;
      manual_seed(1);
      const Transformer model(config);
      CAPTURE(window);
      const CacheCheck check = check_cache(model);
      CHECK(check.tokens == (window == 70 ? 78 : 64));
      CHECK(check.rows.size() == 8);
      CHECK(check.worst() <= 1e-5);
      CHECK(check.largest_logit > 0);
      CHECK(check.fills_window == (window != 1000));
      const CacheCheck rounded = check_cache(model, {.tokens = 40, .chunk = 3, .bf16_cache = true});
      CHECK(rounded.tokens == 40);
      CHECK(rounded.worst() <= 5e-2);
      CHECK(rounded.worst() > 1e-5);
    }
    const Transformer model(small_config());
    CHECK_THROWS_AS((void)check_cache(model, {.tokens = 91}), ValueError);
    CHECK_THROWS_AS((void)check_cache(model, {.tokens = 1}), ValueError);
    CHECK_THROWS_AS((void)check_cache(model, {.chunk = 0}), ValueError);
  }

  TEST_CASE("a model whose layers see another window than its cache keeps does not pass") {
    TransformerConfig config = small_config();
    config.window = 9;
    manual_seed(1);
    Transformer model(config);
    model.config.window = 4;  // what the cache is made for; the layers still see nine
    CHECK(check_cache(model).worst() > 1e-3);
  }
}
