// Penalties, temperature, top-k, top-p, min-p and the inverse cumulative sum.
// Not here: any random state; equal arguments give equal tokens.
// Next: ../../tests/test_sampler.cpp for the rules at ties and at the ends.
#include "sampler.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include "../../autograd/error.h"

namespace tapestry {
namespace {

bool more_likely(const Candidate& a, const Candidate& b) {
  return a.probability != b.probability ? a.probability > b.probability : a.id < b.id;
}

bool lower_id(const Candidate& a, const Candidate& b) { return a.id < b.id; }

void check_fraction(const char* name, double value) {
  if (!(value >= 0 && value <= 1)) fail<ValueError>("sampler: {} must lie in [0, 1]: it is {}", name, value);
}

void renormalise(std::vector<Candidate>& kept) {
  double sum = 0;
  for (const Candidate& c : kept) sum += c.probability;
  for (Candidate& c : kept) c.probability /= sum;
}

/// Index of the largest logit, the lowest one on ties.
size_t argmax_checked(std::span<const float> logits) {
  if (logits.empty()) fail<ValueError>("sampler: there are no logits; give one for each token of the vocabulary");
  size_t best = 0;
  for (size_t i = 0; i < logits.size(); ++i) {
    if (std::isnan(logits[i]) || logits[i] == INFINITY) {
      fail<ValueError>("sampler: the logit of token {} is {}; the model has diverged or its weights are damaged", i,
                       logits[i]);
    }
    if (logits[i] > logits[best]) best = i;
  }
  if (logits[best] == -INFINITY) {
    fail<ValueError>("sampler: all {} logits are -inf; at least one token must be possible", logits.size());
  }
  return best;
}

/// softmax(logits / T) but for its denominator; 1 for the largest logit.
double weight(float logit, double largest, double temperature) {
  return std::exp((static_cast<double>(logit) - largest) / temperature);
}

void keep_top_k(std::vector<Candidate>& kept, int64_t top_k) {
  if (top_k == 0 || static_cast<uint64_t>(top_k) >= kept.size()) return;
  const auto end = kept.begin() + top_k;
  std::nth_element(kept.begin(), end, kept.end(), more_likely);
  kept.erase(end, kept.end());
  std::sort(kept.begin(), kept.end(), lower_id);
  renormalise(kept);
}

/// Sorts only as far as the sum needs: chunks of doubling length are selected from the rest and sorted.
void keep_top_p(std::vector<Candidate>& kept, double top_p) {
  if (top_p >= 1) return;
  double sum = 0;
  size_t n = 0, sorted = 0;
  while (n < kept.size() && (n == 0 || sum < top_p)) {
    if (n == sorted) {
      const auto begin = kept.begin() + static_cast<ptrdiff_t>(sorted);
      sorted = std::min(kept.size(), std::max<size_t>(64, 2 * sorted));
      const auto end = kept.begin() + static_cast<ptrdiff_t>(sorted);
      if (end != kept.end()) std::nth_element(begin, end, kept.end(), more_likely);
      std::sort(begin, end, more_likely);
    }
    sum += kept[n++].probability;
  }
  kept.erase(kept.begin() + static_cast<ptrdiff_t>(n), kept.end());
  std::sort(kept.begin(), kept.end(), lower_id);
  renormalise(kept);
}

/// weight = p / largest p, straight from the logit, so that ties with the bound are exact.
void keep_min_p(std::vector<Candidate>& kept, std::span<const float> logits, double largest,
                const SamplerOptions& options) {
  if (options.min_p == 0) return;
  std::erase_if(kept, [&](const Candidate& c) {
    return weight(logits[static_cast<size_t>(c.id)], largest, options.temperature) < options.min_p;
  });
  renormalise(kept);
}

void check_id(std::span<const float> logits, int32_t id) {
  if (id < 0 || static_cast<size_t>(id) >= logits.size())
    fail<IndexError>("sampler: token {} has no logit; there are {}", id, logits.size());
}

/// ln softmax, from the differences to the largest logit, which are exact where it matters.
class LogSoftmax {
 public:
  explicit LogSoftmax(std::span<const float> logits) : logits_(logits), largest_(logits[argmax_checked(logits)]) {
    double sum = 0;
    for (const float l : logits) sum += std::exp(static_cast<double>(l) - largest_);
    log_sum_ = std::log(sum);
  }
  double operator()(int32_t id) const {
    return static_cast<double>(logits_[static_cast<size_t>(id)]) - largest_ - log_sum_;
  }

