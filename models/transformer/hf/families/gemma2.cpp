// Gemma 2: four norms a layer with gain 1 + w, soft caps, every other layer sliding. Gemma Team 2024.
// Next: gemma3_text.cpp.
#include "../common_fields.h"
#include "gemma.h"

namespace tapestry::hf {
namespace {

void fields(ConfigFields& f, TransformerConfig& c) {
  gemma_fields(f, c);
  rope_fields(f, c, 10000);
  gemma_window_fields(f, c, 2);
}

constexpr std::span<const NameRow> names[] = {embedding_names, attention_names, feed_forward_names, gemma_norm_names};

}  // namespace

const Family gemma2{.model_type = "gemma2",
                    .architecture = "Gemma2ForCausalLM",
                    .fields = fields,
                    .names = names,
                    .ignored = rope_buffers};

}  // namespace tapestry::hf
