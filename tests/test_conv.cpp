// test_conv.cpp: convolutions over many tiles against one sample, one group at a time; running statistics; the layers of images.
// Not the ops one by one (op_table/conv_rows.cpp and its neighbours). Next: ../nn/conv.h.
#include <unistd.h>

#include <cmath>
#include <filesystem>

#include "../nn/batch_norm.h"
#include "../nn/containers.h"
#include "../nn/conv.h"
#include "../nn/group_norm.h"
#include "../nn/pool.h"
#include "../nn/safetensors.h"
#include "../nn/state_dict.h"
#include "../nn/summary.h"
#include "../nn/visitor.h"
#include "op_checks.h"

using namespace tapestry;
using namespace tapestry::testing;

namespace {

using V = std::vector<double>;
V list(const Tensor& x) { return x.to_vector<double>(); }

/// A convolution whose pixels fill many tiles of every kind: several samples to a tile, several tiles to a sample.
struct Big {
  Shape x, weight;
  ConvOptions options;
};
const Big bigs[] = {
    {{3, 4, 13, 11}, {6, 2, 3, 3}, {.stride = 1, .padding = 1, .groups = 2}},
    {{40, 3, 6, 5}, {4, 3, 3, 2}, {.stride = {2, 1}, .padding = {1, 0}}},
    {{2, 2, 40, 37}, {3, 2, 5, 5}, {.padding = {2, 3}, .dilation = {1, 2}}},
    {{9, 48, 20, 18}, {5, 48, 3, 3}, {}},
    {{5, 6, 12, 12}, {6, 1, 3, 3}, {.padding = 1, .groups = 6}},
};

/// The convolution of one sample and one group at a time.
Tensor by_parts(const Tensor& x, const Tensor& weight, const Tensor& bias, const ConvOptions& options) {
  ConvOptions one = options;
  one.groups = 1;
  std::vector<Tensor> samples;
  for (const Tensor& sample : split(x, 1, 0)) {
    std::vector<Tensor> groups;
    const Tensors xs = chunk(sample, options.groups, 1), ws = chunk(weight, options.groups, 0);
    for (size_t g = 0; g < xs.size(); ++g) groups.push_back(conv2d(xs[g], ws[g], {}, one));
    samples.push_back(cat(groups, 1) + reshape(bias, {-1, 1, 1}));
  }
  return cat(samples, 0);
}

std::vector<std::string> names(const Module& m) {
  std::vector<std::string> list;
  for (const auto& [name, p] : named_parameters(m)) list.push_back(name + " " + p.describe());
  for (const auto& [name, b] : named_buffers(m)) list.push_back(name + " " + b.describe());
  return list;
}
using Names = std::vector<std::string>;

}  // namespace

