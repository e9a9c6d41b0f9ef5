// Stopping, being killed and going on: the run and its files end as if nothing had happened.
// Not here: the file format's own refusals (test_safetensors.cpp).
// Next: ../models/training/loop.h.
#include <doctest/doctest.h>

#include <array>
#include <nlohmann/json.hpp>

#include "../autograd/error.h"
#include "../models/training/checkpoint.h"
#include "../models/training/loop.h"
#include "../models/training/text_model.h"
#include "../models/training/verify_resume.h"
#include "../nn/safetensors.h"
#include "training_fixtures.h"

using namespace tapestry;
using namespace tapestry::tests;

namespace {

const std::string bytes = small_text();
TrainingText read(std::string_view text) { return {text, make_tokenizer("char", text), 0.1}; }

/// The log without what depends on the clock.
std::vector<nlohmann::json> timeless_log(const std::string& path) {
  std::vector<nlohmann::json> lines;
  std::istringstream file(read_file(path));
  for (std::string line; std::getline(file, line);) {
    lines.push_back(nlohmann::json::parse(line));
    lines.back().erase("seconds");
    lines.back().erase("tokens_per_second");
  }
  return lines;
}

/// Goes on until `steps` steps are done, or to the end.
TrainEnd run_until(const RunFolder& folder, Trainer& trainer, int64_t steps) {
  TrainObserver silent;
  return run_training(folder, trainer, silent, [&] { return trainer.state().step >= steps; });
}

TrainEnd start(const RunFolder& folder, const TrainingText& text, int64_t steps) {
  Trainer trainer(small_config(), text);
  begin_run(folder, trainer);
  return run_until(folder, trainer, steps);
}

TrainEnd resume(const RunFolder& folder, const TrainingText& text, int64_t steps) {
  const Checkpoint checkpoint = read_checkpoint(folder.checkpoint());
  Trainer trainer(checkpoint.config, text);
  restore(trainer, checkpoint);
  return run_until(folder, trainer, steps);
}

}  // namespace

