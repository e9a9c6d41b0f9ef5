// What holds for every model of the zoo, row by row.
// Not here: what one model computes, compared with another program's values.
// Next: ../models/zoo.cpp.
#include <doctest/doctest.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>

#include "../autograd/allocator.h"
#include "../autograd/engine.h"
#include "../autograd/node.h"
#include "../autograd/parallel.h"
#include "../autograd/tools/gradcheck.h"
#include "../models/mlp.h"
#include "../models/zoo.h"
#include "../nn/safetensors.h"
#include "../nn/state_dict.h"
#include "../nn/visitor.h"
#include "../ops/ops.h"
#include "../optim/adamw.h"
#include "../optim/optimizer.h"
#include "op_table/op_table.h"
#include "op_table/samples.h"

using namespace tapestry;

namespace {

struct ThreadCount {
  int before = num_threads();
  ~ThreadCount() { set_num_threads(before); }
};

bool same_bits(const Tensor& a, const Tensor& b) {
  return a.dtype() == b.dtype() && a.shape() == b.shape() &&
         std::memcmp(dense(a).raw_data(), dense(b).raw_data(), static_cast<size_t>(a.numel() * size_of(a.dtype()))) ==
             0;
}

// Sanitizers keep freed memory on purpose.
#ifdef TAPESTRY_SANITIZED
constexpr bool memory_is_real = false;
#else
constexpr bool memory_is_real = true;
#endif

int64_t resident_bytes() {
  std::ifstream file("/proc/self/statm");
  int64_t total = 0, resident = 0;
  file >> total >> resident;
  return resident * ::sysconf(_SC_PAGESIZE);
}

/// The loss as a function of the parameters: gradcheck's leaves take their places in the module.
struct LossOfParameters {
  TinyModel model;
  Tensor operator()(std::span<const Tensor> values) const {
    size_t i = 0;
    for_each_parameter(*model.module, [&](const std::string&, Parameter& p) { static_cast<Tensor&>(p) = values[i++]; });
    return model.loss();
  }
};

std::vector<Tensor> values_of(const TinyModel& model) {
  std::vector<Tensor> values;
  for (const auto& [name, p] : named_parameters(*model.module)) values.push_back(p);
  return values;
}

void train(const TinyModel& model, Optimizer<AdamW>& optimizer, int steps) {
  for (int i = 0; i < steps; ++i) {
    model.loss().backward();
    optimizer.step();
    optimizer.zero_grad();
  }
}

}  // namespace

