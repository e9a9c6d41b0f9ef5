// Choosing the next token from logits: pure functions of (logits, options, u).
// Not here: where u comes from and the generation loop around it.
// Next: sampler.cpp.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <vector>

namespace tapestry {

/// What changes the logits and what narrows the distribution, in this order: repetition penalty, presence and frequency
/// penalties (`penalise`), temperature, top-k, top-p, min-p (`candidates`). Defaults change nothing.
struct SamplerOptions {
  double temperature = 1;         ///< logits are divided by it; 0 is greedy: the largest logit, the lowest id on ties
  int64_t top_k = 0;              ///< keep the k most likely tokens; 0 keeps all
  double top_p = 1;               ///< keep the most likely tokens while the sum before the token is < top_p, always one
  double min_p = 0;               ///< keep tokens with probability ≥ min_p · the largest; Nguyen et al. 2024
  double repetition_penalty = 1;  ///< r: logits of tokens seen become l/r where l > 0, else l·r; Keskar et al. 2019
  double presence_penalty = 0;    ///< is subtracted from the logits of tokens generated
  double frequency_penalty = 0;   ///< times the number of times it was generated, is subtracted from a token's logit
};

/// How many times each token was generated. A token seen in the prompt alone is there with 0.
using TokenCounts = std::map<int32_t, int64_t>;

/// The logits after the penalties: the repetition penalty for every token of `counts`, those of the prompt among them,
/// then presence and frequency for those generated. Throws IndexError for a token without a logit, ValueError for bad
/// options.
std::vector<float> penalise(std::span<const float> logits, const SamplerOptions& options, const TokenCounts& counts);

/// A token that may be drawn and its renormalised probability, which is never 0.
struct Candidate {
  int32_t id = 0;
  double probability = 0;
};

/// Throws ValueError, naming the value: temperature negative or not finite, top_k negative, top_p or min_p outside
/// [0, 1], repetition_penalty not positive and finite, presence_penalty or frequency_penalty not finite.
void validate(const SamplerOptions& options);

/// The tokens that may be drawn, in order of id; their probabilities sum to 1. Probabilities are softmax(logits / T) in
/// f64; "more likely" orders by (probability descending, id ascending), so ties are cut exactly. Top-p (Holtzman et al.
/// 2020) works on what top-k left, renormalised; min-p on what top-p left, whose largest is still the largest. Logits of
/// −inf are never kept. The penalties are not applied here: hand over what `penalise` returns. Throws ValueError for bad
/// options, empty logits, a NaN or +inf among them, or all −inf.
std::vector<Candidate> candidates(std::span<const float> logits, const SamplerOptions& options);

/// Ids of `candidates`.
std::vector<int32_t> kept_ids(std::span<const float> logits, const SamplerOptions& options);

/// `candidates` as one probability for each id, 0 where the token is not kept.
std::vector<double> probabilities(std::span<const float> logits, const SamplerOptions& options);

/// Id drawn by inverting the cumulative sum over `candidates` (in order of id) at u in [0, 1): the first one whose sum
/// exceeds u. A token of probability 0 is never drawn. Throws ValueError as `candidates` does and for u outside [0, 1).
int32_t sample(std::span<const float> logits, const SamplerOptions& options, double u);

/// A token and the logarithm of its probability.
struct LogProbability {
  int32_t id = 0;
  double value = 0;
};

/// ln softmax(logits)[id] in f64: of the model's own distribution, if these are its own logits. Throws IndexError for an
/// id without a logit, ValueError as `candidates` does for bad logits.
double log_probability(std::span<const float> logits, int32_t id);

/// The n most likely tokens, the most likely first, ties by id; all of them if n is larger than the vocabulary. Throws
/// ValueError for a negative n, or bad logits.
std::vector<LogProbability> top_log_probabilities(std::span<const float> logits, int64_t n);

/// The top-p rule on given probabilities (sum 1): ids kept, in order of id. Entries of 0 are not kept. Throws ValueError
/// for top_p outside [0, 1], a probability that is negative or not finite, or none that is positive.
std::vector<int32_t> top_p_ids(std::span<const double> probabilities, double top_p);

}  // namespace tapestry
