// Layers, attention, blocks and language-model losses against values and gradients of PyTorch.
// Not here: whole models (test_golden_models.cpp).
// Next: golden_layer_ops.cpp, golden_attention_ops.cpp.
#include <doctest/doctest.h>

#include "../ops/ops.h"
#include "golden_check.h"

using namespace tapestry;
using namespace tapestry::golden;

namespace {

// nn/sdpa:c5: a query that may attend nothing gives 0 with no gradient; the stored one is the average of all values.
Tensor blind_query_is_zero(const FixtureCase& c, const Tensor& stored, const Tensor&) {
  const Tensor blind = all(*c.find("in/masked"), {-1}, true);
  return masked_fill(stored, blind, 0);
}
Tensor values_of_seeing_queries(const FixtureCase& c, const Tensor& stored, const Tensor&) {
  const Tensor blind = all(*c.find("in/masked"), {-1}, true);
  const Tensor cot = *c.find("cot/y");
  return stored - sum(where(blind, cot, 0.0), {-2}, true) / static_cast<double>(stored.size(-2));
}

}  // namespace

TEST_SUITE("golden_nn") {
  TEST_CASE("layers") {
    constexpr std::string_view fixtures[] = {"nn/embedding", "nn/linear",       "nn/activations",
                                             "nn/rmsnorm",   "nn/rmsnorm_bf16", "nn/layernorm",
                                             "nn/ffn",       "nn/glu",          "nn/absolute_positions"};
    check_fixtures(fixtures);
  }

  TEST_CASE("softmax, losses and sampling") {
    constexpr std::string_view fixtures[] = {"nn/softmax", "nn/cross_entropy", "nn/z_loss_perplexity", "nn/softcap",
                                             "nn/sampling"};
    check_fixtures(fixtures);
  }

  TEST_CASE("attention") {
    constexpr std::string_view fixtures[] = {"nn/rope_adjacent",
                                             "nn/rope_half",
                                             "nn/rope_relative",
                                             "nn/sdpa",
                                             "nn/gqa_mqa",
                                             "nn/mha",
                                             "nn/blocks",
                                             "nn/sliding_window",
                                             "nn/rope_scaling",
                                             "nn/qk_norm",
                                             "nn/rope_layout_conversion",
                                             "nn/lora",
                                             "cs336/sdpa",
                                             "cs336/rope"};
    constexpr Policy policies[] = {{"nn/sdpa:c5", "out/y", blind_query_is_zero},
                                   {"nn/sdpa:c5", "grad/in/v", values_of_seeing_queries}};
    check_fixtures(fixtures, {}, policies);
  }
}
