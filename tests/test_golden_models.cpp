// Whole models against PyTorch: the Transformer, its cache, its greedy text, and eight steps of training.
// Not here: layers (test_golden_nn.cpp).
// Next: golden_model_ops.cpp.
#include <doctest/doctest.h>

#include "golden_check.h"

TEST_SUITE("golden_models") {
  TEST_CASE("the Transformer") {
    constexpr std::string_view fixtures[] = {"nn/seed_transformer", "nn/kv_cache", "optim/train"};
    tapestry::golden::check_fixtures(fixtures);
  }
  TEST_CASE("published families: logits, loss, every gradient, greedy text with a cache and without") {
    constexpr std::string_view fixtures[] = {
        "models/cs336-tiny",   "models/gemma2-tiny",       "models/gemma3-tiny",   "models/gpt2-tiny",
        "models/llama-tiny",   "models/minimind-tiny",     "models/mistral-tiny",  "models/mixtral-tiny",
        "models/olmo2-tiny",   "models/phi3-tiny",         "models/qwen2-tiny",    "models/qwen3-tiny",
        "models/smollm3-tiny", "models/minimind-moe-tiny", "models/qwen3-moe-tiny"};
    tapestry::golden::check_fixtures(fixtures);
  }
}
