// The families, one file each.
// Not here: what a family is (../family.h).
// Next: llama.cpp.
#pragma once

#include "../family.h"

namespace tapestry::hf {

extern const Family llama, qwen2, qwen3, mistral, gpt2, gemma2, gemma3_text, olmo2, phi3, smollm3, minimind, qwen3_moe,
    mixtral, cs336;

}  // namespace tapestry::hf
