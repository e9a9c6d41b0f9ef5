// The fuzzer of derivatives by hand: many programs of any seed, failures shrunk and printed as C++.
// tests/test_fuzz_derivatives.cpp runs a few of them in every test run.
#include <fmt/core.h>

#include <CLI/CLI.hpp>

#include "run.h"

using namespace tapestry::fuzz;

int main(int argc, char** argv) {
  uint64_t seed = 1, first = 0;
  int64_t programs = 10000;
  size_t failures = 10;
  bool rows_used = false;
  CLI::App app("Random programs of ops, first and second derivatives against finite differences");
  app.add_option("--programs", programs, "how many")->capture_default_str();
  app.add_option("--seed", seed, "the same seed gives the same programs")->capture_default_str();
  app.add_option("--first", first, "number of the first program")->capture_default_str();
  app.add_option("--failures", failures, "stop after so many")->capture_default_str();
  app.add_flag("--rows", rows_used, "print how often each row of the op table was checked");
  CLI11_PARSE(app, argc, argv);

  const Report report = run_programs(seed, first, programs, failures);
  for (const Failure& failure : report.failures) fmt::print("{}\n", as_text(failure));
  if (rows_used)
    for (const OpRow* row : rows()) {
      const auto it = report.rows.find(row->name);
      fmt::print("{:6} {}\n", it == report.rows.end() ? 0 : it->second, row->name);
    }
  fmt::print(
      "{} programs, {} steps, {} of {} rows; left aside: {} near a kink, {} too large, {} refused; {} disagree\n",
      report.programs, report.steps, report.rows.size(), rows().size(), report.kinks, report.large, report.refused,
      report.failures.size());
  return report.failures.empty() ? 0 : 1;
}