TEST_SUITE("train_resume") {
  TEST_CASE("a run stopped at any step, or killed after any write, ends with the same log and the same weights") {
    const Folder folder;
    const TrainingText text = read(bytes);
    const RunFolder straight(folder / "straight");
    REQUIRE(start(straight, text, 100) == TrainEnd::finished);
    const auto log = timeless_log(straight.log());
    REQUIRE(log.size() == 3);  // steps 5, 10 and 12
    CHECK(log[2]["step"] == 12);
    CHECK(log[2]["val_tokens"] == text.corpus().held_out().size() - 1);

    for (const int64_t stop : {1, 3, 5, 6, 11}) {
      CAPTURE(stop);
      const RunFolder stopped(folder / ("stopped" + std::to_string(stop)));
      REQUIRE(start(stopped, text, stop) == TrainEnd::stopped);
      CHECK(std::filesystem::exists(stopped.model()));
      // As if killed between the log and the checkpoint that counts it: the line belongs to nothing.
      std::ofstream(stopped.log(), std::ios::app) << "{\"step\": 99}\n{\"st";
      REQUIRE(resume(stopped, text, 100) == TrainEnd::finished);
      CHECK(timeless_log(stopped.log()) == log);
      CHECK(read_file(stopped.model()) == read_file(straight.model()));
      const TensorFile a = read_safetensors(stopped.checkpoint()), b = read_safetensors(straight.checkpoint());
      REQUIRE(a.tensors.size() == b.tensors.size());
      for (const auto& [name, tensor] : a.tensors)
        CHECK(tensor.to_vector<double>() == b.tensors.at(name).to_vector<double>());
    }
  }

  TEST_CASE("killed right after the first write, a run can be resumed; resuming a finished one changes nothing") {
    const Folder folder;
    const TrainingText text = read(bytes);
    const RunFolder straight(folder / "straight"), killed(folder / "killed");
    start(straight, text, 100);
    {
      Trainer trainer(small_config(), text);
      killed.create();
      save_checkpoint(killed.checkpoint(), trainer);
    }
    CHECK(resume(killed, text, 100) == TrainEnd::finished);
    CHECK(timeless_log(killed.log()) == timeless_log(straight.log()));
    const std::string model = read_file(straight.model()), log = read_file(straight.log()),
                      checkpoint = read_file(straight.checkpoint());
    CHECK(resume(straight, text, 100) == TrainEnd::finished);
    CHECK(read_file(straight.model()) == model);
    CHECK(read_file(straight.log()) == log);
    CHECK(read_file(straight.checkpoint()) == checkpoint);
  }

  TEST_CASE("verify_resume finds the runs equal, and leaves no file") {
    const Folder folder;
    const TrainingText text = read(bytes);
    const ResumeVerdict verdict = verify_resume(small_config(), text, 3, folder / "file");
    CHECK_MESSAGE(verdict.equal, verdict.message);
    CHECK(std::filesystem::is_empty(folder.path));
  }

  TEST_CASE("a trained model is read back from its folder, and its files tell what they are") {
    const Folder folder;
    const TrainingText text = read(bytes);
    const RunFolder run(folder / "run/below/another");
    CHECK_FALSE(run.holds_run());
    start(run, text, 100);
    CHECK(run.holds_run());
    const TextModel loaded = load_text_model(run.path());
    CHECK(loaded.tokenizer->to_json() == text.tokenizer().to_json());
    CHECK(loaded.model->config.vocab_size == text.tokenizer().vocab_size());
    CHECK(TrainConfig::from_json(read_file(run.config())).steps == 12);
    for (const auto& line : timeless_log(run.log())) {
      CHECK(line["train_loss"].is_number());
      CHECK(line["perplexity"].get<double>() == doctest::Approx(std::exp(line["val_loss"].get<double>())));
    }
  }

  TEST_CASE("what is no checkpoint of this run is refused with the reason, and the trainer stays as it was") {
    const Folder folder;
    const TrainingText text = read(bytes);
    const RunFolder run(folder / "run");
    start(run, text, 5);
    const std::string whole = read_file(run.checkpoint());
    const auto broken = [&](const std::string& content) {
      write_file(folder / "broken", content);
      return folder / "broken";
    };
    CHECK_THROWS_AS((void)read_checkpoint(folder / "missing"), IoError);
    CHECK_THROWS_AS((void)read_checkpoint(broken(whole.substr(0, whole.size() / 2))), FormatError);
    CHECK_THROWS_AS((void)read_checkpoint(broken("not a checkpoint")), FormatError);
    CHECK_THROWS_WITH_AS((void)read_checkpoint(run.model()),
                         ("checkpoint: '" + run.model() + "' is not a checkpoint: it has no run description").c_str(),
                         FormatError);
    const TensorFile file = read_safetensors(run.checkpoint());
    const auto edited = [&](auto edit) {
      auto json = nlohmann::json::parse(file.metadata.at("tapestry_run"));
      edit(json);
      write_safetensors(folder / "edited", file.tensors, {{"tapestry_run", json.dump()}});
      return folder / "edited";
    };
    CHECK_NOTHROW((void)read_checkpoint(edited([](auto&) {})));
    CHECK_THROWS_AS((void)read_checkpoint(edited([](auto& j) { j = nlohmann::json::array(); })), FormatError);
    CHECK_THROWS_AS((void)read_checkpoint(edited([](auto& j) { j["version"] = 2; })), FormatError);
    CHECK_THROWS_AS((void)read_checkpoint(edited([](auto& j) { j["state"].erase("step"); })), FormatError);
    CHECK_THROWS_AS((void)read_checkpoint(edited([](auto& j) { j["state"]["step"] = -1; })), FormatError);
    CHECK_THROWS_AS((void)read_checkpoint(edited([](auto& j) { j["state"]["step"] = "5"; })), FormatError);
    CHECK_THROWS_AS((void)read_checkpoint(edited([](auto& j) { j["text"]["hash"] = "xyz"; })), FormatError);
    CHECK_THROWS_AS((void)read_checkpoint(edited([](auto& j) { j["config"]["training"]["speed"] = 9; })), FormatError);

    const Checkpoint checkpoint = read_checkpoint(run.checkpoint());
    const std::string other_bytes = bytes + "the end: 0\n";
    const TrainingText other = read(other_bytes);
    Trainer trainer(small_config(), other);
    CHECK_THROWS_WITH_AS(
        restore(trainer, checkpoint),
        "resume: the embedded corpus is not the text this run was trained on; name that file with --data", FormatError);
    CHECK(trainer.state().step == 0);
  }
}
