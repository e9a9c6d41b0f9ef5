// `tapestry train`: from options to a run in its folder, and what is printed about it.
// Not here: the training itself (../training/loop.h).
// Next: generate.cpp.
#include <fmt/core.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <memory>
#include <optional>
#include <utility>

#include "../../autograd/error.h"
#include "../../autograd/parallel.h"
#include "../../nn/mapped_file.h"
#include "../../nn/visitor.h"
#include "../text/baseline.h"
#include "../text/words.h"
#include "../training/checkpoint.h"
#include "../training/loop.h"
#include "../training/memory_places.h"
#include "../training/presets.h"
#include "../training/progress.h"
#include "../training/verify_resume.h"
#include "program.h"
#include "sample_text.h"
#include "stop_signal.h"

namespace tapestry::programs {
namespace {

struct TrainOptions {
  std::string data, out = "run", preset = "demo", config;
  std::optional<int64_t> steps, batch, micro_batch, context, seed, eval_interval;
  std::optional<double> lr;
  std::optional<std::string> tokenizer;
  int64_t sample = 500;
  bool resume = false, overwrite = false, verify_resume = false, debug_nan = false, memory_report = false,
       recompute = false;
};

/// Steps on either side of the stop that --verify-resume tries.
constexpr int64_t verified_steps = 5;

TrainConfig chosen_config(const TrainOptions& o) {
  TrainConfig c =
      o.config.empty() ? preset(o.preset) : TrainConfig::from_json(std::string(MappedFile(o.config).bytes()));
  if (o.steps) c.steps = *o.steps;
  if (o.batch) c.batch = *o.batch;
  if (o.micro_batch) c.micro_batch = *o.micro_batch;
  if (o.recompute) c.recompute = true;
  if (o.context) c.context = c.model.max_seq_len = *o.context;
  if (o.seed) c.seed = *o.seed;
  if (o.eval_interval) c.eval_interval = *o.eval_interval;
  if (o.tokenizer) c.tokenizer = *o.tokenizer;
  if (o.lr) {
    c.lr_min *= c.lr > 0 ? *o.lr / c.lr : 0;  // the shape of the schedule stays
    c.lr = *o.lr;
  }
  c.validate();
  return c;
}

void print_start(const Trainer& t) {
  const TrainConfig& c = t.config();
  const TrainingText& text = t.text();
  fmt::print("{}: {} bytes, {} training and {} held-out tokens of {} kinds ({})\n",
             text.source().empty() ? "embedded corpus" : text.source(), text.bytes().size(),
             text.corpus().train().size(), text.corpus().held_out().size(), c.model.vocab_size,
             text.tokenizer().name());
  fmt::print("model: {} parameters, {} layers of width {}, context {}; {} steps of {} windows, {} thread{}\n",
             count_parameters(t.model()), c.model.n_layers, c.model.d_model, c.context, c.steps, c.batch, num_threads(),
             num_threads() == 1 ? "" : "s");
  fmt::print("a model that knows nothing has loss ln V = {:.4f}\n", std::log(static_cast<double>(c.model.vocab_size)));
  std::fflush(stdout);
}

/// The trained model beside what counting achieves.
void print_result(const TrainingText& text, const TokenLoss& held_out) {
  const int64_t v = text.tokenizer().vocab_size();
  const auto train = text.corpus().train(), rest = text.corpus().held_out();
  fmt::print("\nloss over the whole held-out part ({} tokens), in nats a token:\n", held_out.tokens);
  fmt::print("  this model {:8.4f}   perplexity {:.3f}\n", held_out.mean(), held_out.perplexity());
  fmt::print("  bigram     {:8.4f}   counted pairs of tokens\n", bigram_loss(train, rest, v));
  fmt::print("  unigram    {:8.4f}   counted tokens\n", unigram_loss(train, rest, v));
  fmt::print("  ln V       {:8.4f}   {} tokens, all equally likely\n", std::log(static_cast<double>(v)), v);
}

void print_sample(const RunFolder& folder, const TrainingText& text, int64_t tokens) {
  fmt::print("\n{} tokens it writes at temperature {}:\n\n", tokens, default_temperature);
  const TextModel loaded = load_text_model(folder.path());
  const std::string written = sample_text(loaded, start_tokens(*loaded.tokenizer),
                                          {.max_tokens = tokens,
                                           .sampler = {.temperature = default_temperature},
                                           .seed = 1,
                                           .when_full = WhenFull::slide},
                                          {}, stdout)
                                  .text;
  const WordCount words = count_known_words(written, text.bytes());
  fmt::print("\n\n{} of its {} words ({:.0f} %) occur in the text it was trained on\n", words.known, words.total,
             100 * words.share());
}

/// Progress that also files memory under modules after the first step, when every moment is there.
class PlacingProgress : public Progress {
 public:
  PlacingProgress(Trainer& trainer, const MemoryTracker* tracker)
      : Progress(trainer.config().steps), trainer_(trainer), tracker_(tracker) {}
  void on_step(const StepReport& report) override {
    Progress::on_step(report);
    if (tracker_ != nullptr && !std::exchange(placed_, true)) place_memory(*tracker_, trainer_);
  }

