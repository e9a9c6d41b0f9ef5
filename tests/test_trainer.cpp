// Training: configurations, the weighing of tokens, steps that are skipped, the same bits at any thread count.
// Not here: stopping and resuming (test_train_resume.cpp), the command line (test_programs.cpp).
// Next: ../models/training/trainer.h.
#include <doctest/doctest.h>

#include <array>
#include <bit>
#include <cmath>
#include <limits>

#include "../autograd/parallel.h"
#include "../models/training/presets.h"
#include "../models/training/progress.h"
#include "../models/training/trainer.h"
#include "../models/transformer/lm.h"
#include "../nn/visitor.h"
#include "../ops/ops.h"
#include "training_fixtures.h"

using namespace tapestry;
using namespace tapestry::tests;

namespace {

TrainingText read(std::string_view text) { return {text, make_tokenizer("char", text), 0.1}; }

/// Logits by table: row t for token t.
struct TableModel : Layer<TableModel> {
  Parameter table;
  explicit TableModel(const Tensor& t) : table(t) {}
  [[nodiscard]] Tensor forward(const Tensor& tokens) const { return embedding(table, tokens); }
  void visit(Visitor& v) override { v.parameter("table", table); }
};

/// A table of two classes in which token i, with target 0, has the loss losses[i].
Tensor table_of(const std::vector<double>& losses) {
  std::vector<double> logits;
  for (const double loss : losses) logits.insert(logits.end(), {-std::log(std::expm1(loss)), 0.0});
  return from(logits, {static_cast<int64_t>(losses.size()), 2});
}

TokenBatch batch_of(std::vector<int64_t> inputs, std::vector<int64_t> targets) {
  const auto n = static_cast<int64_t>(inputs.size());
  return {.rows = 1, .context = n, .inputs = std::move(inputs), .targets = std::move(targets)};
}

}  // namespace

