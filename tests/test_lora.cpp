// Low-rank adapters: what they add, what trains, merging, and taking them away.
// Not here: one adapter against PyTorch's values (test_golden_nn.cpp), their files.
// Next: ../nn/lora.cpp.
#include <doctest/doctest.h>

#include <cstring>

#include "../autograd/error.h"
#include "../autograd/grad_mode.h"
#include "../autograd/random.h"
#include "../autograd/tools/gradcheck.h"
#include "../models/transformer/lm.h"
#include "../nn/lora.h"
#include "../nn/visitor.h"
#include "../ops/ops.h"
#include "../optim/adamw.h"
#include "../optim/optimizer.h"

using namespace tapestry;

namespace {

Transformer tiny(DType dtype) {
  manual_seed(3);
  Transformer model(
      {.vocab_size = 7, .max_seq_len = 6, .n_layers = 2, .n_heads = 2, .n_kv_heads = 1, .d_model = 8, .d_ff = 6});
  to(model, dtype);
  return model;
}

const Tensor tokens = tensor<int64_t>({{1, 2, 3, 4, 0, 2}, {6, 5, 4, 3, 2, 1}});

std::vector<std::string> trained(const Module& m) {
  std::vector<std::string> names;
  for (const auto& [name, p] : named_parameters(m))
    if (p.requires_grad()) names.push_back(name);
  return names;
}

/// Gives every B other values than zeros.
void disturb(Module& m) {
  for (const auto& [name, p] : named_parameters(m))
    if (name.ends_with("lora_B.weight")) p.detach().copy_(randn(p.shape(), p.dtype()) * 0.3);
}

bool same_bits(const Tensor& a, const Tensor& b) {
  return a.dtype() == b.dtype() && a.shape() == b.shape() &&
         std::memcmp(dense(a).raw_data(), dense(b).raw_data(), static_cast<size_t>(a.numel() * size_of(a.dtype()))) ==
             0;
}

}  // namespace