TEST_SUITE("conv") {
  TEST_CASE("a batch in groups is its samples and groups one by one, forward and backward") {
    for (const Big& big : bigs) {
      const Tensor x = leaf(big.x, 1), w = leaf(big.weight, 2), b = leaf({big.weight[0]}, 3);
      const Tensor y = conv2d(x, w, b, big.options), z = by_parts(x, w, b, big.options);
      CHECK(difference(y, z) < 1e-12);
      const Tensor g = uniform(y.shape(), 4);
      const auto fused = grad({y}, {x, w, b}, {.grad_outputs = {g}}),
                 plain = grad({z}, {x, w, b}, {.grad_outputs = {g}});
      for (size_t i = 0; i < 3; ++i) CHECK(difference(fused[i], plain[i]) < 1e-11);
    }
  }

  TEST_CASE("f32 and bf16 agree with f64 over many tiles, and f32 parameters go with bf16 images") {
    for (const Big& big : bigs) {
      const auto run = [&](DType dtype, DType parameters) {
        const Tensor x = leaf(big.x, 1, DType::bf16), w = leaf(big.weight, 2, DType::bf16);
        const Tensor xs = to(x.detach(), dtype).requires_grad_(), ws = to(w.detach(), parameters).requires_grad_();
        const Tensor y = conv2d(xs, ws, {}, big.options);
        CHECK(y.dtype() == dtype);
        auto all = grad({y}, {xs, ws}, {.grad_outputs = {to(uniform(y.shape(), 4, DType::bf16), dtype)}});
        CHECK(all[1].dtype() == parameters);
        all.push_back(y.detach());
        for (Tensor& t : all) t = to(t, DType::f64);
        return all;
      };
      const auto right = run(DType::f64, DType::f64), single = run(DType::f32, DType::f32),
                 half = run(DType::bf16, DType::bf16), mixed = run(DType::bf16, DType::f32);
      for (size_t i = 0; i < right.size(); ++i) {
        const double scale = max(abs(right[i])).item();
        CHECK(difference(single[i], right[i]) < 2e-6 * scale);
        CHECK(difference(half[i], right[i]) < 0x1p-8 * scale);
        CHECK(difference(mixed[i], half[i]) == 0);
      }
    }
  }

  TEST_CASE(
      "of a window's largest the first takes the gradient, NaN wins, padding never does, windows that overlap add up") {
    const Tensor x = tensor<double>({{{1, 3, 3, NAN, 0, -INFINITY}}}).requires_grad_();
    const Tensor y = max_pool1d(x, 2);
    CHECK(list(y)[0] == 3);
    CHECK(std::isnan(list(y)[1]));
    CHECK(list(y)[2] == 0);
    CHECK(list(grad({y}, {x}, {.grad_outputs = {tensor<double>({{{1, 2, 4}}})}})[0]) == V{0, 1, 0, 2, 4, 0});
    CHECK(std::isnan(max_pool1d(tensor<double>({{{1, NAN, 5}}}), 3).item()));
    const Tensor low = full({1, 1, 3}, -INFINITY, DType::f64).requires_grad_();
    const Tensor padded = max_pool1d(low, 3, {.stride = Pair(1), .padding = 1});
    CHECK(list(padded) == V(3, -INFINITY));
    CHECK(list(grad({sum(padded)}, {low})[0]) == V{2, 1, 0});
    const Tensor peak = tensor<double>({{{0, 9, 1}}}).requires_grad_();
    CHECK(list(grad({sum(max_pool1d(peak, 2, {.stride = Pair(1)}))}, {peak})[0]) == V{0, 2, 0});
  }

  TEST_CASE("resizing reads no pixel that has no weight") {
    const Tensor x = tensor<double>({{{1, INFINITY, 3}}});
    CHECK(list(interpolate(x, 3, Interpolation::bilinear)) == V{1, INFINITY, 3});
    CHECK(list(interpolate(x, 2, Interpolation::bilinear, true)) == V{1, 3});
    CHECK(list(interpolate(x, 6)) == V{1, 1, INFINITY, INFINITY, 3, 3});
  }

  TEST_CASE("training moves the running statistics once a call, evaluation and higher derivatives never") {
    const Tensor x = leaf({4, 2, 3}, 1), mean = zeros({2}), var = ones({2});  // f32 beside f64
    const auto batch = [&] { return batch_norm(x, mean, var, {}, {}, {.training = true, .momentum = 0.25}); };
    const Tensor y = batch();
    const Tensor rows = reshape(transpose(x.detach(), 0, 1), {2, 12}), m = tapestry::mean(rows, {1}, true);
    const V means = list(m), squares = list(sum(square(rows - m), {1}));
    for (size_t c = 0; c < 2; ++c) {
      CHECK(list(mean)[c] == doctest::Approx(0.25 * means[c]).epsilon(1e-6));
      CHECK(list(var)[c] == doctest::Approx(0.75 + 0.25 * squares[c] / 11).epsilon(1e-6));
    }
    const V after = list(mean);
    const auto first = grad({sum(square(y))}, {x}, {.create_graph = true});
    (void)grad({sum(square(first[0]))}, {x}, {.allow_unused = true});
    CHECK(list(mean) == after);
    const Tensor evaluated = batch_norm(x, mean, var);
    CHECK(list(mean) == after);
    (void)batch();
    CHECK(list(mean) != after);
    CHECK(all(isfinite(grad({sum(evaluated)}, {x})[0])).item<bool>());  // by the statistics of its call
    const NoGrad raw;
    const V before = list(var);
    (void)batch();
    CHECK(list(var) != before);
  }

  TEST_CASE("channels far from 0 keep their variance") {
    const Tensor x = uniform({64, 3, 20}, 1, DType::f32) + 4096.0;
    const Tensor exact = batch_norm(to(x, DType::f64), {}, {}, {}, {}, {.training = true});
    CHECK(difference(to(batch_norm(x, {}, {}, {}, {}, {.training = true}), DType::f64), exact) < 2e-3);
    CHECK(difference(to(group_norm(x, 3), DType::f64), group_norm(to(x, DType::f64), 3)) < 2e-3);
  }

  TEST_CASE("f32 parameters of a norm go with bf16 images, and get f32 gradients") {
    const Tensor x = leaf({4, 6, 5}, 1, DType::bf16), w = leaf({6}, 2, DType::f32), b = leaf({6}, 3, DType::f32);
    for (const Tensor& y : {batch_norm(x, {}, {}, w, b, {.training = true}), group_norm(x, 2, w, b)}) {
      CHECK(y.dtype() == DType::bf16);
      const auto g = grad({sum(square(to(y, DType::f32)))}, {x, w, b});
      CHECK(g[0].dtype() == DType::bf16);
      CHECK(g[1].dtype() == DType::f32);
    }
  }

  TEST_CASE("layers have PyTorch's names, shapes and initial values") {
    manual_seed(1);
    const Conv2d conv(6, 16, {5, 3}, {.groups = 2});
    CHECK(names(conv) == Names{"weight [16, 3, 5, 3] f32", "bias [16] f32"});
    const double bound = 1 / std::sqrt(3.0 * 5 * 3), most = max(abs(conv.weights.weight)).item();
    CHECK(most <= bound);
    CHECK(most > 0.98 * bound);
    CHECK(max(abs(conv.weights.bias)).item() <= bound);
    CHECK(names(Conv1d(2, 3, 4, {.bias = false})) == Names{"weight [3, 2, 4] f32"});
    CHECK(names(ConvTranspose2d(4, 6, 3, {.groups = 2})) == Names{"weight [4, 3, 3, 3] f32", "bias [6] f32"});
    CHECK(names(ConvTranspose1d(4, 6, 3)) == Names{"weight [4, 6, 3] f32", "bias [6] f32"});
    CHECK(names(BatchNorm2d(3)) == Names{"weight [3] f32", "bias [3] f32", "running_mean [3] f32",
                                         "running_var [3] f32", "num_batches_tracked [] i64"});
    CHECK(names(BatchNorm1d(3, {.affine = false, .track_running_stats = false})).empty());
    CHECK(names(GroupNorm(2, 4)) == Names{"weight [4] f32", "bias [4] f32"});
    CHECK(names(InstanceNorm2d(4)).empty());
    CHECK(names(InstanceNorm2d(4, {})) == Names{"weight [4] f32", "bias [4] f32"});
    CHECK(summary(Conv2d(1, 1, 1)).starts_with("Conv2d"));
  }

  TEST_CASE("layers compute what their ops do, and images become rows") {
    const Tensor x = uniform({2, 4, 6, 6}, 1, DType::f32);
    const Sequential net(Conv2d(4, 6, 3, {.stride = 2, .padding = 1}), BatchNorm2d(6),
                         MaxPool2d(2, {.stride = Pair(1)}), ConvTranspose2d(6, 4, 3, {.stride = 2}), GroupNorm(2, 4),
                         InstanceNorm2d(4), AvgPool2d(2), AdaptiveMaxPool2d(2), Upsample(),
                         Upsample({.size = Pair(3, 5), .mode = Interpolation::bilinear}), AdaptiveAvgPool2d({2, 1}),
                         Flatten());
    const Tensor y = net(x);
    CHECK(y.shape() == Shape{2, 8});
    sum(square(y)).backward();
    for (const auto& named : named_parameters(net)) CHECK_MESSAGE(named.second.grad().defined(), named.first);
    const Tensor line = uniform({2, 4, 9}, 2, DType::f32);
    const Conv1d conv(4, 2, 3, {.stride = 2});
    CHECK(difference(conv(line), conv1d(line, conv.weights.weight, conv.weights.bias, {.stride = 2})) == 0);
    CHECK(difference(AvgPool1d(3)(line), avg_pool1d(line, 3)) == 0);
    CHECK(
        Sequential(Conv1d(4, 2, 3), BatchNorm1d(2), MaxPool1d(2), ConvTranspose1d(2, 3, 2), Upsample(), Flatten())(line)
            .shape() == Shape{2, 24});
  }

  TEST_CASE(
      "BatchNorm counts its batches, averages them without a momentum, and uses the batch where it tracks nothing") {
    BatchNorm1d norm(2, {.momentum = {}});
    const Tensor a = uniform({5, 2}, 1, DType::f32), b = uniform({7, 2}, 2, DType::f32);
    (void)norm(a);
    (void)norm(b);
    CHECK(norm.state.num_batches_tracked.item<int64_t>() == 2);
    CHECK(difference(norm.state.running_mean, (mean(a, {0}) + mean(b, {0})) / 2.0) < 1e-7);
    norm.eval();
    (void)norm(a);
    CHECK(norm.state.num_batches_tracked.item<int64_t>() == 2);
    CHECK(difference(norm(a), batch_norm(a, norm.state.running_mean, norm.state.running_var)) < 1e-6);
    BatchNorm2d untracked(2, {.track_running_stats = false});
    untracked.eval();
    const Tensor x = uniform({3, 2, 2, 2}, 3, DType::f32);
    CHECK(difference(untracked(x), batch_norm(x, {}, {}, {}, {}, {.training = true})) < 1e-6);
    norm.train();
    CHECK(message<ValueError>([&] {
            (void)norm(uniform({1, 2}, 1, DType::f32));
          }).starts_with("batch_norm: expected more than 1 value per channel when training, x is [1, 2] f32"));
    CHECK(norm.state.num_batches_tracked.item<int64_t>() == 2);
  }

  TEST_CASE("a copy of a net keeps its running statistics to itself") {
    Sequential net(BatchNorm1d(2)), copy;
    copy = net;
    (void)net(uniform({5, 2}, 1, DType::f32));
    CHECK(list(named_buffers(net)[0].second) != V{0, 0});
    CHECK(list(named_buffers(copy)[0].second) == V{0, 0});
  }

  TEST_CASE("layers refuse sizes that make no sense") {
    CHECK(message<ValueError>([] { Conv2d(3, 4, 3, {.groups = 2}); }) ==
          "Conv2d: in_channels 3 and out_channels 4 must be at least 1 and divisible by groups 2");
    CHECK(message<ValueError>([] { Conv1d(2, 2, 0); }) == "Conv1d: kernel_size [0] must be at least 1");
    CHECK(message<ValueError>([] { BatchNorm2d(0); }).starts_with("BatchNorm2d: num_features 0"));
    CHECK(
        message<ValueError>([] { GroupNorm(3, 4); }).starts_with("GroupNorm: num_groups 3 must divide num_channels 4"));
    CHECK(message<ShapeError>([] { (void)BatchNorm2d(2)(zeros({2, 2})); }).starts_with("BatchNorm2d: x is [2, 2] f32"));
    CHECK(message<ShapeError>([] {
            (void)InstanceNorm2d(2)(zeros({2, 3, 4, 4}));
          }).starts_with("InstanceNorm2d: x is [2, 3, 4, 4] f32; it must be (B, 2, H, W)"));
  }

  TEST_CASE("gradients of an upsampled image and of the image itself add up") {
    const Tensor x = tensor<double>({{{{1, 2}}}}).requires_grad_();
    CHECK(list(grad({sum(interpolate(x, {2, 4})) + 10.0 * sum(x)}, {x})[0]) == V{14, 14});
  }

  TEST_CASE("a net with running statistics predicts the same bits after save and load") {
    const auto make = [] { return Sequential(Conv2d(1, 3, 3), BatchNorm2d(3, {.momentum = {}}), Flatten()); };
    manual_seed(1);
    Sequential net = make(), other = make();
    const Tensor x = uniform({4, 1, 5, 5}, 1, DType::f32);
    (void)net(x);
    net.eval();
    const std::string file =
        (std::filesystem::temp_directory_path() / ("tapestry_conv_" + std::to_string(::getpid()))).string();
    write_safetensors(file, state_dict(net));
    load_state_dict(other, read_safetensors(file).tensors);
    std::filesystem::remove(file);
    other.eval();
    CHECK(difference(other(x), net(x)) == 0);
    CHECK(other.at<BatchNorm2d>(1).state.num_batches_tracked.item<int64_t>() == 1);
  }
}
