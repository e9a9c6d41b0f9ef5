// The comparison of structural choices: its rows, and what its table calls noise.
// Not here: a run, which takes minutes.
// Next: ../models/training/ablation.h.
#include <doctest/doctest.h>

#include <algorithm>

#include "../autograd/error.h"
#include "../models/training/ablation.h"
#include "../models/transformer/lm.h"
#include "../nn/visitor.h"
#include "training_fixtures.h"

using namespace tapestry;

TEST_SUITE("ablation") {
  TEST_CASE("every row is a valid configuration of its own, with about the parameters of the base") {
    int64_t base = 0;
    std::vector<TrainConfig> seen;
    for (const AblationRow& row : ablation_rows()) {
      CAPTURE(row.name);
      TrainConfig c = ablation_config(row, 4);
      CHECK(c.seed == 4);
      CHECK(std::find(seen.begin(), seen.end(), c) == seen.end());
      seen.push_back(c);
      c.model.vocab_size = 65;
      const int64_t parameters = count_parameters(Transformer(c.model));
      if (base == 0) base = parameters;
      CHECK(std::abs(parameters - base) < base / 10);
      if (!c.model.gated) CHECK(parameters == base);
    }
    CHECK(seen.size() <= 12);
  }

  TEST_CASE("a difference counts from two standard errors on") {
    const AblationRow rows[] = {{"base", "{}"}, {"near", "{}"}, {"far", "{}"}};
    // Deviations ±0.01 of two seeds: pooled √(6·0.01²/3) = 0.014142, of a difference of means √(2/2) times it.
    const AblationResult two[] = {{.parameters = 10, .losses = {1.51, 1.49}, .seconds = {}},
                                  {.parameters = 11, .losses = {1.53, 1.51}, .seconds = {}},
                                  {.parameters = 12, .losses = {1.44, 1.46}, .seconds = {}}};
    const std::string table = ablation_table(rows, two);
    CAPTURE(table);
    CHECK(table.find("| base | 10 | 1.5000 | 0.0200 |  |  |\n") != std::string::npos);
    CHECK(table.find("| near | 11 | 1.5200 | 0.0200 | +0.0200 | no |\n") != std::string::npos);
    CHECK(table.find("| far | 12 | 1.4500 | 0.0200 | -0.0500 | yes, better |\n") != std::string::npos);
    CHECK(table.find("deviates by 0.0141") != std::string::npos);
    CHECK(table.find("counts from 0.0283 on") != std::string::npos);
    const AblationResult one[] = {{.parameters = 10, .losses = {1.5}, .seconds = {}},
                                  {.parameters = 11, .losses = {1.6}, .seconds = {}},
                                  {.parameters = 12, .losses = {1.7}, .seconds = {}}};
    CHECK(ablation_table(rows, one).find("+0.2000 | unknown: one seed |") != std::string::npos);
  }

  TEST_CASE("a round is run for every seed that fits, and at least one") {
    const tests::Folder folder;
    tests::write_file(folder / "text", tests::small_text());
    std::vector<std::string> lines;
    const auto run = [&](int64_t seeds, double seconds) {
      lines.clear();
      return run_ablation(folder / "text", seeds, seconds, 1, [&](const std::string& line) { lines.push_back(line); });
    };
    const size_t rows = ablation_rows().size();
    CHECK(run(2, 1e9)[0].losses.size() == 2);
    CHECK(lines.size() == 2 * rows);
    CHECK(run(2, 0)[0].losses.size() == 1);
    CHECK(lines.size() == rows);
    CHECK_THROWS_WITH_AS(run(0, 1), "ablate: seeds is 0; it must be at least 1", ValueError);
    CHECK_THROWS_AS((void)run_ablation(folder / "text", 1, 1, -1, [](const std::string&) {}), ValueError);
  }
}