TEST_SUITE("zoo") {
  TEST_CASE("parameters have the names of the table, and every one gets a gradient") {
    for (const ZooRow& row : zoo()) {
      CAPTURE(row.name);
      const TinyModel model = row.make(DType::f64, 1);
      model.loss().backward();
      std::vector<std::string> names;
      for (const auto& named : named_parameters(*model.module)) {
        const std::string& name = named.first;
        const Tensor& p = named.second;
        CAPTURE(name);
        names.push_back(name);
        REQUIRE(p.grad().defined());
        CHECK(p.grad().shape() == p.shape());
        CHECK(norm(p.grad()).item() > 0);
      }
      CHECK(names == std::vector<std::string>(row.parameters.begin(), row.parameters.end()));
    }
  }

  TEST_CASE("the leaves on the tape of the loss are the parameters that require a gradient") {
    for (const ZooRow& row : zoo()) {
      CAPTURE(row.name);
      const TinyModel model = row.make(DType::f32, 1);
      const auto check = [&] {
        std::set<const Node*> expected, found;
        for (const auto& [name, p] : named_parameters(*model.module))
          if (p.requires_grad()) expected.insert(p.body()->edge.node.get());
        const Tensor loss = model.loss();
        for (const Ref<Node>& node : tape(loss))
          if (node->is_leaf()) found.insert(node.get());
        CHECK(found == expected);
      };
      check();
      values_of(model)[1].requires_grad_(false);
      check();
    }
  }

  TEST_CASE("every operation on the tape of a training step is one that a row of the op table records") {
    std::set<std::string> recorded;
    const auto collect = [](std::set<std::string>& names, const Tensor& y) {
      for (const Ref<Node>& node : tape(y)) names.emplace(node->name());
    };
    for (const op_table::Family& family : op_table::families())
      for (const op_table::OpRow& row : family.rows) {
        if (!row.differentiable) continue;
        const auto inputs = op_table::make_inputs(row, row.samples[0], DType::f64);
        for (const Tensor& y : op_table::call(row, row.samples[0], inputs)) collect(recorded, y);
      }
    for (const ZooRow& row : zoo()) {
      CAPTURE(row.name);
      std::set<std::string> used;
      collect(used, row.make(DType::f32, 1).loss());
      CHECK(used.size() > 3);
      for (const std::string& name : used) CHECK_MESSAGE(recorded.contains(name), name);
    }
  }

  TEST_CASE("one batch can be learnt by heart") {
    for (const ZooRow& row : zoo()) {
      CAPTURE(row.name);
      const TinyModel model = row.make(DType::f32, 2);
      Optimizer<AdamW> optimizer(named_parameters(*model.module), {.lr = 2e-2, .weight_decay = 0});
      const double before = model.loss().item();
      train(model, optimizer, 300);
      CHECK(model.loss().item() < 0.05 * before);
    }
  }

  TEST_CASE("weights written and read give the same loss, bit for bit") {
    const std::string path =
        (std::filesystem::temp_directory_path() / ("tapestry_zoo_" + std::to_string(::getpid()))).string();
    for (const ZooRow& row : zoo()) {
      CAPTURE(row.name);
      const TinyModel model = row.make(DType::f32, 3), other = row.make(DType::f32, 3);
      for (const Tensor& p : values_of(other)) p.detach().fill_(0.5);
      REQUIRE_FALSE(same_bits(model.loss(), other.loss()));
      write_safetensors(path, state_dict(*model.module));
      load_state_dict(*other.module, read_safetensors(path).tensors);
      CHECK(same_bits(model.loss(), other.loss()));
      const auto a = state_dict(*model.module), b = state_dict(*other.module);
      for (const auto& [name, tensor] : a) CHECK(same_bits(tensor, b.at(name)));
    }
    std::filesystem::remove(path);
  }

  TEST_CASE("the gradient of the whole model, and its gradient, are those of finite differences") {
    for (const ZooRow& row : zoo()) {
      CAPTURE(row.name);
      const TinyModel model = row.make(DType::f64, 4);
      const std::vector<Tensor> values = values_of(model);
      const auto first = gradcheck(LossOfParameters{model}, values);
      CHECK_MESSAGE(first.ok, first.message);
      const auto second = gradgradcheck(LossOfParameters{model}, values);
      CHECK_MESSAGE(second.ok, second.message);
    }
  }

  TEST_CASE("training gives the same bits with 1, 2 and 4 threads") {
    const ThreadCount restore;
    for (const ZooRow& row : zoo()) {
      CAPTURE(row.name);
      std::vector<std::vector<Tensor>> results;
      for (const int threads : {1, 2, 4}) {
        set_num_threads(threads);
        const TinyModel model = row.make(DType::f32, 5);
        Optimizer<AdamW> optimizer(named_parameters(*model.module), {.lr = 1e-2});
        train(model, optimizer, 5);
        results.push_back(values_of(model));
        results.back().push_back(model.loss());
      }
      for (size_t i = 0; i < results[0].size(); ++i) {
        CHECK(same_bits(results[0][i], results[1][i]));
        CHECK(same_bits(results[0][i], results[2][i]));
      }
    }
  }

  TEST_CASE("a thousand steps leave no node and no byte behind") {
    for (const ZooRow& row : zoo()) {
      CAPTURE(row.name);
      const TinyModel model = row.make(DType::f32, 6);
      Optimizer<AdamW> optimizer(named_parameters(*model.module), {.lr = 1e-3});
      train(model, optimizer, 10);
      const int64_t nodes = Node::live(), bytes = memory_stats().live_bytes, resident = resident_bytes();
      train(model, optimizer, 990);
      CHECK(Node::live() == nodes);
      CHECK(memory_stats().live_bytes == bytes);
      if (memory_is_real) CHECK(std::abs(resident_bytes() - resident) <= 2 << 20);
    }
  }

  TEST_CASE("an Mlp is its formula") {
    manual_seed(7);
    const Mlp net({3, 5, 2}, {.activation = Activation::silu});
    const Tensor x = randn({4, 3});
    const auto& [first, second] = std::tie(net.layers[0], net.layers[1]);
    CHECK(same_bits(net(x), linear(silu(linear(x, first.weight, first.bias)), second.weight, second.bias)));
    CHECK_THROWS_WITH_AS(Mlp({3}), "Mlp: 1 sizes; it needs at least those of input and output", ValueError);
    CHECK_THROWS_AS(Mlp({3, 0, 1}), ValueError);
    CHECK_FALSE(Mlp({3, 2}, {.bias = false}).layers[0].bias.defined());
  }
}