 private:
  Trainer& trainer_;
  const MemoryTracker* tracker_;
  bool placed_ = false;
};

/// Runs what is left of the run in `folder` and prints how it went.
void finish_run(const RunFolder& folder, Trainer& trainer, const TrainOptions& o, const MemoryTracker* tracker) {
  trainer.set_debug_nan(o.debug_nan);
  if (tracker != nullptr) place_memory(*tracker, trainer);
  PlacingProgress progress(trainer, tracker);
  const TrainEnd end = [&] {
    const StopSignal stop;  // only while there is something to save: what follows ends at once
    return run_training(folder, trainer, progress, [] { return StopSignal::asked(); });
  }();
  progress.clear();
  if (tracker != nullptr) fmt::print("\n{}", tracker->report().to_string());
  if (end == TrainEnd::stopped) {
    fmt::print("stopped after step {} of {}; go on with: tapestry train --resume --out {}\n", trainer.state().step,
               trainer.config().steps, folder.path());
    return;
  }
  print_result(trainer.text(), trainer.evaluate(true));
  if (o.sample > 0) print_sample(folder, trainer.text(), o.sample);
  fmt::print("\n{0}/model.safetensors, {0}/config.json and {0}/log.jsonl are written\n", folder.path());
}

TrainingText text_for(const TrainOptions& o, const TrainConfig& config) {
  if (!o.config.empty() && !o.tokenizer)
    if (auto tokenizer = tokenizer_in_config(std::string(MappedFile(o.config).bytes())))
      return TrainingText::read(o.data, std::move(tokenizer), config.held_out);
  return TrainingText::read(o.data, config.tokenizer, config.held_out);
}

void start(const TrainOptions& o) {
  const TrainConfig config = chosen_config(o);
  const RunFolder folder(o.out);
  if (!o.overwrite && !o.verify_resume && folder.holds_run())
    fail<IoError>("train: '{}' holds a run; go on with --resume, start again with --overwrite, or choose another --out",
                  o.out);
  const TrainingText text = text_for(o, config);
  if (o.verify_resume) {
    const auto file =
        std::filesystem::temp_directory_path() / fmt::format("tapestry_verify_{}.safetensors", ::getpid());
    const ResumeVerdict verdict = verify_resume(config, text, verified_steps, file.string());
    if (!verdict.equal) fail<ValueError>("verify-resume: the runs differ: {}", verdict.message);
    fmt::print("{0} + {0} steps with a stop between them equal {1} without: {2}\n", verified_steps, 2 * verified_steps,
               verdict.message);
    return;
  }
  const auto tracker = o.memory_report ? std::make_unique<MemoryTracker>() : nullptr;
  Trainer trainer(config, text);
  print_start(trainer);
  begin_run(folder, trainer);
  finish_run(folder, trainer, o, tracker.get());
}

void resume(const TrainOptions& o) {
  const RunFolder folder(o.out);
  Checkpoint checkpoint = read_checkpoint(folder.checkpoint());
  const TrainingText text = TrainingText::read(o.data.empty() ? checkpoint.source : o.data,
                                               std::move(checkpoint.tokenizer), checkpoint.config.held_out);
  check_text(checkpoint, text);
  const auto tracker = o.memory_report ? std::make_unique<MemoryTracker>() : nullptr;
  Trainer trainer(checkpoint.config, text);
  restore(trainer, checkpoint);
  fmt::print("going on after step {} of {}\n", trainer.state().step, trainer.config().steps);
  print_start(trainer);
  write_run_config(folder, trainer);  // a kill right after the first checkpoint leaves none
  finish_run(folder, trainer, o, tracker.get());
}

std::string preset_help() {
  std::string help = "a ready-made configuration:";
  for (const Preset& row : presets()) help += fmt::format("\n{}: {}", row.name, row.what);
  return help;
}

}  // namespace

void add_train(CLI::App& app) {
  CLI::App* command = app.add_subcommand("train", "train a Transformer on a text");
  const auto o = std::make_shared<TrainOptions>();
  command->add_option("--data", o->data, "text to train on; without it, this library's own sources")->type_name("FILE");
  command->add_option("--out", o->out, "folder for log.jsonl, config.json, model.safetensors and the checkpoint")
      ->type_name("DIR")
      ->capture_default_str();
  CLI::Option* with_preset =
      command->add_option("--preset", o->preset, preset_help())->type_name("NAME")->capture_default_str();
  command->add_flag(
      "--resume", o->resume,
      "go on with the run in --out, bit for bit as if it had not stopped; beside it only --out, --data (if "
      "the text has moved), --sample, --threads, --debug-nan and --memory-report mean anything");
  const std::vector<CLI::Option*> choices = {
      with_preset,
      command->add_option("--config", o->config, "configuration as JSON; the config.json of a run is one")
          ->type_name("FILE")
          ->excludes(with_preset),
      command->add_option("--steps", o->steps, "updates")->type_name("N"),
      command->add_option("--batch", o->batch, "windows a step")->type_name("N"),
      command->add_option("--micro-batch", o->micro_batch, "windows computed at once; a step adds up its gradients")
          ->type_name("N"),
      command->add_flag("--recompute", o->recompute,
                        "compute blocks again in backward: less memory, a third more time, the same result"),
      command->add_option("--context", o->context, "tokens a window predicts, and the model's longest sequence")
          ->type_name("N"),
      command->add_option("--lr", o->lr, "largest learning rate; the last one is scaled with it")->type_name("X"),
      command->add_option("--seed", o->seed, "of weights and batches")->type_name("N"),
      command->add_option("--tokenizer", o->tokenizer, "byte, char or a file such as ./tokenizer.json")
          ->type_name("KIND"),
      command->add_option("--eval-interval", o->eval_interval, "steps from one evaluation and checkpoint to the next")
          ->type_name("N"),
      command->add_flag("--overwrite", o->overwrite, "start again in a folder that holds a run"),
      command->add_flag("--verify-resume", o->verify_resume,
                        "prove that a run of this configuration resumes bit for bit, and write nothing"),
  };
  command->add_option("--sample", o->sample, "tokens to write at the end; 0 for none")
      ->type_name("N")
      ->capture_default_str();
  command->add_flag(
      "--debug-nan", o->debug_nan,
      "end at the first step whose loss or gradient is not finite, and say which operation made it so and "
      "whether f64 would");
  command->add_flag("--memory-report", o->memory_report,
                    "print what memory was used for, by kind and by module, now and at the peak");
  add_threads_option(*command);
  command->callback([o, choices] {
    if (o->sample < 0) fail<ValueError>("train: --sample is {}; it must not be negative", o->sample);
    if (!o->resume) return start(*o);
    for (const CLI::Option* choice : choices)  // a resumed run is the run that was started
      if (!choice->empty()) throw CLI::ExcludesError("--resume", choice->get_name());
    resume(*o);
  });
}

}  // namespace tapestry::programs
