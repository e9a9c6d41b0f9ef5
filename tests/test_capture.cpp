// test_capture.cpp: activations by module path, and the module hooks they are heard with.
// Not gradient hooks (test_hooks.cpp).
#include "../nn/capture.h"

#include <doctest/doctest.h>

#include "../autograd/tools/checkpoint.h"
#include "../models/transformer/lm.h"
#include "../nn/containers.h"
#include "../nn/linear.h"
#include "../ops/ops.h"

using namespace tapestry;
using V = std::vector<double>;

namespace {

V values(const Tensor& x) { return x.to_vector<double>(); }

Transformer small() {
  manual_seed(1);
  return Transformer(
      {.vocab_size = 7, .max_seq_len = 8, .n_layers = 3, .n_heads = 2, .n_kv_heads = 1, .d_model = 8, .d_ff = 12});
}

std::vector<std::string> paths(const Capture& c) {
  std::vector<std::string> list;
  for (const CapturedOutput& a : c.activations()) list.push_back(a.path);
  return list;
}

}  // namespace

TEST_SUITE("capture") {
  TEST_CASE("named activations in call order, while the handle lives") {
    const Transformer model = small();
    const Tensor tokens = reshape(arange(int64_t{6}), {2, 3});
    std::vector<std::string> heard_paths;
    {
      Capture heard = capture(model, "layers.*.attention");
      const Tensor plain = model(tokens);
      CHECK(paths(heard) == std::vector<std::string>{"layers.0.attention", "layers.1.attention", "layers.2.attention"});
      CHECK(heard["layers.1.attention"].shape() == Shape{2, 3, 8});
      CHECK_FALSE(heard["layers.1.attention"].requires_grad());
      const V first = values(heard["layers.0.attention"]);
      (void)model(reshape(arange(int64_t{3}), {1, 3}));
      CHECK(heard.activations().size() == 6);
      CHECK(heard["layers.0.attention"].shape() == Shape{1, 3, 8});  // the latest
      CHECK(values(heard.activations()[0].value) == first);
      heard.clear();
      CHECK_THROWS_WITH_AS((void)heard["layers.0.attention"],
                           "capture: nothing was heard of 'layers.0.attention' in 0 calls", ValueError);
      Capture moved = std::move(heard);
      CHECK(values(model(tokens)) == values(plain));
      CHECK(moved.activations().size() == 3);
      heard = std::move(moved);
    }
    const Capture other = capture(model, "norm");
    (void)model(tokens);
    CHECK(paths(other) == std::vector<std::string>{"norm"});
  }

  TEST_CASE("attached activations lead to gradients; the root and single characters can be meant") {
    const Sequential model(Linear(2, 3), Linear(3, 2));
    const Capture heard = capture(model, "?", {.attached = true}), whole = capture(model, "");
    const Tensor loss = sum(square(model(ones({1, 2}))));
    CHECK(paths(heard) == std::vector<std::string>{"0", "1"});
    CHECK(paths(whole) == std::vector<std::string>{""});
    heard["1"].retain_grad();
    loss.backward();
    CHECK(values(heard["1"].grad()) == values(heard["1"] * 2.0));
    CHECK(values(whole[""]) == values(heard["1"]));
  }

  TEST_CASE("hooks replace and are removed; a checkpoint that runs again is heard again") {
    const Sequential model(Linear(2, 2), Linear(2, 2));
    HookHandle doubled = model.register_forward_hook([](const Tensor& y) { return y * 2.0; });
    const Tensor x = ones({1, 2});
    const V twice = values(model(x));
    doubled.remove();
    const V once = values(model(x));
    for (size_t i = 0; i < 2; ++i) CHECK(twice[i] == doctest::Approx(2 * once[i]));
    const Capture heard = capture(model, "0");
    const Tensor y = checkpoint([&](const Tensor& t) { return model(t); }, x);
    CHECK(heard.activations().size() == 1);
    sum(y).backward();
    CHECK(heard.activations().size() == 2);
  }

  TEST_CASE("a pattern that fits no module names the nearest") {
    const Transformer model = small();
    CHECK_THROWS_WITH_AS((void)capture(model, "layers.1.atention"),
                         doctest::Contains("near are 'layers.1.attention', "), ValueError);
    CHECK_THROWS_WITH_AS((void)capture(Linear(1, 1), "weight"), "capture: no module's path fits 'weight'; near are ''",
                         ValueError);
  }
}
