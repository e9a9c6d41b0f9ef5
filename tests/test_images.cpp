// Image sets: IDX files, plain and compressed, good and damaged; the order of batches; a classifier that learns.
// Not here: LeNet-5 itself (test_zoo.cpp) and the program (test_programs.cpp).
// Next: ../models/vision/idx.h.
#include <doctest/doctest.h>

#include <algorithm>
#include <numeric>
#include <set>

#if __has_include(<zlib.h>)
#include <zlib.h>
#endif

#include "../autograd/error.h"
#include "../autograd/factory.h"
#include "../models/mlp.h"
#include "../models/training/classify.h"
#include "../models/vision/idx.h"
#include "../ops/ops.h"
#include "training_fixtures.h"

using namespace tapestry;

namespace {

using tests::Folder;

std::string write(const Folder& folder, const std::string& name, const std::string& bytes) {
  tests::write_file(folder / name, bytes);
  return folder / name;
}

/// An IDX file: sizes as big-endian 32-bit numbers before the data.
std::string idx(const std::vector<uint32_t>& sizes, const std::string& data, char type = 8) {
  std::string bytes = {0, 0, type, static_cast<char>(sizes.size())};
  for (const uint32_t size : sizes)
    for (const int shift : {24, 16, 8, 0}) bytes += static_cast<char>(size >> shift & 0xFF);
  return bytes + data;
}

template <class E>
void fails_with(const std::function<void()>& call, const std::string& text) {
  try {
    call();
    FAIL_CHECK("nothing was thrown; expected: ", text);
  } catch (const E& e) {
    CHECK_MESSAGE(std::string(e.what()).find(text) != std::string::npos, e.what());
  }
}

}  // namespace

