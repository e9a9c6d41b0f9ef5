// The subcommands of `tapestry`, one file each, and what they share.
// Next: main.cpp.
#pragma once

#include <CLI/CLI.hpp>

namespace tapestry::programs {

/// Each adds its subcommand to the command line; what the command does runs
/// when the line has been parsed. Errors are thrown.
void add_train(CLI::App& app);
void add_generate(CLI::App& app);
void add_chat(CLI::App& app);
void add_eval(CLI::App& app);
void add_check_cache(CLI::App& app);
void add_info(CLI::App& app);
void add_zoo(CLI::App& app);
void add_tokenizer(CLI::App& app);
void add_ablate(CLI::App& app);
void add_finetune(CLI::App& app);
void add_convert(CLI::App& app);

/// `--threads`, applied as soon as it is read.
void add_threads_option(CLI::App& command);

}  // namespace tapestry::programs
