// Sampling rules at ties, at p ∈ {0, 1}, at temperature 0 and at probability 0; each against a plain restatement; penalties and log-probabilities.
// Not here: the stored probabilities of nn/sampling (the golden tests read them).
// Next: ../models/transformer/sampler.h for the rules.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <string>

#include "../autograd/error.h"
#include "../autograd/random.h"
#include "../models/transformer/sampler.h"

using namespace tapestry;

namespace {

constexpr float inf = std::numeric_limits<float>::infinity();
constexpr float nan_f = std::numeric_limits<float>::quiet_NaN();
constexpr double nan_d = std::numeric_limits<double>::quiet_NaN();
using Ids = std::vector<int32_t>;

/// Logits with many ties: multiples of 1/4 in [−4, 4), one in sixteen −inf.
std::vector<float> random_logits(uint64_t seed, size_t n) {
  const Ticket ticket{seed, 0};
  std::vector<float> logits(n);
  for (size_t i = 0; i < n; ++i) {
    const uint32_t word = ticket.word(i);
    logits[i] = word % 16 == 0 ? -inf : static_cast<float>((word >> 8) % 32) / 4 - 4;
  }
  return logits;
}

/// The documented rule with a full sort and no shortcuts: dense probabilities.
std::vector<double> plain_rule(const std::vector<float>& logits, const SamplerOptions& options) {
  const double largest = *std::max_element(logits.begin(), logits.end());
  std::vector<double> p(logits.size());
  for (size_t i = 0; i < p.size(); ++i) p[i] = std::exp((logits[i] - largest) / options.temperature);
  const auto renormalise = [&p] {
    const double sum = std::accumulate(p.begin(), p.end(), 0.0);
    for (double& x : p) x /= sum;
  };
  std::vector<size_t> order(p.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&p](size_t a, size_t b) { return p[a] > p[b]; });
  renormalise();
  if (options.top_k > 0) {
    for (size_t i = static_cast<size_t>(options.top_k); i < order.size(); ++i) p[order[i]] = 0;
    renormalise();
  }
  if (options.top_p < 1) {
    double before = 0;
    for (size_t i = 0; i < order.size(); ++i) {
      const double x = p[order[i]];
      if (i > 0 && !(before < options.top_p)) p[order[i]] = 0;
      before += x;
    }
    renormalise();
  }
  for (size_t i = 0; i < p.size(); ++i)
    if (std::exp((logits[i] - largest) / options.temperature) < options.min_p) p[i] = 0;
  renormalise();
  return p;
}

}  // namespace

