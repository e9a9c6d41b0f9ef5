// Choosing the next token from logits: pure functions of (logits, options, u).
// Not here: where u comes from and the generation loop around it.
// Next: sampler.cpp.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace tapestry {

/// What narrows the distribution, applied in this order: temperature, top-k, top-p. Defaults change nothing.
struct SamplerOptions {
  double temperature = 1;  ///< logits are divided by it; 0 is greedy: the largest logit, the lowest id on ties
  int64_t top_k = 0;       ///< keep the k most likely tokens; 0 keeps all
  double top_p = 1;        ///< keep the most likely tokens while the sum before the token is < top_p, always one
};

/// A token that may be drawn and its renormalised probability, which is never 0.
struct Candidate {
  int32_t id = 0;
  double probability = 0;
};

/// Throws ValueError, naming the value: temperature negative or not finite, top_k negative, top_p outside [0, 1].
void validate(const SamplerOptions& options);

/// The tokens that may be drawn, in order of id; their probabilities sum to 1. Probabilities are softmax(logits / T) in
/// f64; "more likely" orders by (probability descending, id ascending), so ties are cut exactly. Top-p (Holtzman et al.
/// 2020) works on what top-k left, renormalised. Logits of −inf are never kept. Throws ValueError for bad options, empty
/// logits, a NaN or +inf among them, or all −inf.
std::vector<Candidate> candidates(std::span<const float> logits, const SamplerOptions& options);

/// Ids of `candidates`.
std::vector<int32_t> kept_ids(std::span<const float> logits, const SamplerOptions& options);

/// `candidates` as one probability for each id, 0 where the token is not kept.
std::vector<double> probabilities(std::span<const float> logits, const SamplerOptions& options);

/// Id drawn by inverting the cumulative sum over `candidates` (in order of id) at u in [0, 1): the first one whose sum
/// exceeds u. A token of probability 0 is never drawn. Throws ValueError as `candidates` does and for u outside [0, 1).
int32_t sample(std::span<const float> logits, const SamplerOptions& options, double u);

/// The top-p rule on given probabilities (sum 1): ids kept, in order of id. Entries of 0 are not kept. Throws ValueError
/// for top_p outside [0, 1], a probability that is negative or not finite, or none that is positive.
std::vector<int32_t> top_p_ids(std::span<const double> probabilities, double top_p);

}  // namespace tapestry
