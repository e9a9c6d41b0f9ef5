// Modules as values: names, copies, paths, hooks, modes, state dicts; and that every leaf on the tape of a loss has a
// name. Not here: what the layers compute (test_layers.cpp). Next: ../nn/module.h.
#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>
#include <thread>

#include "../autograd/engine.h"
#include "../autograd/error.h"
#include "../autograd/grad_mode.h"
#include "../nn/activation.h"
#include "../nn/containers.h"
#include "../nn/dropout.h"
#include "../nn/linear.h"
#include "../nn/norm.h"
#include "../nn/state_dict.h"
#include "../nn/summary.h"
#include "../nn/visitor.h"
#include "../ops/ops.h"

using namespace tapestry;

namespace {

/// Remembers the path it was called under.
struct Probe : Layer<Probe> {
  mutable std::string seen = "never";
  [[nodiscard]] Tensor forward(const Tensor& x) const {
    seen = scope_path();
    return x;
  }
};

struct Block : Layer<Block> {
  Linear proj{3, 3};
  Probe probe;
  Buffer count{zeros({2})};
  [[nodiscard]] Tensor forward(const Tensor& x) const { return x + probe(proj(x)); }
  void visit(Visitor& v) override {
    v.child("proj", proj);
    v.child("probe", probe);
    v.buffer("count", count);
  }
};

struct Net : Layer<Net> {
  List<Block> layers{2, [](int64_t) { return Block(); }};
  Linear head{3, 2, LinearOptions{.bias = false}};
  Probe unlisted;
  [[nodiscard]] Tensor forward(Tensor x) const {
    for (const Block& layer : layers) x = layer(x);
    return head(unlisted(x));
  }
  void visit(Visitor& v) override {
    v.child("layers", layers);
    v.child("head", head);
  }
};

std::vector<std::string> names(const Module& m) {
  std::vector<std::string> list;
  for (const auto& [name, p] : named_parameters(m)) list.push_back(name);
  return list;
}

/// What the error of `fn` says.
template <class F>
std::string message(F&& fn) {
  try {
    fn();
  } catch (const Error& e) {
    return e.what();
  }
  return "no error";
}

const Tensor x = tensor({{1, 2, 3}, {4, 5, 6}});

}  // namespace

