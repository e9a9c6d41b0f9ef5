// What counting alone achieves on held-out text: the losses a trained model must beat.
// Not a language model to sample from.
// Next: words.h.
#pragma once

#include <cstdint>
#include <span>

namespace tapestry {

/// Mean −ln p of held_out[1 …] in nats a token, the same targets `EvalWindows` scores, under frequencies counted in
/// `train` with add-one smoothing: p(b) = (c(b) + 1) / (n + vocab_size). Throws ValueError if there are fewer than two
/// held-out tokens and IndexError for an id outside [0, vocab_size).
double unigram_loss(std::span<const int32_t> train, std::span<const int32_t> held_out, int64_t vocab_size);

/// The same for pairs, interpolated with the unigram by Witten & Bell (1991): with c(a, b) the count of b after a, c(a)
/// the count of pairs that begin with a, and d(a) the number of different b among them,
/// p(b | a) = (c(a, b) + d(a) · p(b)) / (c(a) + d(a)), and p(b) where a never began a pair.
double bigram_loss(std::span<const int32_t> train, std::span<const int32_t> held_out, int64_t vocab_size);

}  // namespace tapestry
