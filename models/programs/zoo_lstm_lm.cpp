// `tapestry zoo train lstm_lm`: a character-level LSTM on any text, beside what
// counting achieves. Next: ../lstm_lm.h.
#include <fmt/core.h>

#include <cmath>
#include <cstdio>
#include <filesystem>
#include <memory>

#include "../../autograd/error.h"
#include "../../autograd/parallel.h"
#include "../../autograd/random.h"
#include "../../nn/safetensors.h"
#include "../../nn/state_dict.h"
#include "../../nn/visitor.h"
#include "../lstm_lm.h"
#include "../text/baseline.h"
#include "../training/progress.h"
#include "../training/trainer.h"
#include "sample_text.h"
#include "stop_signal.h"
#include "zoo_train.h"

namespace tapestry::programs {
namespace {

namespace fs = std::filesystem;

struct LstmOptions {
  std::string data, out;
  LstmLmConfig model;
  int64_t steps = 1500, batch = 64, context = 128, seed = 1, sample = 300;
  double lr = 4e-3;
};

TrainConfig config_of(const LstmOptions& o) {
  TrainConfig c;
  c.tokenizer = "char";
  c.steps = o.steps;
  c.batch = o.batch;
  c.context = c.model.max_seq_len = o.context;
  c.model.vocab_size = 0;  // the tokenizer's
  c.seed = o.seed;
  c.lr = o.lr;
  c.lr_min = o.lr / 20;
  c.warmup = std::min<int64_t>(50, o.steps / 10);
  c.eval_interval = std::max<int64_t>(1, o.steps / 5);
  c.validate();
  return c;
}

void print_held_out(const Trainer& trainer, const TokenLoss& held_out) {
  const TrainingText& text = trainer.text();
  const int64_t v = text.tokenizer().vocab_size();
  fmt::print("\nloss over the whole held-out part ({} tokens), in nats a token:\n", held_out.tokens);
  fmt::print("  this LSTM  {:8.4f}\n", held_out.mean());
  fmt::print("  bigram     {:8.4f}   counted pairs of tokens\n",
             bigram_loss(text.corpus().train(), text.corpus().held_out(), v));
  fmt::print("  ln V       {:8.4f}   {} tokens, all equally likely\n", std::log(static_cast<double>(v)), v);
}

void print_sample(const LstmLm& model, const Tokenizer& tokenizer, int64_t tokens) {
  fmt::print("\n{} tokens it writes at temperature {}:\n\n", tokens, default_temperature);
  DecodeStream stream(tokenizer);
  const auto put = [](const std::string& text) { std::fwrite(text.data(), 1, text.size(), stdout); };
  generate(model, start_tokens(tokenizer),
           {.max_tokens = tokens, .sampler = {.temperature = default_temperature}, .seed = 1},
           [&](int32_t id) { put(stream.push(id)); });
  put(stream.flush() + "\n");
}

void train(LstmOptions o) {
  if (o.sample < 0) fail<ValueError>("zoo: --sample is {}; it must not be negative", o.sample);
  const TrainConfig config = config_of(o);
  if (!o.out.empty()) fs::create_directories(o.out);
  const TrainingText text = TrainingText::read(o.data, config.tokenizer, config.held_out);
  o.model.vocab_size = text.tokenizer().vocab_size();
  manual_seed(static_cast<uint64_t>(o.seed));
  const auto model = std::make_shared<LstmLm>(o.model);
  Trainer trainer(config, text, language_model(model), Schedule{});
  const StopSignal stop;
  fmt::print(
      "LSTM: {} parameters, {} layers of {}, context {}; {} training "
      "and {} held-out tokens; {} steps of {} "
      "windows, {} thread{}\n",
      count_parameters(*model), o.model.n_layers, o.model.hidden_size, o.context, text.corpus().train().size(),
      text.corpus().held_out().size(), o.steps, o.batch, num_threads(), num_threads() == 1 ? "" : "s");
  std::fflush(stdout);
  Progress progress(o.steps);
  const std::string file = o.out.empty() ? "" : (fs::path(o.out) / "model.safetensors").string();
  const auto save = [&] {
    if (!file.empty()) write_safetensors(file, state_dict(*model));
  };
  while (trainer.state().step < o.steps && !StopSignal::asked()) {
    progress.on_step(trainer.step());
    if (trainer.state().step % config.eval_interval != 0) continue;
    progress.clear();
    fmt::print("step {:>5}  held-out {:.4f} (some windows)\n", trainer.state().step, trainer.evaluate(false).mean());
    std::fflush(stdout);
    save();  // what comes next may fail
  }
  progress.clear();
  save();
  if (!file.empty()) fmt::print("{} is written after step {}\n", file, trainer.state().step);
  print_held_out(trainer, trainer.evaluate(true));
  model->eval();
  if (o.sample > 0) print_sample(*model, text.tokenizer(), o.sample);
}

}  // namespace

void add_train_lstm_lm(CLI::App& train_command) {
  CLI::App* command = train_command.add_subcommand("lstm_lm", "a character-level LSTM on a text");
  const auto o = std::make_shared<LstmOptions>();
  command->add_option("--data", o->data, "text to train on; without it, this library's own sources")->type_name("FILE");
  command->add_option("--out", o->out, "folder for model.safetensors")->type_name("DIR");
  const auto number = [&](const char* name, auto& value, const char* what) {
    command->add_option(name, value, what)->type_name("N")->capture_default_str();
  };
  number("--steps", o->steps, "updates");
  number("--batch", o->batch, "windows a step");
  number("--context", o->context, "tokens of a window, each of which starts from a zero state");
  number("--layers", o->model.n_layers, "LSTM layers");
  number("--hidden", o->model.hidden_size, "width of each");
  number("--seed", o->seed, "of weights and batches");
  number("--sample", o->sample, "tokens to write at the end; 0 for none");
  command->add_option("--lr", o->lr, "largest learning rate")->type_name("X")->capture_default_str();
  command->add_option("--dropout", o->model.dropout, "on the outputs of the layers")
      ->type_name("X")
      ->capture_default_str();
  add_threads_option(*command);
  command->callback([o] { train(*o); });
}

}  // namespace tapestry::programs
