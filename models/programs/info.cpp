// `tapestry info`: what a Transformer costs before it runs, and of what modules it is made.
// Next: ../transformer/accounting_report.h.
#include <fmt/core.h>

#include <algorithm>
#include <memory>
#include <optional>

#include "../../autograd/error.h"
#include "../../nn/atomic_file.h"
#include "../../nn/mapped_file.h"
#include "../../nn/summary.h"
#include "../training/presets.h"
#include "../training/run_folder.h"
#include "../transformer/accounting_report.h"
#include "../transformer/hf/folder.h"
#include "program.h"

namespace tapestry::programs {
namespace {

struct InfoOptions {
  std::string model, preset, config, dtype = "f32", machine, measure;
  int64_t batch = 0, context = 0, vocab = 0;
  bool json = false, modules = false, print_config = false;
};

std::string text_of(const std::string& path) { return std::string(MappedFile(path).bytes()); }

/// A published model's configuration has no training, so the batch is one sequence.
TrainConfig chosen_config(const InfoOptions& o) {
  if (!o.preset.empty()) return preset(o.preset);
  if (!o.config.empty()) return TrainConfig::from_json(text_of(o.config));
  const RunFolder folder(o.model);
  if (!hf::is_model_folder(o.model)) return TrainConfig::from_json(text_of(folder.config()));
  TrainConfig c;
  c.model = hf::read_config(folder.config(), text_of(folder.config())).config;
  c.context = c.model.max_seq_len;
  c.batch = 1;
  return c;
}

DType dtype_named(const std::string& name) {
  for (const DType dtype : {DType::f32, DType::bf16, DType::f64})
    if (name == name_of(dtype)) return dtype;
  fail<ValueError>("info: --dtype is '{}'; there are f32, bf16 and f64", name);
}

void print_info(const InfoOptions& o) {
  std::optional<MachineProfile> machine;
  if (!o.measure.empty()) {
    machine = measure_machine();
    write_file_atomically(o.measure, machine->to_json());
  } else if (!o.machine.empty()) {
    machine = MachineProfile::from_json(text_of(o.machine));
  }
  if (o.model.empty() && o.preset.empty() && o.config.empty()) {
    fmt::print("{}", machine->to_json());
    return;
  }
  TrainConfig c = chosen_config(o);
  if (o.print_config) {
    fmt::print("{}", c.to_json());
    return;
  }
  if (o.vocab != 0) c.model.vocab_size = o.vocab;
  if (c.model.vocab_size == 0) c.model.vocab_size = 256;  // the tokenizer's, which is not known: that of bytes
  if (o.context != 0) c.context = o.context, c.model.max_seq_len = std::max(c.model.max_seq_len, o.context);
  if (o.modules) {
    fmt::print("{}", summary(Transformer(c.model)));
    return;
  }
  const int64_t in_config = c.micro_batch > 0 ? std::min(c.micro_batch, c.batch) : c.batch;
  AccountingOptions a{.rows = o.batch != 0 ? o.batch : in_config,
                      .length = c.context,
                      .decoded_rows = o.batch != 0 ? o.batch : 1,
                      .accumulate = o.batch == 0 && in_config < c.batch,
                      .machine = std::move(machine)};
  a.weights = a.cache = dtype_named(o.dtype);
  const auto report = accounting_report(c.model, a);
  fmt::print("{}", o.json ? to_json(report) : to_text(report));
}

}  // namespace

void add_info(CLI::App& app) {
  CLI::App* command = app.add_subcommand(
      "info", "print what a model costs before it runs: parameters, FLOPs, memory, and time on a measured machine");
  const auto o = std::make_shared<InfoOptions>();
  CLI::Option_group* one = command->add_option_group("what");
  one->add_option("--model", o->model, "folder of a run, or of a published model; only its config.json is read")
      ->type_name("DIR");
  one->add_option("--preset", o->preset, "a configuration that comes with the program")->type_name("NAME");
  one->add_option("--config", o->config, "configuration as JSON, as train takes it")->type_name("FILE");
  command
      ->add_option(
          "--batch", o->batch,
          "sequences of a step, and that are decoded side by side; without it, those of the configuration, and one")
      ->type_name("N");
  command->add_option("--context", o->context, "tokens of a sequence; without it, those of the configuration")
      ->type_name("N");
  command->add_option("--vocab", o->vocab, "tokens of the vocabulary, where the configuration leaves them to the text")
      ->type_name("N");
  command->add_option("--dtype", o->dtype, "of weights and cache when decoding: f32, bf16 or f64")
      ->type_name("NAME")
      ->capture_default_str();
  CLI::Option* machine =
      command->add_option("--machine", o->machine, "profile of the machine, for times")->type_name("FILE");
  CLI::Option* measure =
      command->add_option("--measure", o->measure, "measure this machine, in a few seconds, and write its profile here")
          ->type_name("FILE")
          ->excludes(machine);
  command->add_flag("--json", o->json, "print it as JSON");
  command->add_flag("--modules", o->modules, "print the tree of modules and their parameters instead");
  command->add_flag("--print-config", o->print_config,
                    "print the configuration instead, a --config file to start from");
  add_threads_option(*command);
  command->callback([o, one, measure] {
    if (one->count_all() == 0 && measure->empty())
      throw CLI::RequiredError("one of --model, --preset and --config (or --measure)");
    print_info(*o);
  });
  one->require_option(0, 1);
}

}  // namespace tapestry::programs
