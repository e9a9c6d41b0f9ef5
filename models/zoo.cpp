// Rows of the model table.
// Next: ../tests/test_zoo.cpp, which runs them.
#include "zoo.h"

#include <array>

#include "../autograd/random.h"
#include "../nn/visitor.h"
#include "../ops/ops.h"
#include "lenet.h"
#include "lstm_lm.h"
#include "mlp.h"
#include "transformer/lm.h"

namespace tapestry {
namespace {

TinyModel tiny_mlp(DType dtype, uint64_t seed) {
  manual_seed(seed);
  const auto m = std::make_shared<Mlp>(std::vector<int64_t>{3, 8, 2}, MlpOptions{.activation = Activation::tanh});
  to(*m, dtype);
  const Tensor x = randn({6, 3}, dtype), y = randn({6, 2}, dtype);
  return {m, [raw = m.get(), x, y] { return mse_loss((*raw)(x), y); }};
}

constexpr std::array<std::string_view, 4> mlp_parameters = {"layers.0.weight", "layers.0.bias", "layers.1.weight",
                                                            "layers.1.bias"};

TinyModel tiny_transformer(DType dtype, uint64_t seed) {
  manual_seed(seed);
  const auto m = std::make_shared<Transformer>(TransformerConfig{
      .vocab_size = 7, .max_seq_len = 6, .n_layers = 2, .n_heads = 2, .n_kv_heads = 1, .d_model = 8, .d_ff = 6});
  to(*m, dtype);
  const Tensor x = randint(0, 7, {2, 5}), y = randint(0, 7, {2, 5});
  return {m, [raw = m.get(), x, y] { return cross_entropy((*raw)(x), y); }};
}

constexpr std::array<std::string_view, 21> transformer_parameters = {
    "token_embedding.weight",
    "layers.0.attention_norm.weight",
    "layers.0.attention.q_proj.weight",
    "layers.0.attention.k_proj.weight",
    "layers.0.attention.v_proj.weight",
    "layers.0.attention.o_proj.weight",
    "layers.0.feed_forward_norm.weight",
    "layers.0.feed_forward.gate_proj.weight",
    "layers.0.feed_forward.up_proj.weight",
    "layers.0.feed_forward.down_proj.weight",
    "layers.1.attention_norm.weight",
    "layers.1.attention.q_proj.weight",
    "layers.1.attention.k_proj.weight",
    "layers.1.attention.v_proj.weight",
    "layers.1.attention.o_proj.weight",
    "layers.1.feed_forward_norm.weight",
    "layers.1.feed_forward.gate_proj.weight",
    "layers.1.feed_forward.up_proj.weight",
    "layers.1.feed_forward.down_proj.weight",
    "norm.weight",
    "lm_head.weight",
};

/// What the plain row leaves out: experts, a window, normalised queries and keys, caps, learned positions, tied weights.
TinyModel tiny_mixture(DType dtype, uint64_t seed) {
  manual_seed(seed);
  const auto m = std::make_shared<Transformer>(TransformerConfig{.vocab_size = 7,
                                                                 .max_seq_len = 6,
                                                                 .n_layers = 2,
                                                                 .n_heads = 2,
                                                                 .n_kv_heads = 1,
                                                                 .d_model = 8,
                                                                 .d_ff = 6,
                                                                 .norm_placement = NormPlacement::double_norm,
                                                                 .positions = Positions::learned,
                                                                 .window = 3,
                                                                 .layer_types = every_kth_full(2, 2),
                                                                 .qk_norm = QkNorm::head,
                                                                 .attention_soft_cap = 5,
                                                                 .n_experts = 2,
                                                                 .expert_layers = {false, true},
                                                                 .tied_embeddings = true,
                                                                 .final_soft_cap = 8});
  to(*m, dtype);
  const Tensor x = randint(0, 7, {2, 5}), y = randint(0, 7, {2, 5});
  return {m, [raw = m.get(), x, y] { return raw->loss(x, y, {.z_loss = 1e-3, .balance_loss = 1e-2}); }};
}

constexpr std::array<std::string_view, 33> mixture_parameters = {
    "token_embedding.weight",
    "position_embedding.weight",
    "layers.0.attention_norm.weight",
    "layers.0.attention.q_proj.weight",
    "layers.0.attention.k_proj.weight",
    "layers.0.attention.v_proj.weight",
    "layers.0.attention.o_proj.weight",
    "layers.0.attention.q_norm.weight",
    "layers.0.attention.k_norm.weight",
    "layers.0.attention_post_norm.weight",
    "layers.0.feed_forward_norm.weight",
    "layers.0.feed_forward.gate_proj.weight",
    "layers.0.feed_forward.up_proj.weight",
    "layers.0.feed_forward.down_proj.weight",
    "layers.0.feed_forward_post_norm.weight",
    "layers.1.attention_norm.weight",
    "layers.1.attention.q_proj.weight",
    "layers.1.attention.k_proj.weight",
    "layers.1.attention.v_proj.weight",
    "layers.1.attention.o_proj.weight",
    "layers.1.attention.q_norm.weight",
    "layers.1.attention.k_norm.weight",
    "layers.1.attention_post_norm.weight",
    "layers.1.feed_forward_norm.weight",
    "layers.1.feed_forward.router.weight",
    "layers.1.feed_forward.experts.0.gate_proj.weight",
    "layers.1.feed_forward.experts.0.up_proj.weight",
    "layers.1.feed_forward.experts.0.down_proj.weight",
    "layers.1.feed_forward.experts.1.gate_proj.weight",
    "layers.1.feed_forward.experts.1.up_proj.weight",
    "layers.1.feed_forward.experts.1.down_proj.weight",
    "layers.1.feed_forward_post_norm.weight",
    "norm.weight",
};

TinyModel tiny_lstm_lm(DType dtype, uint64_t seed) {
  manual_seed(seed);
  const auto m = std::make_shared<LstmLm>(LstmLmConfig{.vocab_size = 5, .d_model = 4, .hidden_size = 6, .n_layers = 2});
  to(*m, dtype);
  const Tensor x = randint(0, 5, {2, 4}), y = randint(0, 5, {2, 4});
  return {m, [raw = m.get(), x, y] { return raw->loss(x, y); }};
}

constexpr std::array<std::string_view, 11> lstm_lm_parameters = {
    "token_embedding.weight", "lstm.weight_ih_l0", "lstm.weight_hh_l0", "lstm.bias_ih_l0",
    "lstm.bias_hh_l0",        "lstm.weight_ih_l1", "lstm.weight_hh_l1", "lstm.bias_ih_l1",
    "lstm.bias_hh_l1",        "lm_head.weight",    "lm_head.bias",
};

TinyModel tiny_lenet(DType dtype, uint64_t seed) {
  manual_seed(seed);
  const auto m = std::make_shared<LeNet>(3);
  to(*m, dtype);
  const Tensor x = rand({4, 1, 28, 28}, dtype), y = randint(0, 3, {4});
  return {m, [raw = m.get(), x, y] { return cross_entropy((*raw)(x), y); }};
}

constexpr std::array<std::string_view, 10> lenet_parameters = {
    "conv1.weight", "conv1.bias", "conv2.weight", "conv2.bias", "fc1.weight",
    "fc1.bias",     "fc2.weight", "fc2.bias",     "fc3.weight", "fc3.bias",
};

constexpr std::array table{
    ZooRow{.name = "mlp", .make = tiny_mlp, .parameters = mlp_parameters},
    ZooRow{.name = "lenet", .make = tiny_lenet, .parameters = lenet_parameters},
    ZooRow{.name = "lstm_lm", .make = tiny_lstm_lm, .parameters = lstm_lm_parameters},
    ZooRow{.name = "transformer", .make = tiny_transformer, .parameters = transformer_parameters},
    ZooRow{.name = "transformer_mixture", .make = tiny_mixture, .parameters = mixture_parameters},
};

}  // namespace

std::span<const ZooRow> zoo() { return table; }

}  // namespace tapestry
