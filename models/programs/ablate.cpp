// `tapestry ablate`: what each structural choice of the Transformer is worth on a text.
// Next: ../training/ablation.h.
#include <fmt/core.h>

#include <chrono>
#include <memory>

#include "../../nn/atomic_file.h"
#include "../training/ablation.h"
#include "program.h"

namespace tapestry::programs {
namespace {

struct AblateOptions {
  std::string data, out;
  int64_t seeds = 3, steps = 0;
  double minutes = 40;
};

void ablate(const AblateOptions& o) {
  const auto began = std::chrono::steady_clock::now();
  const auto results = run_ablation(o.data, o.seeds, 60 * o.minutes, o.steps, [](const std::string& line) {
    fmt::print("{}\n", line);
    std::fflush(stdout);
  });
  const std::chrono::duration<double, std::ratio<60>> took = std::chrono::steady_clock::now() - began;
  const std::string table =
      ablation_table(ablation_rows(), results) + fmt::format("It took {:.0f} minutes.\n", took.count());
  fmt::print("\n{}", table);
  if (!o.out.empty()) write_file_atomically(o.out, table);
}

}  // namespace

void add_ablate(CLI::App& app) {
  CLI::App* command = app.add_subcommand(
      "ablate", "train the nano preset and its alternatives, choice by choice, and print what each is worth");
  const auto o = std::make_shared<AblateOptions>();
  command->add_option("--data", o->data, "text to train on; without it, this library's own sources")->type_name("FILE");
  command->add_option("--out", o->out, "file for the table, in Markdown")->type_name("FILE");
  command->add_option("--seeds", o->seeds, "rounds at most, each with its own seed")
      ->type_name("N")
      ->capture_default_str();
  command->add_option("--minutes", o->minutes, "no round begins that would not end within them; the first always does")
      ->type_name("X")
      ->capture_default_str();
  command->add_option("--steps", o->steps, "updates a run; 0: the preset's")->type_name("N")->capture_default_str();
  add_threads_option(*command);
  command->callback([o] { ablate(*o); });
}

}  // namespace tapestry::programs
