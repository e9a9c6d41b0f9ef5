// The split, the golden batch order, windows at their shortest, the cover of evaluation, and the counting baselines.
// Not here: training on any of it.
// Next: ../models/text/corpus.h.
#include <doctest/doctest.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <string>

#include "../autograd/error.h"
#include "../models/text/baseline.h"
#include "../models/text/corpus.h"
#include "../models/text/words.h"
#include "../nn/mapped_file.h"

using namespace tapestry;

namespace {

std::vector<int32_t> counting(size_t n) {
  std::vector<int32_t> tokens(n);
  std::iota(tokens.begin(), tokens.end(), 0);
  return tokens;
}

/// A folder that is gone when the test ends.
struct Folder {
  std::filesystem::path path;
  Folder() : path(std::filesystem::temp_directory_path() / ("tapestry_corpus_" + std::to_string(::getpid()))) {
    std::filesystem::create_directory(path);
  }
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path, ignored);
  }
  [[nodiscard]] std::string write(const std::string& name, const std::string& bytes) const {
    std::string file = (path / name).string();
    std::ofstream(file, std::ios::binary) << bytes;
    return file;
  }
};

}  // namespace

TEST_SUITE("corpus") {
  TEST_CASE("the last part is held out and nothing is lost") {
    struct Row {
      size_t n;
      double held_out;
      size_t train;
    };
    for (const Row& row : {Row{10, 0.1, 9}, Row{1115394, 0.1, 1003854}, Row{10, 0, 10}, Row{10, 0.5, 5},
                           Row{7, 0.25, 5}, Row{1, 0.1, 0}}) {
      const Corpus corpus(counting(row.n), row.held_out);
      CHECK(corpus.train().size() == row.train);
      CHECK(corpus.train().size() + corpus.held_out().size() == row.n);
      if (!corpus.held_out().empty()) CHECK(corpus.held_out().front() == static_cast<int32_t>(row.train));
    }
    CHECK_THROWS_WITH_AS(Corpus(counting(3), 1.0), "corpus: held_out must lie in [0, 1): it is 1", ValueError);
    CHECK_THROWS_AS(Corpus(counting(3), -0.1), ValueError);
    CHECK_THROWS_AS(Corpus(counting(3), std::nan("")), ValueError);
    CHECK_THROWS_WITH_AS(Corpus({}), "corpus: the text has no tokens", ValueError);
  }

  TEST_CASE("the batch order never changes: golden values") {
    struct Row {
      uint64_t seed;
      size_t n;
      int64_t context, step;
      std::vector<int64_t> starts;  // of rows 0 … 3
    };
    const Row rows[] = {
        {1, 1003854, 64, 0, {563066, 292468, 455541, 742161}},
        {1, 1003854, 64, 1, {406421, 685219, 708007, 512454}},
        {1, 1003854, 64, 1999, {606970, 28374, 778146, 964389}},
        {2, 1003854, 64, 0, {68712, 76857, 677440, 828451}},
        {1337, 1000, 8, 0, {542, 918, 937, 723}},
        {1337, 1000, 8, 1999, {408, 872, 939, 354}},
    };
    for (const Row& row : rows) {
      const std::vector<int32_t> tokens = counting(row.n);
      const BatchOrder order(tokens, row.context, row.seed);
      for (size_t i = 0; i < 4; ++i) CHECK(order.start(row.step, static_cast<int64_t>(i)) == row.starts[i]);
    }
  }

  TEST_CASE("targets are the inputs one token later; rows of a step can be taken in parts") {
    const std::vector<int32_t> tokens = counting(100);
    const BatchOrder order(tokens, 7, 5);
    const TokenBatch whole = order.batch(3, 8);
    REQUIRE(whole.inputs.size() == 56);
    REQUIRE(whole.targets.size() == 56);
    for (int64_t row = 0; row < 8; ++row) {
      for (int64_t t = 0; t < 7; ++t) {
        const auto at = static_cast<size_t>(row * 7 + t);
        CHECK(whole.inputs[at] == order.start(3, row) + t);
        CHECK(whole.targets[at] == order.start(3, row) + t + 1);
      }
    }
    TokenBatch parts = order.batch(3, 5);
    const TokenBatch rest = order.batch(3, 3, 5);
    parts.inputs.insert(parts.inputs.end(), rest.inputs.begin(), rest.inputs.end());
    parts.targets.insert(parts.targets.end(), rest.targets.begin(), rest.targets.end());
    CHECK(parts.inputs == whole.inputs);
    CHECK(parts.targets == whole.targets);
    CHECK_THROWS_AS((void)order.batch(-1, 1), ValueError);
    CHECK_THROWS_AS((void)order.batch(0, 0), ValueError);
  }

  TEST_CASE("starts are uniform over every window, the first and the last included") {
    const std::vector<int32_t> tokens = counting(13);  // 10 windows of 3
    const BatchOrder order(tokens, 3, 42);
    REQUIRE(order.n_windows() == 10);
    std::vector<int> seen(10);
    for (int64_t step = 0; step < 1000; ++step) {
      for (int64_t row = 0; row < 10; ++row) ++seen.at(static_cast<size_t>(order.start(step, row)));
    }
    for (const int count : seen) CHECK(std::abs(count - 1000) < 5 * 30);  // five standard deviations of 30
  }

  TEST_CASE("context + 1 tokens are one window, one fewer is an error with both numbers") {
    const std::vector<int32_t> nine = counting(9), eight = counting(8);
    const BatchOrder order(nine, 8, 1);
    CHECK(order.n_windows() == 1);
    for (int64_t step = 0; step < 20; ++step) CHECK(order.start(step, 0) == 0);
    CHECK(order.batch(0, 1).targets == std::vector<int64_t>{1, 2, 3, 4, 5, 6, 7, 8});
    CHECK(EvalWindows(nine, 8).size() == 1);
    CHECK_THROWS_WITH_AS(BatchOrder(eight, 8, 1),
                         "batch_order: context 8 needs at least 9 tokens, the training part has 8; shorten the context "
                         "or give more text",
                         ValueError);
    CHECK_THROWS_WITH_AS(EvalWindows(eight, 64),
                         "eval_windows: context 64 needs at least 65 tokens, the held-out part has 8; shorten the "
                         "context or give more text",
                         ValueError);
    CHECK_THROWS_AS(BatchOrder({}, 1, 1), ValueError);
    CHECK_THROWS_WITH_AS(BatchOrder(nine, 0, 1), "batch_order: context must be at least 1: it is 0", ValueError);
    CHECK_THROWS_AS(EvalWindows(nine, -3), ValueError);
  }

  TEST_CASE("evaluation scores every token but the first exactly once") {
    for (const size_t n : {5, 8, 9, 10, 16, 17, 18, 100}) {
      for (const int64_t max_rows : {1, 3, 1000}) {
        const std::vector<int32_t> tokens = counting(n);
        const EvalWindows windows(tokens, 4);
        std::vector<int64_t> inputs, targets;
        for (int64_t i = 0; i < windows.size();) {
          const TokenBatch batch = windows.batch(i, max_rows);
          CHECK(batch.rows <= max_rows);
          CHECK(static_cast<int64_t>(batch.inputs.size()) == batch.rows * batch.context);
          inputs.insert(inputs.end(), batch.inputs.begin(), batch.inputs.end());
          targets.insert(targets.end(), batch.targets.begin(), batch.targets.end());
          i += batch.rows;
        }
        CAPTURE(n);
        CHECK(inputs == std::vector<int64_t>(tokens.begin(), tokens.end() - 1));
        CHECK(targets == std::vector<int64_t>(tokens.begin() + 1, tokens.end()));
        CHECK(windows.n_targets() == static_cast<int64_t>(n) - 1);
        CHECK_THROWS_AS((void)windows.batch(windows.size(), 1), IndexError);
      }
    }
  }

  TEST_CASE("a mapped file has the bytes of the file; what cannot be mapped is an error with path and reason") {
    const Folder folder;
    const std::string bytes("text\0with \xFF bytes\n", 17);
    MappedFile file(folder.write("text", bytes));
    CHECK(file.bytes() == bytes);
    MappedFile moved(std::move(file));
    CHECK(moved.bytes() == bytes);
    moved = MappedFile(folder.write("other", "x"));
    CHECK(moved.bytes() == "x");

    const std::string path = folder.path.string();
    struct Row {
      std::string path, want;
    };
    const Row rows[] = {
        {path + "/none", "open: cannot read '" + path + "/none': No such file or directory"},
        {path + "/text/none", "open: cannot read '" + path + "/text/none': Not a directory"},
        {path, "open: '" + path + "' is a directory; name a file"},
        {folder.write("empty", ""), "open: '" + path + "/empty' is empty"},
        {"/dev/null", "open: '/dev/null' is not a regular file; copy its contents to one"},
    };
    for (const Row& row : rows) CHECK_THROWS_WITH_AS(MappedFile{row.path}, row.want.c_str(), IoError);
  }

  TEST_CASE("unigram and bigram losses, by hand") {
    const std::vector<int32_t> train = {0, 1, 0, 1, 0, 2}, held_out = {0, 1, 2, 0};
    // p = (3 + 1, 2 + 1, 1 + 1, 0 + 1) / (6 + 4)
    CHECK(unigram_loss(train, held_out, 4) == doctest::Approx(-(std::log(.3) + std::log(.2) + std::log(.4)) / 3));
    // after 0: 1 twice, 2 once; after 1: 0 twice; 2 never began a pair
    const double p01 = (2 + 2 * .3) / (3 + 2), p12 = (0 + 1 * .2) / (2 + 1), p20 = .4;
    CHECK(bigram_loss(train, held_out, 4) == doctest::Approx(-(std::log(p01) + std::log(p12) + std::log(p20)) / 3));
    CHECK(unigram_loss({}, held_out, 4) == doctest::Approx(std::log(4)));
    CHECK_THROWS_AS(unigram_loss(train, held_out, 2), IndexError);
    CHECK_THROWS_AS(bigram_loss(train, std::vector<int32_t>{1}, 4), ValueError);
  }

  TEST_CASE("the probabilities of the bigram sum to 1 after every token") {
    const std::vector<int32_t> train = {0, 1, 0, 1, 0, 2, 2, 3, 0};
    for (int32_t a = 0; a < 5; ++a) {
      double sum = 0;
      for (int32_t b = 0; b < 5; ++b) sum += std::exp(-bigram_loss(train, std::vector<int32_t>{a, b}, 5));
      CHECK(sum == doctest::Approx(1).epsilon(1e-14));
    }
  }

  TEST_CASE("known words") {
    struct Row {
      std::string text;
      int64_t known, total;
    };
    for (const Row& row : {Row{"the cat's été", 3, 3}, Row{"The cat the", 1, 3}, Row{"", 0, 0}, Row{" 12,. \n", 0, 0},
                           Row{"the-the 7the", 3, 3}}) {
      CAPTURE(row.text);
      const WordCount count = count_known_words(row.text, "the cat's nose, en été.");
      CHECK(count.known == row.known);
      CHECK(count.total == row.total);
      CHECK(count.share() == doctest::Approx(row.total == 0 ? 0 : double(row.known) / double(row.total)));
    }
  }
}
