// `tapestry generate`: a trained model writes on.
// Next: sample_text.cpp.
#include <memory>

#include "program.h"
#include "sample_text.h"

namespace tapestry::programs {
namespace {

struct Options {
  std::string model, prompt;
  GenerateOptions generate{.max_tokens = 500, .sampler = {.temperature = default_temperature}, .seed = 1};
};

}  // namespace

void add_generate(CLI::App& app) {
  CLI::App* command = app.add_subcommand("generate", "let a trained model write");
  const auto o = std::make_shared<Options>();
  command->add_option("--model", o->model, "folder of a run")->type_name("DIR")->required();
  command->add_option("--prompt", o->prompt, "text to go on from")->type_name("TEXT");
  command->add_option("--max-tokens", o->generate.max_tokens, "tokens to write")->type_name("N")->capture_default_str();
  command
      ->add_option("--temperature", o->generate.sampler.temperature,
                   "logits are divided by it; 0 takes the likeliest token")
      ->type_name("T")
      ->capture_default_str();
  command->add_option("--top-k", o->generate.sampler.top_k, "draw among the K likeliest tokens; 0 among all")
      ->type_name("K")
      ->capture_default_str();
  command
      ->add_option("--top-p", o->generate.sampler.top_p,
                   "draw among the likeliest tokens that together have probability P")
      ->type_name("P")
      ->capture_default_str();
  command->add_option("--seed", o->generate.seed, "same seed, same text")
      ->type_name("N")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  add_threads_option(*command);
  command->callback([o] {
    sample_text(load_text_model(RunFolder(o->model)), o->prompt, o->generate, stdout);
    std::fputc('\n', stdout);
  });
}

}  // namespace tapestry::programs