TEST_SUITE("lora") {
  TEST_CASE("adapters change nothing at first, and are all that trains") {
    Transformer model = tiny(DType::f64);
    const Tensor before = model(tokens);
    const auto paths = add_lora(model, {.rank = 2, .alpha = 8, .targets = {"*.q_proj", "layers.1.*.v_proj"}});
    CHECK(paths == std::vector<std::string>{"layers.0.attention.q_proj", "layers.1.attention.q_proj",
                                            "layers.1.attention.v_proj"});
    CHECK(same_bits(model(tokens), before));
    CHECK(trained(model).size() == 6);
    for (const std::string& name : trained(model)) CHECK(name.find(".lora_") != std::string::npos);
    CHECK(lora_state_dict(model).size() == 6);
    CHECK(model.layers[0].attention.q_proj->adapter->a.shape() == Shape{2, 8});
    CHECK(model.layers[0].attention.q_proj->adapter->scale == 4);
    model.loss(tokens, tokens).backward();
    for (const auto& [name, p] : named_parameters(model)) CHECK(p.grad().defined() == p.requires_grad());
  }

  TEST_CASE("a step of training moves the adapters alone, and the derivatives are those of finite differences") {
    Transformer model = tiny(DType::f64);
    add_lora(model, {.rank = 2, .targets = {"*_proj"}});
    disturb(model);
    std::vector<Tensor> values;
    for (const auto& [name, p] : named_parameters(model))
      if (p.requires_grad()) values.push_back(p);
    const auto loss = [&](std::span<const Tensor> leaves) {
      size_t i = 0;
      for_each_parameter(model, [&](const std::string& name, Parameter& p) {
        if (name.find(".lora_") != std::string::npos) static_cast<Tensor&>(p) = leaves[i++];
      });
      return model.loss(tokens, tokens);
    };
    const auto check = gradcheck(loss, values, {.full_limit = 0});
    CHECK_MESSAGE(check.ok, check.message);
    Transformer fresh = tiny(DType::f32);
    add_lora(fresh, {.rank = 2, .targets = {"*.q_proj"}});
    disturb(fresh);
    const StateDict before = state_dict(Transformer(fresh));
    Optimizer<AdamW> optimizer(named_parameters(fresh), {.lr = 0.1, .weight_decay = 0.1});
    fresh.loss(tokens, tokens).backward();
    optimizer.step();
    for (const auto& [name, value] : state_dict(fresh))
      CHECK(same_bits(value, before.at(name)) == (name.find(".lora_") == std::string::npos));
  }

  TEST_CASE("merged weights give the same outputs, and come off bit for bit") {
    Transformer model = tiny(DType::f64);
    add_lora(model, {.rank = 3, .alpha = 5, .targets = {"*_proj", "lm_head"}});
    disturb(model);
    const Tensor beside = model(tokens), weight = clone(model.layers[0].attention.q_proj->weight.detach());
    merge_lora(model);
    CHECK(max(abs(model(tokens) - beside)).item() < 1e-12);
    CHECK_FALSE(same_bits(model.layers[0].attention.q_proj->weight, weight));
    CHECK_THROWS_WITH_AS(merge_lora(model), "merge_lora: the adapter of layers.0.attention.q_proj is already merged",
                         ValueError);
    unmerge_lora(model);
    CHECK(same_bits(model(tokens), beside));
    CHECK(same_bits(model.layers[0].attention.q_proj->weight, weight));
    CHECK_THROWS_AS(unmerge_lora(model), ValueError);
    fold_lora(model);
    CHECK(max(abs(model(tokens) - beside)).item() < 1e-12);
    CHECK(trained(model).size() == 21);
    CHECK_THROWS_WITH_AS(merge_lora(model), "merge_lora: no Linear has an adapter; add_lora gives them", ValueError);
  }

  TEST_CASE("merged adapters are saved, converted and folded as such") {
    Transformer model = tiny(DType::f32);
    const LoraOptions options{.rank = 3, .alpha = 5, .targets = {"*_proj", "lm_head"}};
    add_lora(model, options);
    Transformer other = model, third = tiny(DType::f32);
    disturb(model);
    const Tensor beside = model(tokens);
    merge_lora(model);
    const StateDict merged = state_dict(model);
    CHECK_THROWS_AS(load_state_dict(other, merged), Error);  // would add the product twice
    CHECK_THROWS_AS(load_state_dict(third, merged), Error);
    merge_lora(other);
    load_state_dict(other, merged);
    unmerge_lora(other);
    CHECK(same_bits(other(tokens), beside));
    to(model, DType::f64);
    unmerge_lora(model);
    CHECK(model.lm_head->weight.dtype() == DType::f64);
    CHECK(max(abs(to(model(tokens), DType::f32) - beside)).item() < 1e-5);
    merge_lora(model);
    fold_lora(model);
    CHECK(max(abs(to(model(tokens), DType::f32) - beside)).item() < 1e-5);
    CHECK(state_dict(model).size() == 21);
  }

  TEST_CASE("a frozen bf16 base trains adapters in f32") {
    Transformer model = tiny(DType::bf16);
    add_lora(model, {.rank = 2, .dropout = 0.1, .targets = {"*.q_proj", "*.down_proj"}});
    disturb(model);
    CHECK(model(tokens).dtype() == DType::bf16);
    to(model.loss(tokens, tokens), DType::f32).backward();
    for (const auto& [name, p] : named_parameters(model)) {
      if (!p.requires_grad()) continue;
      CHECK(p.dtype() == DType::f32);
      CHECK(p.grad().dtype() == DType::f32);
      CHECK(norm(p.grad()).item() > 0);
    }
  }

  TEST_CASE("dropout of an adapter is there while training, and only then") {
    Transformer model = tiny(DType::f32);
    add_lora(model, {.rank = 2, .dropout = 0.5, .targets = {"*.q_proj"}});
    disturb(model);
    CHECK_FALSE(same_bits(model(tokens), model(tokens)));
    model.eval();
    CHECK(same_bits(model(tokens), model(tokens)));
  }

  TEST_CASE("the head of a loss without logits sees its adapter") {
    Transformer model = tiny(DType::f64);
    add_lora(model, {.rank = 2, .targets = {"lm_head"}});
    disturb(model);
    CHECK(std::abs(model.loss(tokens, tokens).item() - cross_entropy(model(tokens), tokens).item()) < 1e-12);
  }

  TEST_CASE("bad options are refused by name") {
    Transformer model = tiny(DType::f32);
    CHECK_THROWS_WITH_AS(add_lora(model, {.targets = {"*.q_proj", "*.query"}}),
                         "add_lora: target '*.query' matches no Linear; paths are as layers.0.attention.q_proj",
                         ValueError);
    CHECK_THROWS_WITH_AS(add_lora(model, {.rank = 0}), "add_lora: rank is 0; it must be at least 1", ValueError);
    CHECK_THROWS_AS(add_lora(model, {.alpha = 0}), ValueError);
    CHECK_THROWS_AS(add_lora(model, {.dropout = 1}), ValueError);
    CHECK_THROWS_WITH_AS(add_lora(model, {.targets = {}}), "add_lora: there are no targets", ValueError);
    CHECK(trained(model).size() == 21);  // nothing was frozen
    add_lora(model, {});
    CHECK_THROWS_WITH_AS(add_lora(model, {}),
                         "add_lora: layers.0.attention.q_proj has an adapter; fold_lora takes it away", ValueError);
  }
}
