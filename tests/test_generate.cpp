// Writing on: one prompt or several, in pieces, past the end of the context, up to a stop; and the decoder that reads.
// Not here: what the cache computes (test_kv_cache.cpp), or the choice of a token (test_sampler.cpp).
// Next: ../models/transformer/generate.h.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "../autograd/error.h"
#include "../autograd/grad_mode.h"
#include "../autograd/random.h"
#include "../models/transformer/generate_text.h"
#include "../nn/visitor.h"
#include "../ops/ops.h"

using namespace tapestry;

namespace {

using Ids = std::vector<int32_t>;
constexpr int64_t vocab = 11, window = 12;

/// Weights larger than at the start of training, so that the choice depends on what was read.
Transformer small_model(TransformerConfig config = {}) {
  config.max_seq_len = window;
  config.n_layers = 2;
  config.n_heads = 4;
  config.n_kv_heads = 2;
  config.d_model = 16;
  config.d_ff = 24;
  if (config.vocab_size == 256) config.vocab_size = vocab;
  manual_seed(3);
  Transformer model(config);
  const NoGrad no_grad;
  for (const auto& [name, parameter] : named_parameters(model))
    if (parameter.dim() == 2) parameter.copy_(parameter * 2.0);
  return model;
}

std::vector<float> uncached(const Transformer& model, const Ids& tokens) {
  const NoGrad no_grad;
  const std::vector<int64_t> ids(tokens.begin(), tokens.end());
  return select(select(model(from(ids, {1, static_cast<int64_t>(ids.size())})), 0, 0), 0, -1).to_vector<float>();
}

/// The bound of test_kv_cache.cpp.
void check_close(const std::vector<float>& a, const std::vector<float>& b) {
  REQUIRE(a.size() == b.size());
  double scale = 0, most = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    scale = std::max<double>(scale, std::abs(b[i]));
    most = std::max<double>(most, std::abs(a[i] - b[i]));
  }
  CHECK(most <= 1e-5 * scale);
}

const std::vector<Ids>& prompts() {
  static const std::vector<Ids> all = {{1, 2, 3}, {4}, {5, 6, 7, 8, 9, 10, 0}, {2, 2}};
  return all;
}

std::vector<Generation> write_all(const Transformer& model, const GenerateOptions& options) {
  return generate(model, prompts(), options, [](size_t, int32_t) { return true; });
}

Generation write_one(const Transformer& model, const Ids& prompt, GenerateOptions options, uint64_t seed) {
  options.seed = seed;
  return generate(model, prompt, options, [](int32_t) {});
}

}  // namespace

