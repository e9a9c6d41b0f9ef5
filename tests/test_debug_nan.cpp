// test_debug_nan.cpp: a step of training that is not finite is explained, and nothing is lost by it.
// Not the finder (test_anomaly.cpp), nor the command line (test_programs.cpp).
// Next: ../models/training/debug_nan.h.
#include "../models/training/debug_nan.h"

#include <doctest/doctest.h>

#include <cmath>

#include "../autograd/random.h"
#include "../models/training/checkpoint.h"
#include "../models/training/loop.h"
#include "../models/training/memory_places.h"
#include "../nn/dropout.h"
#include "../nn/visitor.h"
#include "../ops/ops.h"
#include "training_fixtures.h"

using namespace tapestry;
using namespace tapestry::tests;

namespace {

/// Logits exp(100·table[token]) through dropout, or their logarithm's: e¹⁰⁰ is too large for f32.
struct Steep : Layer<Steep> {
  Parameter table;
  Parameter frozen{ones({1})};
  Buffer seen{zeros({1})};
  Dropout noise{0.1};
  double power = 100;
  bool logarithm = false;
  explicit Steep(const Tensor& t) : table(t) { frozen.requires_grad_(false); }
  [[nodiscard]] Tensor forward(const Tensor& tokens) const {
    const Tensor x = noise(embedding(table, tokens)) * power;
    return logarithm ? log(x) : exp(x);
  }
  void visit(Visitor& v) override {
    v.parameter("table", table);
    v.parameter("frozen", frozen);
    v.buffer("seen", seen);
    v.child("noise", noise);
  }
};

TokenBatch small_batch() { return {.rows = 1, .context = 3, .inputs = {0, 1, 2}, .targets = {1, 0, 1}}; }

NanReport debugged(Steep& model) {
  const TokenBatch batch[] = {small_batch()};
  return debug_nan(model, summed_cross_entropy([&](const Tensor& tokens) { return model(tokens); }), batch, 5);
}

}  // namespace

TEST_SUITE("debug_nan") {
  TEST_CASE("an overflow of f32 is named, and f64 shows that precision is the cause; the model is as before") {
    manual_seed(3);
    Steep model(full({3, 2}, 1));
    const TensorBody* leaf = model.table.body();
    const TensorBody* buffer = model.seen.body();
    const NanReport report = debugged(model);
    REQUIRE(report.found);
    CHECK(report.found->op == "exp");
    CHECK(report.origin.find("exp: output 0 ([1, 3, 2] f32) is not finite: ") == 0);
    REQUIRE(report.finite_in_f64);
    CHECK(*report.finite_in_f64);
    CHECK(report.in_f64.find("in f64 the same step is finite (loss ") == 0);
    CHECK(model.table.body() == leaf);
    CHECK(model.table.dtype() == DType::f32);
    CHECK(model.table.requires_grad());
    CHECK_FALSE(model.table.grad().defined());
    CHECK_FALSE(model.frozen.requires_grad());
    CHECK(model.seen.body() == buffer);
    CHECK(random_state().step == 0);
  }

  TEST_CASE("what f64 does not help, and what was not finite before any op") {
    Steep model(zeros({3, 2}));
    model.logarithm = true;
    NanReport report = debugged(model);
    REQUIRE(report.found);
    CHECK(report.found->op == "log");
    CHECK_FALSE(*report.finite_in_f64);
    CHECK(report.in_f64 == "in f64 the same step is not finite either: precision is not the cause");

    Steep broken(tensor({{0.0, NAN}, {0.0, 0.0}, {0.0, 0.0}}));
    report = debugged(broken);
    CHECK_FALSE(report.found);
    CHECK(report.origin ==
          "parameter table ([3, 2] f32) is not finite: 1 NaN of 6 elements, first at [0, 1], the others in [0, 0], "
          "before "
          "the step");

    Steep calm(zeros({3, 2}));
    report = debugged(calm);
    CHECK(report.origin == "run again, every op was finite");
    CHECK(*report.finite_in_f64);
  }

  TEST_CASE("run_training ends with the explanation, after the checkpoint and the weights are saved") {
    const Folder folder;
    const TrainingText text(small_text(), make_tokenizer("char", small_text()), 0.1);
    TrainConfig c = small_config();
    c.max_skipped = 1;
    const auto model =
        std::make_shared<Steep>(full({text.tokenizer().vocab_size(), text.tokenizer().vocab_size()}, 0.1));
    model->noise.p = 0;
    Trainer trainer(c, text, language_model(model), [&](int64_t step) {
      if (step == 2) model->power = 1000;  // the third step overflows
      return 1e-4;
    });
    trainer.set_debug_nan(true);
    const RunFolder run(folder / "run");
    begin_run(run, trainer);
    TrainObserver silent;
    std::string message;
    try {
      (void)run_training(run, trainer, silent, [] { return false; });
    } catch (const ValueError& e) {
      message = e.what();
    }
    CHECK(message.find("train: step 4 has loss ") == 0);
    CHECK(message.find(": exp: output 0 ([4, 16, ") != std::string::npos);
    CHECK(message.find("; in f64 the same step is finite (loss ") != std::string::npos);
    CHECK(read_checkpoint(run.checkpoint()).state.step == 4);
    CHECK(std::filesystem::exists(run.model()));
  }

  TEST_CASE("a trainer's memory lies under its modules") {
    const TrainingText text(small_text(), make_tokenizer("char", small_text()), 0.1);
    const MemoryTracker tracker;
    {
      Trainer trainer(small_config(), text);
      (void)trainer.step();
      place_memory(tracker, trainer);
      const MemoryReport r = tracker.report();
      const int64_t bytes = count_parameters(trainer.model()) * 4;
      CHECK(r.live[MemoryKind::parameter] == bytes);
      CHECK(r.live[MemoryKind::optimizer] == 2 * bytes);
      CHECK(r.live[MemoryKind::gradient] == 0);
      const auto& query = r.live_by_path.at("layers.1.attention.q_proj");
      CHECK(query[MemoryKind::parameter] == 16 * 16 * 4);
      CHECK(query[MemoryKind::optimizer] == 2 * 16 * 16 * 4);
      CHECK(r.peak[MemoryKind::saved] > 0);
      CHECK(r.peak.total() >= r.live.total());
    }
    CHECK(tracker.report().live.total() == 0);
  }
}