TEST_SUITE("images") {
  TEST_CASE("an IDX file is read, compressed or not") {
    const Folder folder;
    const std::string bytes = idx({2, 1, 3}, std::string("\x00\x01\x7f\x80\xfe\xff", 6));
    std::vector<std::string> files = {write(folder, "plain", bytes)};
#if __has_include(<zlib.h>)
    files.push_back(folder / "compressed.gz");
    const gzFile out = gzopen(files.back().c_str(), "wb");
    gzwrite(out, bytes.data(), static_cast<unsigned>(bytes.size()));
    gzclose(out);
    const std::string packed = tests::read_file(files.back());
    const std::string cut = write(folder, "cut.gz", packed.substr(0, packed.size() - 9));
    CHECK_THROWS_AS(read_idx(cut), FormatError);
#endif
    for (const std::string& file : files) {
      const IdxFile read = read_idx(file);
      CHECK(read.shape == Shape{2, 1, 3});
      CHECK(read.bytes == std::vector<uint8_t>{0, 1, 0x7f, 0x80, 0xfe, 0xff});
    }
    CHECK(read_idx(write(folder, "none", idx({0, 28, 28}, ""))).bytes.empty());
  }

  TEST_CASE("a damaged file is a typed error that names it") {
    const Folder folder;
    struct {
      std::string bytes;
      const char* text;
    } const faults[] = {
        {"", "is not an IDX file"},
        {"not an image", "is not an IDX file"},
        {idx({2}, "ab", 13), "type 0x0d"},
        {idx({}, "ab"), "0 dims"},
        {idx({1, 1, 1, 1, 1, 1, 1, 1, 1}, "a"), "9 dims"},
        {idx({2, 3}, "abcde"), "has 5 bytes of data, its header says [2, 3]"},
        {idx({2, 3}, "abcdefg"), "has 7 bytes of data"},
        {idx({0xFFFFFFFF, 0xFFFFFFFF, 0xFFFFFFFF}, "a"), "its header says [4294967295"},
        {idx({2, 3}, "").substr(0, 9), "a header of that rank has 12"},
    };
    for (const auto& fault : faults)
      fails_with<FormatError>([&] { (void)read_idx(write(folder, "damaged", fault.bytes)); }, fault.text);
    fails_with<IoError>([&] { (void)read_idx(folder / "missing"); }, "No such file");
    CHECK_THROWS_AS(read_idx(folder.path.string()), IoError);
  }

  TEST_CASE("images and labels belong together") {
    const Folder folder;
    const std::string images = write(folder, "images", idx({2, 1, 2}, std::string("\x00\xff\x33\x66", 4)));
    const LabelledImages set =
        load_labelled_images(images, write(folder, "labels", idx({2}, std::string("\x09\x00", 2))));
    CHECK(set.images.shape() == Shape{2, 1, 1, 2});
    CHECK(set.images.to_vector<float>() == std::vector<float>{0, 1, 0.2F, 0.4F});
    CHECK(set.labels.to_vector<int64_t>() == std::vector<int64_t>{9, 0});
    CHECK(pick(set, {1, 0, 1}).labels.to_vector<int64_t>() == std::vector<int64_t>{0, 9, 0});
    const auto with = [&](const std::string& labels) {
      return [&folder, images, labels] { (void)load_labelled_images(images, write(folder, "labels", labels)); };
    };
    fails_with<FormatError>(with(idx({3}, "\x01\x01\x01")), "must be (N, height, width) and (N)");
    fails_with<FormatError>(with(idx({2}, "\x01\x0a")), "is 10; there are 10 classes");
    fails_with<FormatError>(with(idx({2, 1}, "\x01\x01")), "must be (N, height, width) and (N)");
  }

  TEST_CASE("an epoch's order is a permutation and depends on seed and epoch alone") {
    const std::vector<int64_t> order = shuffled(1000, 7, 3);
    CHECK(order == shuffled(1000, 7, 3));
    CHECK(order != shuffled(1000, 7, 4));
    CHECK(order != shuffled(1000, 8, 3));
    std::vector<int64_t> sorted = order;
    std::sort(sorted.begin(), sorted.end());
    std::vector<int64_t> all(1000);
    std::iota(all.begin(), all.end(), 0);
    CHECK(sorted == all);
    // Uniform: the place of element 0 over many epochs has the mean of a uniform place, within five standard errors.
    double sum = 0;
    for (uint64_t epoch = 0; epoch < 400; ++epoch) {
      const auto one = shuffled(21, 1, epoch);
      sum += static_cast<double>(std::find(one.begin(), one.end(), 0) - one.begin());
    }
    CHECK(std::abs(sum / 400 - 10) < 5 * std::sqrt((21.0 * 21 - 1) / 12 / 400));
    CHECK(shuffled(0, 1, 1).empty());
  }

  TEST_CASE("a classifier learns, and twice the same") {
    // Class 1 where the left half is brighter.
    manual_seed(3);
    const Tensor x = rand({200, 1, 2, 4});
    const Tensor y = to(sum(slice(x, 3, 0, 2), {1, 2, 3}) > sum(slice(x, 3, 2, 4), {1, 2, 3}), DType::i64);
    const LabelledImages set{x, y};
    const auto run = [&](std::vector<double>& losses) {
      manual_seed(1);
      Mlp net({8, 16, 2});
      const ClassifierFn classify = [&](const Tensor& images) { return net(flatten(images, 1)); };
      const double before = accuracy(net, classify, set);
      train_classifier(net, classify, set, set, {.epochs = 20, .batch = 16, .lr = 1e-2},
                       [&](const EpochReport& r) { losses.push_back(r.loss); });
      CHECK(before < 0.9);
      CHECK(net.is_training());
      return accuracy(net, classify, set);
    };
    std::vector<double> first, second;
    CHECK(run(first) > 0.95);
    run(second);
    CHECK(first.size() == 20);
    CHECK(first == second);
    CHECK(first.back() < first.front());

    Mlp net({8, 16, 2});
    int batches = 0, epochs = 0;
    const ClassifyOptions stopped{.epochs = 2, .batch = 16, .stop = [&] { return ++batches > 2; }};
    train_classifier(
        net, [&](const Tensor& images) { return net(flatten(images, 1)); }, set, set, stopped,
        [&](const EpochReport&) { ++epochs; });
    CHECK(batches == 3);
    CHECK(epochs == 0);
  }

  TEST_CASE("options outside their domain are refused") {
    Mlp net({8, 2});
    const ClassifierFn classify = [&](const Tensor& images) { return net(flatten(images, 1)); };
    const LabelledImages set{rand({4, 1, 2, 4}), zeros({4}, DType::i64)},
        none{rand({0, 1, 2, 4}), zeros({0}, DType::i64)};
    const auto run = [&](const LabelledImages& images, const ClassifyOptions& o) {
      train_classifier(net, classify, images, images, o, [](const EpochReport&) {});
    };
    fails_with<ValueError>([&] { run(set, {.batch = 0}); }, "batches of 0");
    fails_with<ValueError>([&] { run(set, {.epochs = -1}); }, "-1 epochs");
    fails_with<ValueError>([&] { run(none, {}); }, "no images");
    fails_with<ValueError>([&] { run(set, {.lr = 1e30}); }, "lower lr");
    CHECK(accuracy(net, classify, none) == 0);
  }
}
