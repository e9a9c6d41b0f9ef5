// The program `tapestry`: reads the command line, runs one subcommand, and turns every error into one line.
// Exit status: 0 done, 1 an error, 2 a wrong command line.
// Next: train.cpp.
#include <cstdio>
#include <exception>
#include <new>
#include <string>

#include "../../autograd/parallel.h"
#include "program.h"

namespace {

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
  CLI::App app("Trains decoder-only Transformers on text, and lets them write.", "tapestry");
  app.require_subcommand(1);
  app.fallthrough(false);
  try {
    tapestry::programs::add_train(app);
    tapestry::programs::add_generate(app);
    tapestry::programs::add_info(app);
    app.parse(argc, argv);
    if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) return complain("cannot write to the standard output", 1);
    return 0;
  } catch (const CLI::ParseError& e) {
    if (e.get_exit_code() == 0) return app.exit(e);  // --help
    return complain(std::string(e.what()) + "; see tapestry --help", 2);
  } catch (const std::bad_alloc&) {
    return complain("out of memory; choose a smaller model, batch or context", 1);
  } catch (const std::exception& e) {
    std::fflush(stdout);
    return complain(e.what(), 1);
  }
}