TEST_SUITE("trainer") {
  TEST_CASE("a configuration comes back from its JSON, and every preset is valid") {
    TrainConfig changed = small_config();
    changed.tokenizer = "byte";
    changed.lr = 0.1 + 0.2;
    changed.micro_batch = 3;
    CHECK(TrainConfig::from_json(changed.to_json()) == changed);
    for (const Preset& row : presets()) {
      CAPTURE(row.name);
      CHECK(TrainConfig::from_json(row.config.to_json()) == row.config);
      CHECK(&preset(row.name) == &row.config);
      CHECK_NOTHROW((void)completed(row.config, ByteTokenizer()));
    }
    CHECK_THROWS_WITH_AS((void)preset("huge"),
                         "preset: there is no preset called 'huge'; there are demo, nano, small, base", ValueError);
  }

  TEST_CASE("the nano preset is nanoGPT's setting for a CPU") {
    const TrainConfig& c = preset("nano");
    CHECK(c.model.n_layers == 4);
    CHECK(c.model.n_heads == 4);
    CHECK(c.model.d_model == 128);
    CHECK(std::array{c.context, c.batch, c.steps, c.warmup} == std::array<int64_t, 4>{64, 12, 2000, 100});
    CHECK(std::array{c.lr, c.lr_min, c.beta1, c.beta2, c.weight_decay, c.clip} ==
          std::array{1e-3, 1e-4, 0.9, 0.99, 0.1, 1.0});
    CHECK(c.tokenizer == "char");
    TransformerConfig model = c.model;
    model.vocab_size = 65;
    CHECK(count_parameters(Transformer(model)) == 869760);
  }

  TEST_CASE("bad configurations are refused by name") {
    const auto text_with = [](const char* field, const char* value) {
      std::string json = small_config().to_json();
      const size_t at = json.find('"' + std::string(field) + "\":");
      const size_t begin = json.find(':', at) + 1, end = json.find_first_of(",\n}", begin);
      return json.replace(begin, end - begin, value);
    };
    const std::array<std::array<const char*, 3>, 18> rows = {{
        {"batch", "0", "config: batch is 0; it must be at least 1"},
        {"batch", "2147483649", "config: batch is 2147483649; it must be at most 2147483648"},
        {"steps", "1, \"steps\": 2", "config: the field steps is given twice; keep one"},
        {"batch", "1.5", "config: batch is 1.5; expected a whole number"},
        {"tokenizer", "\"words\"",
         "config: tokenizer is 'words'; there are char and byte, and files such as ./tokenizer.json"},
        {"tokenizer", "3", "config: tokenizer is 3; expected a string"},
        {"held_out", "0", "config: held_out is 0; it must lie between 0 and 1"},
        {"context", "17", "config: context 17 is more than the model's max_seq_len 16"},
        {"lr", "-1", "config: lr is -1; it must be finite and not negative"},
        {"lr", "true", "config: lr is true; expected a number"},
        {"lr_min", "1", "config: lr_min 1 is more than lr 0.01"},
        {"beta2", "1", "config: beta2 is 1; it must be in [0, 1)"},
        {"clip", "-0.5", "config: clip is -0.5; it must be finite and not negative"},
        {"eval_interval", "0", "config: eval_interval is 0; it must be at least 1"},
        {"seed", "-1", "config: seed is -1; it must be at least 0"},
        {"n_heads", "0", "config: n_heads is 0; it must be 1 to 2147483648"},
        {"warmup", "3, \"warm_up\": 4", "config: unknown field training.warm_up: 4"},
        {"d_ff", "32, \"bias\": true", "config: unknown field bias: true"},
    }};
    for (const auto& [field, value, message] : rows)
      CHECK_THROWS_WITH_AS((void)TrainConfig::from_json(text_with(field, value)), message, Error);
    CHECK_THROWS_WITH_AS((void)TrainConfig::from_json("{"), "config: not a JSON object", FormatError);
    CHECK_THROWS_WITH_AS((void)TrainConfig::from_json("{}"), "config: model is missing", FormatError);
    CHECK_THROWS_WITH_AS((void)TrainConfig::from_json(std::string(100'000, '[') + std::string(100'000, ']')),
                         "config: the JSON is nested more than 32 deep", FormatError);
    CHECK_THROWS_WITH_AS((void)TrainConfig::from_json(R"({"model": {}, "x": 1})"), "config: unknown field x: 1",
                         FormatError);
  }

  TEST_CASE("vocab_size follows from the text, and another one is refused") {
    const std::string text = small_text();
    TrainConfig c = small_config();
    const TrainingText chars = read(text);
    CHECK(completed(c, chars.tokenizer()).model.vocab_size == chars.tokenizer().vocab_size());
    c.model.vocab_size = 65;
    CHECK_THROWS_AS(Trainer(c, chars), ValueError);
    const TrainingText tiny = read("abcabc");
    CHECK_THROWS_WITH_AS(Trainer(small_config(), tiny),
                         "batch_order: context 16 needs at least 17 tokens, the training part has 5; shorten the "
                         "context or give more text",
                         ValueError);
  }

  TEST_CASE("every token of a step weighs the same: losses 1 and 2, 3, 6 in two micro-batches are 3") {
    const TableModel model(table_of({1, 2, 3, 6}));
    const LossFn summed = summed_cross_entropy([&](const Tensor& tokens) { return model(tokens); });
    const std::vector<TokenBatch> parts = {batch_of({0}, {0}), batch_of({1, 2, 3}, {0, 0, 0})};
    const TokenLoss loss = accumulate_gradients(summed, parts);
    CHECK(loss.tokens == 4);
    CHECK(loss.mean() == doctest::Approx(3.0).epsilon(1e-12));
    const std::vector<double> in_parts = model.table.grad().to_vector<double>();
    model.table.clear_grad();
    const std::vector<TokenBatch> whole = {batch_of({0, 1, 2, 3}, {0, 0, 0, 0})};
    CHECK(accumulate_gradients(summed, whole).mean() == doctest::Approx(3.0).epsilon(1e-12));
    const std::vector<double> at_once = model.table.grad().to_vector<double>();
    for (size_t i = 0; i < at_once.size(); ++i) CHECK(in_parts[i] == doctest::Approx(at_once[i]).epsilon(1e-12));
    CHECK(at_once[0] == doctest::Approx((std::exp(-1.0) - 1) / 4).epsilon(1e-12));  // (softmax − 1)/tokens
  }

  TEST_CASE("ignored targets count for nothing, and a step without targets changes nothing") {
    const TableModel model(table_of({1, 2}));
    const LossFn summed = summed_cross_entropy([&](const Tensor& tokens) { return model(tokens); });
    const std::vector<TokenBatch> none = {batch_of({0, 1}, {ignored_target, ignored_target})};
    CHECK(accumulate_gradients(summed, none).tokens == 0);
    CHECK(accumulate_gradients(summed, none).mean() == 0);
    CHECK_FALSE(model.table.grad().defined());
    const std::vector<TokenBatch> some = {none[0], batch_of({0, 1}, {0, ignored_target})};
    const TokenLoss loss = accumulate_gradients(summed, some);
    CHECK(loss.tokens == 1);
    CHECK(loss.mean() == doctest::Approx(1.0));
    CHECK(model.table.grad().to_vector<double>()[2] == 0);
  }

  TEST_CASE("gradients of 8 windows, of 5 + 3 and of 1 x 8 agree to 1e-12 in f64") {
    const std::string bytes = small_text();
    const TrainingText text = read(bytes);
    TrainConfig c = completed(small_config(), text.tokenizer());
    c.model.n_layers = 3;
    const LanguageModel model = make_transformer(c);
    to(*model.module, DType::f64);
    const BatchOrder order(text.corpus().train(), c.context, 1);
    const auto gradients = [&](const std::vector<int64_t>& rows) {
      std::vector<TokenBatch> batches;
      int64_t first = 0;
      for (const int64_t n : rows) batches.push_back(order.batch(0, n, first)), first += n;
      zero_grad(*model.module);
      accumulate_gradients(model.training_loss, batches);
      std::vector<Tensor> grads;
      for (const auto& [name, p] : named_parameters(*model.module)) grads.push_back(p.grad());
      return grads;
    };
    const std::vector<Tensor> whole = gradients({8});
    for (const std::vector<int64_t>& rows : {std::vector<int64_t>{5, 3}, std::vector<int64_t>(8, 1)}) {
      const std::vector<Tensor> parts = gradients(rows);
      for (size_t i = 0; i < whole.size(); ++i)
        CHECK(norm(parts[i] - whole[i]).item() <= 1e-12 * norm(whole[i]).item());
    }
  }

  TEST_CASE("evaluation is the mean over every held-out token, or over windows spread over the part") {
    const std::vector<int32_t> tokens = {0, 1, 2, 3, 0, 1, 2, 3, 1, 2, 3};
    const TableModel model(from(std::vector<double>{1, 0, 2, 0, 0, 3, 1, -1, 0, 0, -2, 1, 5, 1, 2, 3}, {4, 4}));
    const LossFn summed = summed_cross_entropy([&](const Tensor& ids) { return model(ids); });
    double sum = 0;
    for (size_t i = 1; i < tokens.size(); ++i) {
      const std::vector<double> row = select(model.table.detach(), 0, tokens[i - 1]).to_vector<double>();
      double z = 0;
      for (const double x : row) z += std::exp(x);
      sum += std::log(z) - row[static_cast<size_t>(tokens[i])];
    }
    const TokenLoss loss = evaluate(summed, EvalWindows(tokens, 4));  // the last window is short
    CHECK(loss.tokens == 10);
    CHECK(loss.mean() == doctest::Approx(sum / 10).epsilon(1e-12));
    CHECK(loss.perplexity() == doctest::Approx(std::exp(sum / 10)).epsilon(1e-12));
    const std::vector<int32_t> many(20000, 1);
    CHECK(evaluate(summed, EvalWindows(many, 4), 600).tokens == 2 * 2048);
    CHECK_FALSE(model.table.grad().defined());
  }

  TEST_CASE("a step follows the schedule, decays matrices only and clips the norm") {
    const std::string bytes = small_text();
    const TrainingText text = read(bytes);
    TrainConfig c = small_config();
    Trainer trainer(c, text);
    CHECK(trainer.optimizer().group("norm.weight").options.weight_decay == 0);
    CHECK(trainer.optimizer().group("layers.1.attention_norm.weight").options.weight_decay == 0);
    CHECK(trainer.optimizer().group("layers.0.attention.q_proj.weight").options.weight_decay == 0.1);
    CHECK(trainer.optimizer().group("token_embedding.weight").options.weight_decay == 0.1);
    const CosineWithWarmup schedule{
        .lr_max = c.lr, .lr_min = c.lr_min, .warmup_steps = c.warmup, .total_steps = c.steps};
    const double ln_v = std::log(static_cast<double>(text.tokenizer().vocab_size()));
    for (int64_t i = 0; i < c.steps; ++i) {
      const StepReport report = trainer.step();
      CHECK(report.step == i + 1);
      CHECK(report.lr == schedule(i));
      CHECK(report.tokens == 64);
      if (i == 0) CHECK(std::abs(report.loss - ln_v) < 0.5);
    }
    CHECK(trainer.finished());
    CHECK(trainer.evaluate(true).tokens == static_cast<int64_t>(text.corpus().held_out().size()) - 1);
    CHECK(trainer.model().is_training());
  }

  TEST_CASE("accumulated micro-batches take the same steps as whole batches, up to rounding") {
    const std::string bytes = small_text();
    const TrainingText text = read(bytes);
    TrainConfig c = small_config();
    Trainer whole(c, text);
    c.micro_batch = 3;  // 3 + 1 of 4
    Trainer parts(c, text);
    for (int i = 0; i < 5; ++i) CHECK(parts.step().loss == doctest::Approx(whole.step().loss).epsilon(1e-4));
  }

  TEST_CASE("the loss curve is the same bit for bit with 1, 2 and 4 threads") {
    struct ThreadCount {
      int before = num_threads();
      ~ThreadCount() { set_num_threads(before); }
    } const restore;
    const std::string bytes = small_text();
    const TrainingText text = read(bytes);
    TrainConfig c = small_config();
    c.model = {
        .vocab_size = 0, .max_seq_len = 64, .n_layers = 2, .n_heads = 4, .n_kv_heads = 4, .d_model = 64, .d_ff = 192};
    c.context = 64;
    c.batch = 8;  // products of 512 rows: large enough to be cut
    std::vector<std::vector<uint64_t>> curves;
    for (const int threads : {1, 2, 4}) {
      set_num_threads(threads);
      Trainer trainer(c, text);
      std::vector<uint64_t> curve;
      for (int i = 0; i < 6; ++i) curve.push_back(std::bit_cast<uint64_t>(trainer.step().loss));
      curve.push_back(std::bit_cast<uint64_t>(trainer.evaluate(true).sum));
      curves.push_back(curve);
    }
    CHECK(curves[0] == curves[1]);
    CHECK(curves[0] == curves[2]);
  }

  TEST_CASE("a step that is not finite leaves the weights alone, and too many in a row end the run") {
    const std::string bytes = small_text();
    const TrainingText text = read(bytes);
    TrainConfig c = small_config();
    c.max_skipped = 3;
    const int64_t v = text.tokenizer().vocab_size();
    const auto table = std::make_shared<TableModel>(zeros({v, v}));
    double factor = 1;
    const LossFn summed = summed_cross_entropy([&](const Tensor& tokens) { return (*table)(tokens)*factor; });
    const LanguageModel model{table, summed, summed};
    Trainer trainer(c, text, model, ConstantRate{.lr = 0.1});
    CHECK_FALSE(trainer.step().skipped);
    const std::vector<float> before = table->table.to_vector();
    factor = std::numeric_limits<double>::quiet_NaN();
    CHECK(trainer.step().skipped);
    CHECK(trainer.step().skipped);
    CHECK(table->table.to_vector() == before);
    CHECK(trainer.state().step == 3);
    CHECK(trainer.state().loss_steps == 1);
    factor = 1;
    CHECK_FALSE(trainer.step().skipped);
    CHECK(table->table.to_vector() != before);
    factor = std::numeric_limits<double>::infinity();
    trainer.step(), trainer.step();
    CHECK_THROWS_AS(trainer.step(), ValueError);
    CHECK(trainer.state().skipped == 5);
  }

  TEST_CASE("times and counts read as people write them") {
    CHECK(format_duration(0) == "0:00");
    CHECK(format_duration(41.2) == "0:42");
    CHECK(format_duration(3723) == "1:02:03");
    CHECK(format_count(812) == "812");
    CHECK(format_count(31240) == "31.2k");
    CHECK(format_count(1.25e6) == "1.25M");
  }
}
