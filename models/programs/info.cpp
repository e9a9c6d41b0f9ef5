// `tapestry info`: what a run's model is made of, and the presets.
// Next: ../../nn/summary.h.
#include <fmt/core.h>

#include <memory>

#include "../../nn/summary.h"
#include "../training/presets.h"
#include "../training/text_model.h"
#include "program.h"

namespace tapestry::programs {

void add_info(CLI::App& app) {
  CLI::App* command = app.add_subcommand("info", "print a model's parameters, or the configuration of a preset");
  const auto model = std::make_shared<std::string>(), name = std::make_shared<std::string>();
  CLI::Option_group* one = command->add_option_group("what");
  one->add_option("--model", *model, "folder of a model")->type_name("DIR");
  one->add_option("--preset", *name, "its configuration, a --config file to start from")->type_name("NAME");
  one->require_option(1);
  command->callback([model, name] {
    fmt::print("{}", name->empty() ? summary(*load_text_model(*model, {.need_tokenizer = false}).model)
                                   : preset(*name).to_json());
  });
}

}  // namespace tapestry::programs
