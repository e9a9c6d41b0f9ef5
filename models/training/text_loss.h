// The loss of a model on a whole text, in windows that overlap as much as one likes.
// Not here: windows for training and for its evaluation (../text/corpus.h).
// Next: step.h.
#pragma once

#include <cstdint>
#include <span>

#include "../transformer/lm.h"
#include "step.h"

namespace tapestry {

struct TextLossOptions {
  int64_t context = 0;  ///< tokens the model sees at once; 0: max_seq_len
  int64_t stride = 0;   ///< tokens a window begins after the one before; 0: context
};

/// Sum of −ln p(token | those before it in its window) over all tokens but the first. Window k reads the `context` tokens
/// from k·stride on; a token counts in the first window that predicts it, so each is predicted once. In later windows
/// what counts rests on at least context − stride + 1 tokens: stride = context is fastest, stride = 1 gives every token
/// all the context there can be, and costs a pass for each. ValueError for fewer than two tokens, a context above
/// max_seq_len, or a stride that is not 1 to context; IndexError for an id out of range.
TokenLoss text_loss(const Transformer& model, std::span<const int32_t> ids, TextLossOptions options = {});

/// loss.sum, which is in nats, in bits for each of `bytes`.
double bits_per_byte(const TokenLoss& loss, int64_t bytes);

}  // namespace tapestry