TEST_SUITE("sampler") {
  TEST_CASE("top-p keeps while the sum before the token is below p") {
    struct Row {
      std::vector<double> probabilities;
      double top_p;
      Ids want;
    };
    const Row rows[] = {
        {{.5, .41, .09}, 0.9, {0, 1}},
        {{.3, .1, .1, .5}, 0.8, {0, 3}},
        {{.5, .35, .10, .05}, 0.9, {0, 1, 2}},
        {{.4, .3, .2, .1}, 1.0, {0, 1, 2, 3}},
        {{.4, .3, .2, .1}, 0.0, {0}},
        {{.25, .25, .25, .25}, 0.5, {0, 1}},  // ties: the smaller id first
        {{.2, .4, .4}, 0.0, {1}},
        {{.5, 0, .5}, 1.0, {0, 2}},  // 0 is not kept, not even at p = 1
        {{0, 1}, 0.999, {1}},
    };
    for (const Row& row : rows) {
      CAPTURE(row.top_p);
      CHECK(top_p_ids(row.probabilities, row.top_p) == row.want);
      if (row.top_p == 0.8) continue;  // the boundary 0.3 + 0.5 = 0.8 is exact only for probabilities, not for logits
      std::vector<float> logits;
      for (const double p : row.probabilities) logits.push_back(static_cast<float>(std::log(p)));
      CHECK(kept_ids(logits, {.top_p = row.top_p}) == row.want);
    }
  }

  TEST_CASE("what is kept, by option") {
    struct Row {
      std::vector<float> logits;
      SamplerOptions options;
      Ids want;
    };
    const Row rows[] = {
        {{1, 3, 3, 2}, {.temperature = 0}, {1}},  // greedy: the lowest id among ties
        {{1, 3, 3, 2}, {.temperature = 0, .top_k = 2, .top_p = 0.9}, {1}},
        {{1, 3, 3, 2}, {.top_k = 1}, {1}},
        {{1, 3, 3, 2}, {.top_k = 2}, {1, 2}},
        {{1, 3, 3, 2}, {.top_k = 3}, {1, 2, 3}},
        {{1, 3, 3, 2}, {.top_k = 99}, {0, 1, 2, 3}},
        {{0, 0, 0, 0}, {.top_k = 2}, {0, 1}},
        {{-inf, 0, -inf, 0}, {}, {1, 3}},
        {{-inf, 0, -inf, 0}, {.top_k = 4}, {1, 3}},
        {{-inf, -5}, {.top_p = 1}, {1}},
        {{0, 1, 0}, {.temperature = 1e-3}, {1}},  // the others underflow to probability 0
        {{0, 1, 0}, {.temperature = 5e-324}, {1}},
        {{1e38F, -1e38F, 1e38F}, {}, {0, 2}},
        {{0, 0, 0, 0}, {.top_k = 2, .top_p = 0.5}, {0}},  // top-p sees 1/2, 1/2 after top-k
        {{0}, {.top_k = 1, .top_p = 0}, {0}},
        {{1, 3, 3, 2}, {.min_p = 1}, {1, 2}},  // p ≥ 1 · the largest: the ties
        {{0, 1, 2, -inf}, {.min_p = std::exp(-1.0)}, {1, 2}},
        {{0, 1, 2, -inf}, {.min_p = 0.1}, {0, 1, 2}},
        {{0, 1, 2}, {.temperature = 2, .min_p = std::exp(-0.5)}, {1, 2}},
        {{0, 0, 0, 0}, {.top_k = 2, .min_p = 0.5}, {0, 1}},
        {{3, 2, 0}, {.top_p = 0.7, .min_p = 0.1}, {0}},  // top-p first: it sees 0.71, 0.26, 0.04
        {{1, 3, 3, 2}, {.temperature = 0, .min_p = 1}, {1}},
    };
    for (const Row& row : rows) {
      CAPTURE(row.options.temperature);
      CAPTURE(row.options.top_k);
      CAPTURE(row.options.top_p);
      CAPTURE(row.options.min_p);
      CHECK(kept_ids(row.logits, row.options) == row.want);
    }
  }

  TEST_CASE("selection of a part equals sorting everything") {
    for (const size_t n : {1, 5, 64, 65, 200, 1000}) {
      for (const double temperature : {0.5, 1.0, 3.0}) {
        for (const int64_t top_k : {0, 1, 10, 100}) {
          for (const double top_p : {0.0, 0.1, 0.5, 0.9, 0.999, 1.0}) {
            const double min_p = top_p == 0.9 || top_p == 1.0 ? 0.05 * static_cast<double>(n % 7) : 0;
            const SamplerOptions options{temperature, top_k, top_p, min_p};
            std::vector<float> logits = random_logits(n, n);
            logits[n / 2] = 0;
            const std::vector<double> want = plain_rule(logits, options), got = probabilities(logits, options);
            bool same = true;
            for (size_t i = 0; i < n; ++i) {
              same = same && (got[i] > 0) == (want[i] > 0) && std::abs(got[i] - want[i]) < 1e-14;
            }
            CAPTURE(n);
            CAPTURE(temperature);
            CAPTURE(top_k);
            CAPTURE(top_p);
            CHECK(same);
          }
        }
      }
    }
  }

  TEST_CASE("chosen u pick the token whose cumulative interval holds u") {
    struct Row {
      std::vector<float> logits;
      double u;
      int32_t want;
    };
    const double below_1 = 1 - 0x1p-53;
    const Row rows[] = {
        {{0, 0, 0, 0}, 0.0, 0},
        {{0, 0, 0, 0}, 0.2499, 0},
        {{0, 0, 0, 0}, 0.25, 1},
        {{0, 0, 0, 0}, 0.75, 3},
        {{0, 0, 0, 0}, below_1, 3},
        {{-inf, 0, -inf, 0, -inf}, 0.0, 1},
        {{-inf, 0, -inf, 0, -inf}, 0.5, 3},
        {{-inf, 0, -inf, 0, -inf}, below_1, 3},
        {{0, -1000, 0, -1000}, 0.5, 2},
        {{0, -1000, 0, -1000}, below_1, 2},
    };
    for (const Row& row : rows) {
      CAPTURE(row.u);
      CHECK(sample(row.logits, {}, row.u) == row.want);
    }
    const std::vector<float> logits = random_logits(7, 999);  // however the sum rounds, the last draw is a kept one
    CHECK(std::isfinite(logits[static_cast<size_t>(sample(logits, {}, below_1))]));
  }

  TEST_CASE("frequencies of evenly spaced u follow the probabilities") {
    const std::vector<float> logits = {0.5F, -1, 2, -inf, 0};
    const SamplerOptions options{.temperature = 0.8, .top_k = 3};
    const std::vector<double> p = probabilities(logits, options);
    std::vector<double> seen(logits.size());
    constexpr int n = 10'000;
    for (int i = 0; i < n; ++i) seen[static_cast<size_t>(sample(logits, options, (i + 0.5) / n))] += 1.0 / n;
    for (size_t i = 0; i < p.size(); ++i) CHECK(std::abs(seen[i] - p[i]) <= 1.0 / n);
  }

  TEST_CASE("penalties: each by its formula, repetition first, right for negative logits") {
    struct Row {
      const char* what;
      SamplerOptions options;
      std::vector<float> want;
    };
    const std::vector<float> logits = {2, -2, 0, 4, -inf, 1};
    const TokenCounts counts = {{0, 0}, {1, 3}, {2, 1}, {3, 2}, {4, 1}};  // 0 in the prompt alone, 5 nowhere
    const Row rows[] = {
        {"nothing", {}, {2, -2, 0, 4, -inf, 1}},
        {"repetition, l/r above 0 and l·r below", {.repetition_penalty = 2}, {1, -4, 0, 2, -inf, 1}},
        {"repetition below 1 is a reward", {.repetition_penalty = 0.5}, {4, -1, 0, 8, -inf, 1}},
        {"presence, of what was generated", {.presence_penalty = 0.5}, {2, -2.5, -0.5, 3.5, -inf, 1}},
        {"frequency, once a time", {.frequency_penalty = 0.5}, {2, -3.5, -0.5, 3, -inf, 1}},
        {"a negative one is a reward", {.frequency_penalty = -1}, {2, 1, 1, 6, -inf, 1}},
        {"all, repetition first",
         {.repetition_penalty = 2, .presence_penalty = 1, .frequency_penalty = 0.5},
         {1, -6.5, -1.5, 0, -inf, 1}},
    };
    for (const Row& row : rows) {
      CAPTURE(row.what);
      CHECK(penalise(logits, row.options, counts) == row.want);
      CHECK(penalise(logits, row.options, {}) == logits);
    }
    // Penalties work on the logits, so before the temperature, and on greedy choices, too.
    CHECK(sample(penalise(logits, {.presence_penalty = 4}, counts), {.temperature = 0}, 0) == 0);
    const std::vector<float> largest = {3e38F, -3e38F};  // stays finite
    CHECK(penalise(largest, {.repetition_penalty = 1e-9}, {{0, 0}})[0] == std::numeric_limits<float>::max());
    CHECK(penalise(largest, {.repetition_penalty = 1e9}, {{1, 0}})[1] == std::numeric_limits<float>::lowest());
    CHECK_THROWS_WITH_AS(penalise(logits, {}, {{6, 1}}), "sampler: token 6 has no logit; there are 6", IndexError);
    CHECK_THROWS_AS(penalise(logits, {}, {{-1, 1}}), IndexError);
    CHECK_THROWS_AS(penalise(logits, {.repetition_penalty = -1}, {}), ValueError);
  }

  TEST_CASE("log-probabilities are those of the whole softmax, the most likely first") {
    const std::vector<float> logits = {1, 3, -inf, 3, 2};
    const double normaliser = std::log(std::exp(1.0) + 2 * std::exp(3.0) + std::exp(2.0));
    CHECK(log_probability(logits, 4) == doctest::Approx(2 - normaliser).epsilon(1e-14));
    CHECK(log_probability(logits, 2) == -inf);
    const std::vector<LogProbability> top = top_log_probabilities(logits, 99);
    Ids ids;
    for (const LogProbability& p : top) {
      ids.push_back(p.id);
      CHECK(p.value == log_probability(logits, p.id));
    }
    CHECK(ids == Ids{1, 3, 4, 0, 2});
    CHECK(top_log_probabilities(logits, 2)[1].id == 3);
    CHECK(top_log_probabilities(logits, 0).empty());
    const std::vector<float> large = {1e30F, 1e30F};
    CHECK(log_probability(large, 0) == doctest::Approx(-std::log(2.0)));
    CHECK_THROWS_AS(log_probability(logits, 5), IndexError);
    CHECK_THROWS_AS(top_log_probabilities(logits, -1), ValueError);
    CHECK_THROWS_AS(top_log_probabilities(std::vector<float>{nan_f}, 1), ValueError);
  }

  TEST_CASE("bad options and logits are errors that name the value") {
    struct Row {
      std::vector<float> logits;
      SamplerOptions options;
      double u;
      std::string want;
    };
    const Row rows[] = {
        {{0},
         {.temperature = -0.5},
         0,
         "sampler: temperature must be finite and not negative: it is -0.5; 0 is greedy"},
        {{0},
         {.temperature = nan_d},
         0,
         "sampler: temperature must be finite and not negative: it is nan; 0 is greedy"},
        {{0}, {.top_k = -1}, 0, "sampler: top_k must not be negative: it is -1; 0 keeps all tokens"},
        {{0}, {.top_p = 1.5}, 0, "sampler: top_p must lie in [0, 1]: it is 1.5"},
        {{0}, {.top_p = nan_d}, 0, "sampler: top_p must lie in [0, 1]: it is nan"},
        {{0}, {.min_p = -0.1}, 0, "sampler: min_p must lie in [0, 1]: it is -0.1"},
        {{0},
         {.repetition_penalty = 0},
         0,
         "sampler: repetition_penalty must be positive and finite: it is 0; 1 changes nothing"},
        {{0}, {.presence_penalty = nan_d}, 0, "sampler: presence_penalty must be finite: it is nan; 0 changes nothing"},
        {{0},
         {.frequency_penalty = nan_d},
         0,
         "sampler: frequency_penalty must be finite: it is nan; 0 changes nothing"},
        {{0}, {}, 1, "sampler: u must lie in [0, 1): it is 1"},
        {{0}, {}, nan_d, "sampler: u must lie in [0, 1): it is nan"},
        {{}, {}, 0, "sampler: there are no logits; give one for each token of the vocabulary"},
        {{0, nan_f},
         {.temperature = 0},
         0,
         "sampler: the logit of token 1 is nan; the model has diverged or its weights are damaged"},
        {{0, inf}, {}, 0, "sampler: the logit of token 1 is inf; the model has diverged or its weights are damaged"},
        {{-inf, -inf}, {}, 0, "sampler: all 2 logits are -inf; at least one token must be possible"},
    };
    for (const Row& row : rows) {
      CHECK_THROWS_WITH_AS(sample(row.logits, row.options, row.u), row.want.c_str(), ValueError);
    }
    CHECK_THROWS_AS(top_p_ids(std::vector<double>{0, 0}, 0.5), ValueError);
    CHECK_THROWS_AS(top_p_ids(std::vector<double>{1, -1}, 0.5), ValueError);
  }
}