 private:
  std::span<const float> logits_;
  double largest_, log_sum_ = 0;
};

std::vector<int32_t> ids_of(const std::vector<Candidate>& kept) {
  std::vector<int32_t> ids;
  ids.reserve(kept.size());
  for (const Candidate& c : kept) ids.push_back(c.id);
  return ids;
}

}  // namespace

void validate(const SamplerOptions& options) {
  if (!std::isfinite(options.temperature) || options.temperature < 0) {
    fail<ValueError>("sampler: temperature must be finite and not negative: it is {}; 0 is greedy",
                     options.temperature);
  }
  if (options.top_k < 0) {
    fail<ValueError>("sampler: top_k must not be negative: it is {}; 0 keeps all tokens", options.top_k);
  }
  check_fraction("top_p", options.top_p);
  check_fraction("min_p", options.min_p);
  if (!(options.repetition_penalty > 0) || !std::isfinite(options.repetition_penalty))
    fail<ValueError>("sampler: repetition_penalty must be positive and finite: it is {}; 1 changes nothing",
                     options.repetition_penalty);
  for (const auto& [name, value] :
       {std::pair{"presence_penalty", options.presence_penalty}, {"frequency_penalty", options.frequency_penalty}})
    if (!std::isfinite(value)) fail<ValueError>("sampler: {} must be finite: it is {}; 0 changes nothing", name, value);
}

std::vector<float> penalise(std::span<const float> logits, const SamplerOptions& options, const TokenCounts& counts) {
  validate(options);
  std::vector<float> changed(logits.begin(), logits.end());
  for (const auto& [id, count] : counts) {
    check_id(logits, id);
    double l = logits[static_cast<size_t>(id)];
    // A penalty must not turn what cannot be drawn, or what is wrong, into something else.
    if (!std::isfinite(l)) continue;
    const double r = options.repetition_penalty;
    l = l > 0 ? l / r : l * r;
    if (count > 0) l -= options.presence_penalty + options.frequency_penalty * static_cast<double>(count);
    constexpr double most = std::numeric_limits<float>::max();
    changed[static_cast<size_t>(id)] = static_cast<float>(std::clamp(l, -most, most));
  }
  return changed;
}

std::vector<Candidate> candidates(std::span<const float> logits, const SamplerOptions& options) {
  validate(options);
  const size_t best = argmax_checked(logits);
  if (options.temperature == 0) return {{static_cast<int32_t>(best), 1.0}};
  const double largest = logits[best];
  std::vector<Candidate> kept;
  kept.reserve(logits.size());
  for (size_t i = 0; i < logits.size(); ++i) {
    const double w = weight(logits[i], largest, options.temperature);
    if (w > 0) kept.push_back({static_cast<int32_t>(i), w});
  }
  renormalise(kept);
  std::erase_if(kept, [](const Candidate& c) { return c.probability == 0; });
  keep_top_k(kept, options.top_k);
  keep_top_p(kept, options.top_p);
  keep_min_p(kept, logits, largest, options);
  return kept;
}

std::vector<int32_t> kept_ids(std::span<const float> logits, const SamplerOptions& options) {
  return ids_of(candidates(logits, options));
}

std::vector<double> probabilities(std::span<const float> logits, const SamplerOptions& options) {
  std::vector<double> dense(logits.size(), 0.0);
  for (const Candidate& c : candidates(logits, options)) dense[static_cast<size_t>(c.id)] = c.probability;
  return dense;
}

int32_t sample(std::span<const float> logits, const SamplerOptions& options, double u) {
  if (!(u >= 0 && u < 1)) fail<ValueError>("sampler: u must lie in [0, 1): it is {}", u);
  const std::vector<Candidate> kept = candidates(logits, options);
  double sum = 0;
  for (const Candidate& c : kept) {
    sum += c.probability;
    if (sum > u) return c.id;
  }
  return kept.back().id;  // the rounded sum ended below u
}

double log_probability(std::span<const float> logits, int32_t id) {
  check_id(logits, id);
  return LogSoftmax(logits)(id);
}

std::vector<LogProbability> top_log_probabilities(std::span<const float> logits, int64_t n) {
  if (n < 0) fail<ValueError>("sampler: {} most likely tokens; the number must not be negative", n);
  const LogSoftmax log_softmax(logits);
  std::vector<int32_t> ids(logits.size());
  std::iota(ids.begin(), ids.end(), 0);
  const auto end = ids.begin() + static_cast<ptrdiff_t>(std::min(static_cast<uint64_t>(n), ids.size()));
  std::partial_sort(ids.begin(), end, ids.end(), [&](int32_t a, int32_t b) {
    const float x = logits[static_cast<size_t>(a)], y = logits[static_cast<size_t>(b)];
    return x != y ? x > y : a < b;
  });
  std::vector<LogProbability> top;
  for (auto it = ids.begin(); it != end; ++it) top.push_back({*it, log_softmax(*it)});
  return top;
}

std::vector<int32_t> top_p_ids(std::span<const double> probabilities, double top_p) {
  check_fraction("top_p", top_p);
  std::vector<Candidate> kept;
  for (size_t i = 0; i < probabilities.size(); ++i) {
    if (!std::isfinite(probabilities[i]) || probabilities[i] < 0) {
      fail<ValueError>("sampler: the probability of token {} is {}; it must be finite and not negative", i,
                       probabilities[i]);
    }
    if (probabilities[i] > 0) kept.push_back({static_cast<int32_t>(i), probabilities[i]});
  }
  if (kept.empty()) fail<ValueError>("sampler: none of {} probabilities is positive", probabilities.size());
  keep_top_p(kept, top_p);
  return ids_of(kept);
}

}  // namespace tapestry