TEST_SUITE("generate") {
  TEST_CASE("past the window the decoder reads its last half again, and goes on") {
    const Transformer model = small_model();
    Decoder decoder(model, {.slide = true});
    Ids seen;
    for (int32_t i = 0; i < 3 * window; ++i) {
      const int32_t token = i * 7 % vocab;
      if (static_cast<int64_t>(seen.size()) == window) seen.erase(seen.begin(), seen.end() - (window / 2 - 1));
      seen.push_back(token);
      check_close(decoder.read(Ids{token}), uncached(model, seen));
      CHECK(std::equal(seen.begin(), seen.end(), decoder.tokens().begin(), decoder.tokens().end()));
    }
    Ids prompt(5 * window);
    for (size_t i = 0; i < prompt.size(); ++i) prompt[i] = static_cast<int32_t>(i * 5 % vocab);
    Decoder fresh(model, {.slide = true});
    check_close(fresh.read(prompt), uncached(model, {prompt.end() - window / 2, prompt.end()}));
  }

  TEST_CASE("a decoder reads a prompt in pieces, and several sequences of any lengths, which can be dropped") {
    for (const int64_t w : {0, 3}) {
      const Transformer model = small_model({.window = w});
      for (const int64_t chunk : {0, 1, 2, 5, 99}) {
        CAPTURE(w);
        CAPTURE(chunk);
        Decoder decoder(model, {.prefill_chunk = chunk});
        std::vector<Ids> seen = prompts();
        std::vector<Ids> next = seen;
        for (int32_t step = 0; step < 5; ++step) {
          const auto logits = decoder.read(next);
          REQUIRE(logits.size() == seen.size());
          for (size_t i = 0; i < seen.size(); ++i) check_close(logits[i], uncached(model, seen[i]));
          if (step == 1) decoder.keep(std::vector<int64_t>{3, 1}), seen = {seen[3], seen[1]};
          next.clear();
          for (size_t i = 0; i < seen.size(); ++i) {
            next.push_back({static_cast<int32_t>((step * 3 + static_cast<int32_t>(i)) % vocab)});
            if (step == 3) next.back().resize(i + 1, 4);  // of different lengths once more
            seen[i].insert(seen[i].end(), next[i].begin(), next[i].end());
          }
        }
      }
    }
  }

  TEST_CASE("a decoder never reads again what it holds") {
    const Transformer model = small_model();
    Decoder decoder(model);
    for (const Ids& piece : {Ids{1, 2, 3}, Ids{4}, Ids{5, 6}}) (void)decoder.read(piece);
    CHECK(decoder.computed() == 6);
    CHECK_THROWS_AS((void)decoder.read(Ids(7, 1)), ValueError);
    CHECK_THROWS_AS((void)decoder.read(Ids{}), ValueError);
    CHECK_THROWS_AS((void)decoder.read(Ids{vocab}), IndexError);
    CHECK_THROWS_AS((void)decoder.read(Ids{-1}), IndexError);
    CHECK_THROWS_AS((void)decoder.read(prompts()), ValueError);
    check_close(decoder.read(Ids(6, 1)), uncached(model, {1, 2, 3, 4, 5, 6, 1, 1, 1, 1, 1, 1}));
    CHECK(decoder.computed() == 12);
    CHECK_THROWS_AS((void)decoder.read(Ids{1}), ValueError);
    CHECK_THROWS_AS(decoder.keep(std::vector<int64_t>{1}), IndexError);
    CHECK_THROWS_AS((void)decoder.tokens(1), IndexError);
    CHECK_THROWS_AS(Decoder(model, {.prefill_chunk = -1}), ValueError);
  }

  TEST_CASE("what a decoder read before stays after a call of the model that failed midway") {
    const Transformer model = small_model();
    Decoder decoder(model), straight(model);
    for (Decoder* d : {&decoder, &straight}) (void)d->read(Ids{1, 2, 3});
    {
      const HookHandle broken =
          model.layers[1].register_forward_hook([](const Tensor&) -> Tensor { throw IoError("x"); });
      CHECK_THROWS_AS((void)decoder.read(Ids{4}), IoError);
    }
    CHECK(decoder.tokens().size() == 3);
    check_close(decoder.read(Ids{5}), straight.read(Ids{5}));
    CHECK(decoder.tokens().size() == 4);
  }

  TEST_CASE("generation depends on prompt, options and seed alone") {
    const Transformer model = small_model();
    const auto write = [&](const GenerateOptions& options) {
      Ids ids;
      const Generation g = generate(model, Ids{1, 2}, options, [&](int32_t id) { ids.push_back(id); });
      CHECK(g.ids == ids);
      return ids;
    };
    const GenerateOptions base{.max_tokens = 30, .sampler = {}, .seed = 5, .when_full = WhenFull::slide};
    const auto with = [&](auto&& change) {
      GenerateOptions options = base;
      change(options);
      return options;
    };
    const Ids a = write(base);
    CHECK(a.size() == 30);
    CHECK(write(base) == a);
    CHECK(write(with([](auto& o) { o.prefill_chunk = 1; })) == a);
    CHECK(write(with([](auto& o) { o.seed = 6; })) != a);
    CHECK(write(with([](auto& o) { o.sampler.repetition_penalty = 5; })) != a);
    CHECK(write(with([](auto& o) { o.max_tokens = 0; })).empty());
    const Ids greedy = write({.max_tokens = 6, .sampler = {.temperature = 0}, .seed = 1});
    Ids tokens = {1, 2};
    for (const int32_t id : greedy) {
      const std::vector<float> logits = uncached(model, tokens);
      CHECK(id == static_cast<int32_t>(std::max_element(logits.begin(), logits.end()) - logits.begin()));
      tokens.push_back(id);
    }
    CHECK(write({.max_tokens = 6, .sampler = {.temperature = 0}, .bf16_cache = true}).size() == 6);
    CHECK_THROWS_AS(write({.max_tokens = -1, .sampler = {}, .seed = 1}), ValueError);
    CHECK_THROWS_AS(write({.max_tokens = 1, .sampler = {.temperature = -1}, .seed = 1}), ValueError);
    CHECK_THROWS_AS(generate(model, Ids{vocab}, {}, [](int32_t) {}), IndexError);
    CHECK_THROWS_AS(generate(model, Ids{}, {}, [](int32_t) {}), ValueError);
  }

  TEST_CASE("a great presence penalty draws every token once before any comes again; counts begin with the prompt's") {
    const Transformer model = small_model();
    Ids ids =
        write_one(model, {1}, {.max_tokens = vocab, .sampler = {.temperature = 0, .presence_penalty = 1e6}}, 1).ids;
    std::sort(ids.begin(), ids.end());
    CHECK(std::adjacent_find(ids.begin(), ids.end()) == ids.end());
    // The repetition penalty, which makes all of these logits lower, does count the prompt.
    const Ids prompt = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9};
    const std::vector<float> logits = uncached(model, prompt);
    TokenCounts counts;
    for (const int32_t id : prompt) counts[id] = 0;
    const SamplerOptions how{.temperature = 0, .repetition_penalty = 1e6};
    CHECK(write_one(model, prompt, {.max_tokens = 1, .sampler = how}, 1).ids[0] ==
          sample(penalise(logits, how, counts), how, 0));
  }

  TEST_CASE("several prompts side by side write what each writes alone, greedy and drawn, whatever ends them") {
    for (const int64_t w : {0, 3}) {
      const Transformer model = small_model({.window = w});
      for (const WhenFull when_full : {WhenFull::stop, WhenFull::slide})
        for (const double temperature : {0.0, 1.0})
          for (const int64_t chunk : {0, 2}) {
            CAPTURE(w);
            CAPTURE(temperature);
            CAPTURE(chunk);
            const GenerateOptions options{.max_tokens = 40,
                                          .sampler = {.temperature = temperature, .frequency_penalty = 0.3},
                                          .seed = 8,
                                          .stop_ids = {9},
                                          .when_full = when_full,
                                          .prefill_chunk = chunk};
            const std::vector<Generation> together = write_all(model, options);
            for (size_t i = 0; i < prompts().size(); ++i) {
              CAPTURE(i);
              const Generation alone = write_one(model, prompts()[i], options, 8 + i);
              CHECK(together[i].ids == alone.ids);
              CHECK(together[i].reason == alone.reason);
              if (when_full == WhenFull::stop) CHECK(alone.ids.size() <= window - prompts()[i].size() + 1);
            }
          }
    }
    CHECK(generate(small_model(), std::vector<Ids>{}, {}, [](size_t, int32_t) { return true; }).empty());
  }

  TEST_CASE("a text says why it ended") {
    const Transformer model = small_model();
    const GenerateOptions greedy{.max_tokens = 100, .sampler = {.temperature = 0}};
    const Generation full = write_one(model, {1, 2}, greedy, 1);
    CHECK(full.reason == EndReason::max_seq_len);
    CHECK(name_of(full.reason) == "max_seq_len");
    CHECK(full.ids.size() == window - 1);  // the model has read all places, and the last token follows them
    GenerateOptions options = greedy;
    options.max_tokens = 4;
    CHECK(write_one(model, {1, 2}, options, 1).reason == EndReason::max_tokens);
    CHECK(write_one(model, {1, 2}, options, 1).ids == Ids(full.ids.begin(), full.ids.begin() + 4));
    options.max_tokens = 0;
    CHECK(write_one(model, {1, 2}, options, 1).reason == EndReason::max_tokens);
    options = greedy;
    options.stop_ids = {full.ids.back(), full.ids[3]};
    const Generation stopped = write_one(model, {1, 2}, options, 1);
    CHECK(stopped.reason == EndReason::stop_id);
    const auto end = std::find_if(full.ids.begin(), full.ids.end(),
                                  [&](int32_t id) { return id == options.stop_ids[0] || id == options.stop_ids[1]; });
    CHECK(stopped.ids == Ids(full.ids.begin(), end));
    options = greedy;
    options.when_full = WhenFull::error;
    CHECK_THROWS_WITH_AS(write_one(model, {1, 2}, options, 1),
                         "generate: max_seq_len 12 is reached after 11 tokens; ask for less, stop, or slide",
                         ValueError);
    CHECK_THROWS_AS(write_one(model, Ids(window + 1, 1), greedy, 1), ValueError);
    CHECK(write_one(model, Ids(window, 1), greedy, 1).ids.size() == 1);
    const std::vector<Generation> one =
        generate(model, std::span(&prompts()[0], 1), greedy, [](size_t, int32_t) { return false; });
    CHECK(one[0].reason == EndReason::stopped);
    CHECK(one[0].ids.size() == 1);
  }

  TEST_CASE("log-probabilities are the model's own, whatever the sampler does") {
    const Transformer model = small_model();
    const Generation g = write_one(
        model, {1, 2},
        {.max_tokens = 5, .sampler = {.temperature = 3, .top_k = 4, .presence_penalty = 1}, .log_probabilities = 2}, 4);
    REQUIRE(g.log_probabilities.size() == 5);
    Ids tokens = {1, 2};
    for (size_t i = 0; i < 5; ++i) {
      const std::vector<float> logits = uncached(model, tokens);
      CHECK(g.log_probabilities[i] == doctest::Approx(log_probability(logits, g.ids[i])).epsilon(1e-5));
      REQUIRE(g.top[i].size() == 2);
      CHECK(g.top[i][0].id == top_log_probabilities(logits, 1)[0].id);
      tokens.push_back(g.ids[i]);
    }
    CHECK(write_one(model, {1, 2}, {.max_tokens = 5}, 4).log_probabilities.empty());
  }

  TEST_CASE("text: complete characters, up to a stop string that no token ends at") {
    const ByteTokenizer tokenizer;
    const Transformer model = small_model({.vocab_size = 257});
    const auto prompt = std::vector<Ids>{tokenizer.encode("ab"), tokenizer.encode("x")};
    const GenerateOptions options{.max_tokens = 60, .sampler = {.temperature = 0.9}, .when_full = WhenFull::slide};
    std::vector<std::string> pieces(2);
    const auto write = [&](const std::vector<std::string>& stop) {
      pieces = {"", ""};
      Decoder decoder(model, decoder_options(options));
      return generate_text(decoder, tokenizer, prompt, options, stop, [&](size_t i, std::string_view piece) {
        CHECK(Utf8Stream().push(piece) == piece);
        pieces[i] += piece;
      });
    };
    const std::vector<TextGeneration> free = write({});
    for (size_t i = 0; i < 2; ++i) {
      CHECK(pieces[i] == free[i].text);
      std::string want = Utf8Stream().push(tokenizer.decode(free[i].tokens.ids));
      CHECK(free[i].text.substr(0, want.size()) == want);
    }
    // Stop strings of three bytes from the middle of what is written, cut as the tokens never are.
    const std::string bytes = tokenizer.decode(free[0].tokens.ids), stop = bytes.substr(20, 3);
    const size_t at = bytes.find(stop);
    const std::vector<TextGeneration> cut = write({"nowhere at all", stop});
    CHECK(cut[0].tokens.reason == EndReason::stopped);
    CHECK(cut[0].tokens.ids.size() == at + 3);
    Utf8Stream utf8;
    std::string want = utf8.push(bytes.substr(0, at));
    CHECK(cut[0].text == want + utf8.flush());
    CHECK(pieces[0] == cut[0].text);
  }
}
