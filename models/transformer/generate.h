// Writing on: a Transformer's own tokens, one after the other, for one prompt or for several side by side.
// Not here: text (generate_text.h), or the choice of one token (sampler.h).
// Next: decoder.h.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "decoder.h"
#include "writer.h"

namespace tapestry {

/// What of the options concerns reading.
DecoderOptions decoder_options(const GenerateOptions& options);

/// Draws tokens after `prompt` and gives each to `emit` as soon as it is drawn. ValueError for an empty prompt, one
/// longer than max_seq_len unless options.when_full is slide, or bad options; IndexError for an id out of range.
Generation generate(const Transformer& model, std::span<const int32_t> prompt, const GenerateOptions& options,
                    const std::function<void(int32_t id)>& emit);

/// Takes a token of one of the texts; false ends that text.
using Emit = std::function<bool(size_t text, int32_t id)>;

/// The same for several prompts of any lengths, read side by side. Text i is what generate() writes alone with seed
/// options.seed + i, but for the last bits of the logits, which depend on the number of rows of a product.
std::vector<Generation> generate(const Transformer& model, std::span<const std::vector<int32_t>> prompts,
                                 const GenerateOptions& options, const Emit& emit);

/// The same with a decoder that may have read something before, which the prompts follow. Its sequences are those of
/// the texts that went on to the end; the last token of a text has not been read.
std::vector<Generation> generate(Decoder& decoder, std::span<const std::vector<int32_t>> prompts,
                                 const GenerateOptions& options, const Emit& emit);

}  // namespace tapestry