TEST_SUITE("module") {
  TEST_CASE("members are listed by path, in order, absent ones left out") {
    Net net;
    CHECK(names(net) == std::vector<std::string>{"layers.0.proj.weight", "layers.0.proj.bias", "layers.1.proj.weight",
                                                 "layers.1.proj.bias", "head.weight"});
    CHECK(count_parameters(net) == 2 * 12 + 6);
    REQUIRE(named_buffers(net).size() == 2);
    CHECK(named_buffers(net)[1].first == "layers.1.count");
    requires_grad_(net.layers[0], false);
    CHECK(count_parameters(net, true) == 12 + 6);
    sum(net(x)).backward();
    CHECK(!net.layers[0].proj.weight.grad().defined());
    CHECK(net.layers[1].proj.weight.grad().defined());
    zero_grad(net);
    CHECK(!net.layers[1].proj.weight.grad().defined());
  }

  TEST_CASE("a copy shares nothing, a move keeps the leaves") {
    static_assert(std::is_nothrow_move_constructible_v<Linear> && std::is_nothrow_move_constructible_v<Block>);
    static_assert(std::is_nothrow_move_constructible_v<Sequential>);
    Net net;
    requires_grad_(net.head, false);
    sum(net(x)).backward();
    const auto before = named_parameters(net);
    Net copy = net, assigned;
    assigned = net;
    for (const Net* other : {&copy, &assigned}) {
      const auto after = named_parameters(*other);
      for (size_t i = 0; i < before.size(); ++i) {
        CHECK(!after[i].second.shares_storage(before[i].second));
        CHECK(after[i].second.to_vector() == before[i].second.to_vector());
        CHECK(after[i].second.requires_grad() == before[i].second.requires_grad());
        CHECK(!after[i].second.grad().defined());
      }
      CHECK(!other->layers[0].count.shares_storage(net.layers[0].count));
    }
    const Net moved = std::move(net);
    const auto after = named_parameters(moved);
    for (size_t i = 0; i < before.size(); ++i) CHECK(after[i].second.is_same(before[i].second));

    Sequential stack(Linear(3, 3), Tanh(), Linear(3, 1));
    Sequential other = stack;
    CHECK(other.size() == 3);
    CHECK(!other.at<Linear>(0).weight.shares_storage(stack.at<Linear>(0).weight));
    CHECK(other(x).to_vector() == stack(x).to_vector());
    other = Sequential(ReLU());
    CHECK(other.size() == 1);
    CHECK_THROWS_AS(static_cast<void>(other.at<Linear>(0)), IndexError);
    CHECK_THROWS_AS(static_cast<void>(other.at<ReLU>(1)), IndexError);
  }

  TEST_CASE("a module knows its path, whatever happened to the tree") {
    Net net;
    net(x);
    CHECK(net.layers[1].probe.seen == "layers.1.probe");
    CHECK(net.unlisted.seen == "");  // as its caller: visit() does not name it
    CHECK(net.path() == "");
    CHECK(net.layers[1].path() == "layers.1");

    net.layers[1](x);  // a part called by itself keeps its place
    CHECK(net.layers[1].probe.seen == "layers.1.probe");
    net.layers.push_back(Block());  // the vector grows and everything in it moves
    net(x);
    CHECK(net.layers[2].probe.seen == "layers.2.probe");
    net.layers[0] = net.layers[2];  // an assigned module stays where it is
    net(x);
    CHECK(net.layers[0].probe.seen == "layers.0.probe");
    Block taken = net.layers[1];  // a copy is nobody's part
    taken(x);
    CHECK(taken.probe.seen == "probe");

    struct Outer : Layer<Outer> {
      Net inner;
      explicit Outer(Net n) : inner(std::move(n)) {}
      [[nodiscard]] Tensor forward(const Tensor& t) const { return inner(t); }
      void visit(Visitor& v) override { v.child("inner", inner); }
    };
    const Outer outer(std::move(net));
    outer(x);
    CHECK(outer.inner.layers[0].probe.seen == "inner.layers.0.probe");
    CHECK(outer.inner.unlisted.seen == "inner");
    CHECK(scope_path() == "");
  }

  TEST_CASE("errors name the module, and leave the scope as it was") {
    Net net;
    net.layers[1].proj = Linear(4, 3);
    const std::string text = message([&] { net(x); });
    CHECK(text.find("; in layers.1.proj") != std::string::npos);
    CHECK(scope_path() == "");
    CHECK(message([&] { net.layers[0].proj(zeros({5})); }).find("; in layers.0.proj") != std::string::npos);
  }

  TEST_CASE("nodes carry the path of the module that recorded them") {
    const Net net;
    const Tensor loss = sum(net(x));
    std::set<std::string> paths;
    for (const auto& node : tape(loss))
      if (!node->is_leaf()) paths.insert(path_of(node->path));
    CHECK(paths == std::set<std::string>{"", "layers.0", "layers.0.proj", "layers.1", "layers.1.proj", "head"});
  }

  TEST_CASE("the leaves on the tape of a loss are the trained named parameters") {
    struct Tied : Layer<Tied> {
      Linear up{3, 3, LinearOptions{.bias = false}};
      Parameter scale{ones({3})};
      [[nodiscard]] Tensor forward(const Tensor& t) const {
        return linear(up(t) * scale, up.weight);
      }  // one member used twice
      void visit(Visitor& v) override {
        v.child("up", up);
        v.parameter("scale", scale);
        v.parameter("again", up.weight);  // a second name for it
      }
    };
    const Tied tied;
    const Net net;
    requires_grad_(net.layers[0], false);
    const auto check = [](const auto& m) {
      std::set<const Node*> leaves, named;
      const Tensor loss = sum(m(x));
      for (const auto& node : tape(loss))
        if (node->is_leaf()) leaves.insert(node.get());
      for (const auto& [name, p] : named_parameters(m))
        if (p.requires_grad()) named.insert(p.gradient_edge().node.get());
      CHECK(leaves == named);
      return named.size();
    };
    CHECK(check(tied) == 2);
    CHECK(check(net) == 3);
    CHECK(count_parameters(tied) == 12);
    CHECK(state_dict(tied).size() == 2);
  }

  TEST_CASE("hooks see and replace what goes in and comes out, as long as their handle lives") {
    const Linear layer(3, 2);
    const std::vector<float> plain = layer(x).to_vector();
    {
      int calls = 0;
      const HookHandle before = layer.register_forward_pre_hook([&](const Tensor& t) {
        ++calls;
        CHECK(t.is_same(x));
        return t * 2.0;
      });
      const HookHandle after = layer.register_forward_hook([&](const Tensor& y) {
        ++calls;
        return y - linear(x, layer.weight);  // W·2x + b − W·x
      });
      const std::vector<float> hooked = layer(x).to_vector();
      for (size_t i = 0; i < plain.size(); ++i) CHECK(hooked[i] == doctest::Approx(plain[i]));
      CHECK(calls == 2);
      const Linear copy = layer;
      CHECK(copy(x).to_vector() == plain);
      CHECK(calls == 2);
      const HookHandle watch = layer.register_forward_hook([&](const Tensor&) { return ++calls, Tensor(); });
      CHECK(layer(x).to_vector() == hooked);
      CHECK(calls == 5);
    }
    CHECK(layer(x).to_vector() == plain);
  }

  TEST_CASE("train and eval reach everything below, and copies keep the mode") {
    Sequential stack(Linear(3, 64), Sequential(Dropout(0.5), Tanh()));
    manual_seed(1);
    CHECK(stack(x).to_vector() != stack(x).to_vector());
    stack.eval();
    CHECK(!stack.at<Sequential>(1).at<Dropout>(0).is_training());
    CHECK(stack(x).to_vector() == stack(x).to_vector());
    Sequential copy = stack;
    CHECK(!copy.is_training());
    stack.train();
    CHECK(stack.at<Sequential>(1).at<Dropout>(0).is_training());
    CHECK_THROWS_AS(Dropout(1.5), ValueError);
    CHECK_THROWS_AS(Dropout(-0.1), ValueError);
  }

  TEST_CASE("to() converts parameters and buffers and keeps what is frozen") {
    Net net;
    requires_grad_(net.head, false);
    const Tensor y = net(x);
    to(net, DType::f64);
    CHECK(net.layers[0].proj.weight.dtype() == DType::f64);
    CHECK(net.layers[0].count.dtype() == DType::f64);
    CHECK(net.layers[0].proj.weight.requires_grad());
    CHECK(!net.head.weight.requires_grad());
    CHECK(net(to(x, DType::f64)).to_vector()[3] == doctest::Approx(y.to_vector()[3]));
    CHECK_THROWS_AS(to(net, DType::i64), DTypeError);
  }

  TEST_CASE("a state dict goes back bit for bit, and all that does not fit is one message") {
    Net net, other;
    net.layers[0].count.fill_(3);
    const StateDict dict = state_dict(net);
    CHECK(dict.size() == 7);
    CHECK(dict.at("head.weight").shares_storage(net.head.weight));
    CHECK(!dict.at("head.weight").requires_grad());
    load_state_dict(other, dict);
    CHECK(other(x).to_vector() == net(x).to_vector());
    CHECK(other.layers[0].count.to_vector()[0] == 3);
    CHECK(!other.head.weight.shares_storage(net.head.weight));

    StateDict wrong = dict;
    wrong.erase("layers.0.proj.bias");
    wrong.erase("layers.1.proj.weight");
    wrong["layers.1.projection.weight"] = zeros({3, 3});
    wrong["zzz"] = zeros({1});
    wrong["head.weight"] = zeros({65, 3});
    wrong["layers.0.count"] = zeros({2}, DType::i64);
    const std::vector<float> before = other(x).to_vector();
    CHECK(message([&] { load_state_dict(other, wrong); }) ==
          "load_state_dict: 2 missing (layers.0.proj.bias, layers.1.proj.weight), 2 unexpected "
          "(layers.1.projection.weight, nearest "
          "layers.1.proj.weight, zzz), 2 shape mismatches: head.weight is [2, 3] f32, file has [65, 3] f32; "
          "layers.0.count is [2] f32, file has [2] i64");
    CHECK(other(x).to_vector() == before);
    const LoadReport report = load_state_dict(other, wrong, LoadOptions{.strict = false});
    CHECK((report.missing.size() == 2 && report.unexpected.size() == 2 && report.mismatched.size() == 2));

    Linear small(2, 1), wide(2, 1);
    to(wide, DType::f64);
    CHECK(load_state_dict(small, state_dict(wide)).converted ==
          std::vector<std::string>{"bias: f64 loaded as f32", "weight: f64 loaded as f32"});
    CHECK(small.weight.to_vector() == wide.weight.to_vector());
    StateDict many;
    for (int i = 0; i < 5; ++i) many["u" + std::to_string(i)] = zeros({1});
    CHECK(message([&] { load_state_dict(small, many); }) ==
          "load_state_dict: 2 missing (bias, weight), 5 unexpected (u0, u1, u2, …)");
  }

  TEST_CASE("the summary shows the tree") {
    Net net;
    requires_grad_(net.layers[1], false);
    const std::string text = summary(net);
    for (const char* part : {"Net ", "  layers: ", "    0: ", "      proj: Linear", "        weight [3, 3] f32 ",
                             "        bias [3] f32 frozen", "    count", " buffer", "  head: Linear"})
      CHECK(text.find(part) != std::string::npos);
    const size_t end = text.find('\n');
    CHECK(text.substr(end - 3, 3) == " 30");
  }

  TEST_CASE("threads may share a module that was never called") {
    for (int round = 0; round < 20; ++round) {
      const Sequential stack(Linear(3, 4), Sequential(Tanh(), Linear(4, 2)));
      std::vector<std::thread> threads;
      std::vector<std::string> paths(4);
      for (size_t i = 0; i < paths.size(); ++i)
        threads.emplace_back([&, i] {
          const NoGrad guard;
          static_cast<void>(stack(x));
          paths[i] = message([&] { stack(zeros({5})); });
        });
      for (std::thread& t : threads) t.join();
      for (const std::string& path : paths) CHECK(path.ends_with("; in 0"));
    }
  }

  TEST_CASE("nothing but Layer calls forward") {
    const std::string root = TAPESTRY_SOURCE_DIR;
    int files = 0;
    for (const char* folder : {"/nn", "/models"})
      for (const auto& entry : std::filesystem::recursive_directory_iterator(root + folder)) {
        const std::string path = entry.path().string();
        if (!path.ends_with(".h") && !path.ends_with(".cpp")) continue;
        std::stringstream text;
        text << std::ifstream(path).rdbuf();
        CAPTURE(path);
        const bool calls =
            text.str().find(".forward(") != std::string::npos || text.str().find("->forward(") != std::string::npos;
        CHECK(calls == path.ends_with("/nn/module.h"));
        ++files;
      }
    CHECK(files > 20);
  }
}
