// The cache against reading everything again: every kind of attention, every way of cutting the tokens; its memory, and what it refuses.
// Not here: writing on (test_generate.cpp), or the choice of a token (test_sampler.cpp).
// Next: ../models/transformer/kv_cache.h.
#include <doctest/doctest.h>

#include <functional>
#include <string>

#include "../autograd/error.h"
#include "../autograd/grad_mode.h"
#include "../autograd/random.h"
#include "../models/transformer/lm.h"
#include "../nn/visitor.h"
#include "../ops/ops.h"

using namespace tapestry;

namespace {

constexpr int64_t vocab = 11, length = 18, rows = 3;
/// Products round differently for other shapes, so cached and uncached logits differ in their last bits: the bound is on
/// the largest difference over the largest logit.
constexpr double bound = 1e-5;

TransformerConfig small_config() {
  return {.vocab_size = vocab,
          .max_seq_len = length,
          .n_layers = 3,
          .n_heads = 4,
          .n_kv_heads = 2,
          .d_model = 16,
          .d_ff = 24};
}

Transformer model_of(const TransformerConfig& config, DType dtype = DType::f32) {
  manual_seed(3);
  Transformer model(config);
  to(model, dtype);
  return model;
}

double difference(const Tensor& a, const Tensor& b) {
  return max(abs(to(a, DType::f64) - to(b, DType::f64))).item() / max(abs(to(b, DType::f64))).item();
}

/// Logits of all tokens, read in pieces.
Tensor read_in(const Transformer& model, const Tensor& tokens, KeyValueCache& cache, const std::vector<int64_t>& pieces,
               const Tensor& mask = {}) {
  std::vector<Tensor> parts;
  int64_t at = 0;
  for (const int64_t n : pieces) {
    Tensor part_of_mask;
    if (mask.defined()) part_of_mask = slice(slice(mask, -2, at, at + n), -1, 0, at + n);
    parts.push_back(model(slice(tokens, 1, at, at + n), TransformerArgs{.mask = part_of_mask, .cache = &cache}));
    at += n;
  }
  return cat(parts, 1);
}

struct Cut {
  std::string name;
  std::vector<int64_t> pieces;
};
const std::vector<Cut>& cuts() {
  static const std::vector<Cut> all = {{"one shot", {length}},
                                       {"chunked", {5, 1, 7, 1, 4}},
                                       {"in chunks longer than the window, then one by one", {9, 6, 1, 1, 1}},
                                       {"token by token", std::vector<int64_t>(length, 1)}};
  return all;
}

/// Largest difference over all ways of cutting, and of rows of different lengths side by side against each alone.
double worst(const Transformer& model, DType cache_dtype) {
  const NoGrad no_grad;
  const Tensor tokens = randint(0, vocab, {rows, length}), whole = model(tokens);
  double most = 0;
  for (const Cut& cut : cuts()) {
    KeyValueCache cache(model.config, {.rows = rows, .dtype = cache_dtype});
    most = std::max(most, difference(read_in(model, tokens, cache, cut.pieces), whole));
    CHECK(cache.size() == length);
  }
  const std::vector<int64_t> padding = {2, 0, 7};
  std::vector<Tensor> alone;
  for (size_t row = 0; row < padding.size(); ++row)
    alone.push_back(
        model(slice(slice(tokens, 0, static_cast<int64_t>(row), static_cast<int64_t>(row) + 1), 1, padding[row], {})));
  for (const Cut& cut : cuts()) {
    KeyValueCache cache(model.config, {.rows = rows, .dtype = cache_dtype});
    cache.set_padding(padding);
    const Tensor ragged = read_in(model, tokens, cache, cut.pieces);
    for (size_t row = 0; row < padding.size(); ++row)
      most = std::max(most, difference(slice(select(ragged, 0, static_cast<int64_t>(row)), 0, padding[row], {}),
                                       select(alone[row], 0, 0)));
  }
  return most;
}

struct Choice {
  std::string name;
  std::function<void(TransformerConfig&)> set;
};

const std::vector<Choice>& spans() {
  static const std::vector<Choice> all = {
      {"full", [](TransformerConfig&) {}},
      {"sliding", [](TransformerConfig& c) { c.window = 4; }},
      {"hybrid", [](TransformerConfig& c) { c.window = 4, c.layer_types = every_kth_full(c.n_layers, 2); }}};
  return all;
}

}  // namespace

