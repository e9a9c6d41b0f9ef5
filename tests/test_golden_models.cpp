// Whole models against PyTorch: the Transformer, its cache, its greedy text, and eight steps of training.
// Not here: layers (test_golden_nn.cpp).
// Next: golden_model_ops.cpp.
#include <doctest/doctest.h>

#include "golden_check.h"

TEST_SUITE("golden_models") {
  TEST_CASE("the Transformer") {
    constexpr std::string_view fixtures[] = {"nn/seed_transformer", "nn/kv_cache", "models/cs336-tiny", "optim/train"};
    tapestry::golden::check_fixtures(fixtures);
  }
}
