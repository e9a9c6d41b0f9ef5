// The program `tapestry`: reads the command line, runs one subcommand, and
// turns every error into one line. Exit status: 0 done, 1 an error, 2 a wrong
// command line. Next: train.cpp.
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <new>
#include <stdexcept>
#include <string>

#include "../../autograd/parallel.h"
#include "program.h"

namespace {

constexpr const char* out_of_memory = "out of memory; choose a smaller model, batch or context";

/// What the parser lets pass: a whole number outside 64 bits, which it would
/// replace by the nearest one, and an empty path, which a variable that is not
/// set leaves behind.
void check_values(CLI::App& command) {
  for (CLI::Option* option : command.get_options()) {
    const std::string type = option->get_type_name();
    if (type == "N" || type == "K")
      option->check([](const std::string& text) -> std::string {
        errno = 0;
        std::strtoll(text.c_str(), nullptr, 0);
        return errno == ERANGE ? "the number " + text + " is too large" : "";
      });
    if (type == "FILE" || type == "DIR")
      option->check([](const std::string& text) { return std::string(text.empty() ? "the path is empty" : ""); });
  }
  for (CLI::App* inner : command.get_subcommands([](CLI::App*) { return true; })) check_values(*inner);
}

/// One line on stderr, whatever the message holds.
int complain(std::string message, int status) {
  for (char& c : message)
    if (c == '\n') c = ' ';
  std::fprintf(stderr, "tapestry: %s\n", message.c_str());
  return status;
}

}  // namespace

namespace tapestry::programs {

void add_threads_option(CLI::App& command) {
  command
      .add_option_function<int>(
          "--threads", [](int n) { set_num_threads(n); }, "threads to compute with; results do not depend on it")
      ->type_name("N")
      ->trigger_on_parse();
}

}  // namespace tapestry::programs

int main(int argc, char** argv) {
  CLI::App app(
      "Trains decoder-only Transformers on text, and lets them write; "
      "trains other models, too.",
      "tapestry");
  app.require_subcommand(1);
  app.fallthrough(false);
  try {
    tapestry::programs::add_train(app);
    tapestry::programs::add_generate(app);
    tapestry::programs::add_chat(app);
    tapestry::programs::add_eval(app);
    tapestry::programs::add_check_cache(app);
    tapestry::programs::add_info(app);
    tapestry::programs::add_zoo(app);
    tapestry::programs::add_tokenizer(app);
    tapestry::programs::add_ablate(app);
    tapestry::programs::add_finetune(app);
    tapestry::programs::add_convert(app);
    check_values(app);
    app.parse(argc, argv);
    if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) return complain("cannot write to the standard output", 1);
    return 0;
  } catch (const CLI::ParseError& e) {
    if (e.get_exit_code() == 0) return app.exit(e);  // --help
    return complain(std::string(e.what()) + "; see tapestry --help", 2);
  } catch (const std::bad_alloc&) {
    return complain(out_of_memory, 1);
  } catch (const std::length_error&) {  // more than there could be memory for
    return complain(out_of_memory, 1);
  } catch (const std::exception& e) {
    std::fflush(stdout);
    return complain(e.what(), 1);
  }
}