TEST_SUITE("kv_cache") {
  TEST_CASE("cached = uncached: {full, sliding, hybrid} × heads × cuts and padding × {soft cap, QK-norm}") {
    const Choice extras[] = {{"plain", [](TransformerConfig&) {}},
                             {"soft cap", [](TransformerConfig& c) { c.attention_soft_cap = 2, c.final_soft_cap = 3; }},
                             {"QK-norm", [](TransformerConfig& c) { c.qk_norm = QkNorm::head; }},
                             {"soft cap and QK-norm over the row",
                              [](TransformerConfig& c) { c.attention_soft_cap = 2, c.qk_norm = QkNorm::projection; }}};
    for (const Choice& span : spans())
      for (const int64_t n_kv_heads : {4, 2, 1})
        for (const Choice& extra : extras) {
          TransformerConfig config = small_config();
          config.n_kv_heads = n_kv_heads;
          span.set(config);
          extra.set(config);
          CAPTURE(span.name);
          CAPTURE(n_kv_heads);
          CAPTURE(extra.name);
          CHECK(worst(model_of(config), DType::f32) <= bound);
        }
  }

  TEST_CASE("cached = uncached for every way of knowing places, every window, and fused projections") {
    const Choice choices[] = {
        {"partial rotary", [](TransformerConfig& c) { c.head_dim = 8, c.rotary_fraction = 0.5; }},
        {"half layout", [](TransformerConfig& c) { c.rope_layout = RopeLayout::half; }},
        {"layers without rope",
         [](TransformerConfig& c) {
           c.rope_layers = {true, false, true};
         }},
        {"learned", [](TransformerConfig& c) { c.positions = Positions::learned; }},
        {"sinusoidal", [](TransformerConfig& c) { c.positions = Positions::sinusoidal; }},
        {"no positions", [](TransformerConfig& c) { c.positions = Positions::none; }},
        {"own theta and scaled full layers",
         [](TransformerConfig& c) {
           c.rope_local_theta = 100;
           c.rope_scaling = {.rule = RopeScalingRule::yarn, .factor = 2, .original_max_seq_len = 9};
         }},
        {"dynamic scaling",
         [](TransformerConfig& c) {
           c.rope_scaling = {.rule = RopeScalingRule::dynamic, .factor = 2, .original_max_seq_len = 9};
         }},
        {"window 1", [](TransformerConfig& c) { c.window = 1; }},
        {"window of all but one", [](TransformerConfig& c) { c.window = length - 1; }},
        {"window of all", [](TransformerConfig& c) { c.window = length; }},
        {"window above all", [](TransformerConfig& c) { c.window = 10 * length; }},
        {"fused", [](TransformerConfig& c) { c.fused_qkv = true, c.fused_gate_up = true; }},
        {"post-norm and experts",
         [](TransformerConfig& c) { c.norm_placement = NormPlacement::post, c.n_experts = 3; }}};
    for (const Choice& choice : choices)
      for (const Choice& span : spans()) {
        if (&span == &spans()[1]) continue;  // the hybrid has such layers, too
        TransformerConfig config = small_config();
        span.set(config);
        choice.set(config);
        CAPTURE(choice.name);
        CAPTURE(span.name);
        CHECK(worst(model_of(config), DType::f32) <= bound);
      }
  }

  TEST_CASE("in f64 the difference is one of rounding; keys and values rounded to bf16 cost no more than that") {
    for (const Choice& span : spans()) {
      CAPTURE(span.name);
      TransformerConfig config = small_config();
      span.set(config);
      CHECK(worst(model_of(config, DType::f64), DType::f64) < 1e-13);
      const Transformer model = model_of(config);
      const double rounded = worst(model, DType::bf16);
      CHECK(rounded <= 0x1p-6);
      CHECK(rounded > bound);
      // However the tokens are cut, the same rounded values are read.
      const NoGrad no_grad;
      const Tensor tokens = randint(0, vocab, {rows, length});
      Tensor first;
      for (const Cut& cut : cuts()) {
        KeyValueCache cache(config, {.rows = rows, .dtype = DType::bf16});
        const Tensor logits = read_in(model, tokens, cache, cut.pieces);
        if (!first.defined()) first = logits;
        CHECK(difference(logits, first) <= 2e-3);
      }
    }
  }

  TEST_CASE("a mask over all tokens so far means the same tokens in every layer") {
    const NoGrad no_grad;
    const Tensor documents = tensor<int64_t>({{0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2},
                                              {0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1},
                                              {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1}});
    const Tensor mask = document_mask(documents), tokens = randint(0, vocab, {rows, length});
    for (const Choice& span : spans()) {
      TransformerConfig config = small_config();
      span.set(config);
      const Transformer model = model_of(config);
      const Tensor whole = model(tokens, TransformerArgs{.mask = mask});
      CHECK(difference(whole, model(tokens)) > bound);
      for (const Cut& cut : cuts()) {
        CAPTURE(span.name);
        CAPTURE(cut.name);
        KeyValueCache cache(config, {.rows = rows});
        CHECK(difference(read_in(model, tokens, cache, cut.pieces, mask), whole) <= bound);
      }
    }
    TransformerConfig sliding = small_config();
    sliding.window = 4;
    KeyValueCache cache(sliding, {.rows = rows});
    CHECK_THROWS_AS((void)model_of(sliding)(slice(tokens, 1, 0, 6), TransformerArgs{.mask = mask, .cache = &cache}),
                    ShapeError);
  }

  TEST_CASE("memory: only the window where a layer slides, doubled as it fills, or taken at once") {
    const NoGrad no_grad;
    TransformerConfig config = small_config();
    spans()[2].set(config);  // sliding, full, sliding
    const Transformer model = model_of(config);
    const auto of = [&](int64_t full, int64_t sliding) {
      return 2 * config.n_kv_heads * config.head_width() * (full + 2 * sliding) * 4;
    };
    KeyValueCache at_once(config, {.max_tokens = 12}), growing(config);
    CHECK(at_once.bytes() == of(12, 4));
    CHECK(at_once.capacity() == 12);
    CHECK(KeyValueCache(config, {.dtype = DType::bf16, .max_tokens = 12}).bytes() == of(12, 4) / 2);
    CHECK(growing.bytes() == 0);
    CHECK(growing.capacity() == length);
    const Tensor tokens = randint(0, vocab, {1, length});
    std::vector<int64_t> bytes;
    for (const int64_t n : {3, 1, 1, 2, 6, 5}) {
      (void)model(slice(tokens, 1, growing.size(), growing.size() + n), TransformerArgs{.cache = &growing});
      bytes.push_back(growing.bytes());
    }
    CHECK(bytes == std::vector<int64_t>{of(3, 3), of(6, 4), of(6, 4), of(12, 4), of(18, 4), of(18, 4)});
    (void)model(slice(tokens, 1, 0, 12), TransformerArgs{.cache = &at_once});
    CHECK(at_once.bytes() == of(12, 4));
    growing.clear();
    CHECK(growing.bytes() == of(18, 4));
    CHECK(growing.size() == 0);
  }

  TEST_CASE("rows can be dropped, reordered and doubled") {
    const NoGrad no_grad;
    for (const Choice& span : spans()) {
      CAPTURE(span.name);
      TransformerConfig config = small_config();
      span.set(config);
      const Transformer model = model_of(config);
      const Tensor tokens = randint(0, vocab, {rows, length});
      KeyValueCache cache(config, {.rows = rows}), picked(config, {.rows = rows});
      for (KeyValueCache* c : {&cache, &picked}) {
        c->set_padding(std::vector<int64_t>{2, 0, 1});
        (void)model(slice(tokens, 1, 0, 7), TransformerArgs{.cache = c});
      }
      const std::vector<int64_t> kept = {2, 0, 2, 1};
      picked.select_rows(kept);
      CHECK(picked.rows() == 4);
      for (const int64_t at : {7, 8, 9, 10, 11}) {
        const Tensor next = slice(tokens, 1, at, at + 1), index = from(kept);
        const Tensor want = index_select(model(next, TransformerArgs{.cache = &cache}), 0, index);
        CHECK(difference(model(index_select(next, 0, index), TransformerArgs{.cache = &picked}), want) <= bound);
      }
      CHECK_THROWS_AS(picked.select_rows(std::vector<int64_t>{4}), IndexError);
      CHECK_THROWS_AS(picked.select_rows(std::vector<int64_t>{}), ValueError);
    }
  }

  TEST_CASE("running past the end is an error that changes nothing, for every cut") {
    const NoGrad no_grad;
    for (const Choice& span : spans()) {
      TransformerConfig config = small_config();
      span.set(config);
      const Transformer model = model_of(config);
      const Tensor tokens = randint(0, vocab, {1, 2 * length}), whole = model(slice(tokens, 1, 0, length));
      for (const int64_t capacity : {int64_t{0}, int64_t{11}}) {
        KeyValueCache cache(config, {.max_tokens = capacity});
        const int64_t most = cache.capacity();
        (void)model(slice(tokens, 1, 0, most - 1), TransformerArgs{.cache = &cache});
        CHECK_THROWS_AS((void)model(slice(tokens, 1, most - 1, most + 1), TransformerArgs{.cache = &cache}),
                        ShapeError);
        CHECK(cache.size() == most - 1);
        const Tensor last = model(slice(tokens, 1, most - 1, most), TransformerArgs{.cache = &cache});
        CHECK(difference(last, slice(whole, 1, most - 1, most)) <= bound);
        CHECK_THROWS_AS((void)model(slice(tokens, 1, 0, 1), TransformerArgs{.cache = &cache}), ShapeError);
      }
    }
  }

  TEST_CASE("it refuses to be recorded, other sizes, and to go on after a call that failed midway") {
    const Transformer model = model_of(small_config());
    KeyValueCache cache(model.config);
    CHECK_THROWS_AS((void)model(randint(0, vocab, {1, 3}), TransformerArgs{.cache = &cache}), AutogradError);
    cache.clear();
    const NoGrad no_grad;
    CHECK_THROWS_AS((void)model(randint(0, vocab, {2, 3}), TransformerArgs{.cache = &cache}), ShapeError);
    CHECK_THROWS_AS(KeyValueCache(model.config, {.rows = 0}), ValueError);
    CHECK_THROWS_AS(KeyValueCache(model.config, {.max_tokens = length + 1}), ValueError);
    TransformerConfig shallow = model.config;
    shallow.n_layers = 1;
    KeyValueCache other(shallow);
    CHECK_THROWS_AS((void)model(randint(0, vocab, {1, 3}), TransformerArgs{.cache = &other}), ValueError);
    CHECK_THROWS_AS(cache.set_padding(std::vector<int64_t>{1, 2}), ValueError);
    CHECK_THROWS_AS(cache.set_padding(std::vector<int64_t>{-1}), ValueError);
    CHECK_THROWS_AS(cache.store(3), IndexError);
    const Tensor wrong = ones({3, 7}, DType::boolean);
    CHECK_THROWS_AS((void)model(randint(0, vocab, {1, 3}), TransformerArgs{.mask = wrong, .cache = &cache}),
                    ShapeError);
    CHECK_THROWS_WITH_AS((void)model(randint(0, vocab, {1, 3}), TransformerArgs{.cache = &cache}),
                         "kv_cache: a call that failed left 3 tokens in the first layer and 0 in the last; clear() it",
                         ValueError);
    cache.clear();
    (void)model(randint(0, vocab, {1, 3}), TransformerArgs{.cache = &cache});
    CHECK_THROWS_AS(cache.set_padding(std::vector<int64_t>{1}), ValueError);
  }

  TEST_CASE("a call that failed in the only layer is remembered, one that failed before it is not") {
    TransformerConfig config = small_config();
    config.n_layers = 1;
    const Transformer model = model_of(config);
    const NoGrad no_grad;
    KeyValueCache cache(config);
    CHECK_THROWS_AS((void)model(full({1, 3}, vocab, DType::i64), TransformerArgs{.cache = &cache}), IndexError);
    CHECK(cache.size() == 0);
    const Tensor wrong = ones({3, 7}, DType::boolean);
    CHECK_THROWS_AS((void)model(randint(0, vocab, {1, 3}), TransformerArgs{.mask = wrong, .cache = &cache}),
                    ShapeError);
    CHECK_THROWS_AS((void)cache.size(), ValueError);
    cache.clear();
    CHECK(cache.size() == 0);
  }

  TEST_CASE("positions of another shape than the tokens' are refused, wherever they are used") {
    const NoGrad no_grad;
    for (const Positions kind : {Positions::rope, Positions::learned, Positions::sinusoidal, Positions::none}) {
      TransformerConfig config = small_config();
      config.positions = kind;
      const Transformer model = model_of(config);
      const Tensor tokens = randint(0, vocab, {2, 3});
      for (const Shape& shape : {Shape{1}, Shape{4}, Shape{3, 1}, Shape{3, 3}, Shape{2, 2, 3}})
        CHECK_THROWS_AS((void)model(tokens, TransformerArgs{.positions = zeros(shape, DType::i64)}), ShapeError);
      CHECK_THROWS_AS((void)model(slice(tokens, 1, 0, 1), TransformerArgs{.positions = arange(3)}), ShapeError);
      const Tensor alone = model(tokens);
      CHECK(difference(model(tokens, TransformerArgs{.positions = arange(3)}), alone) == 0);
      CHECK(difference(model(tokens, TransformerArgs{.positions = expand(arange(3), {2, 3})}), alone) == 0);
    }
  }
}
