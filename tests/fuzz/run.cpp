// The loop over seeds, and the counts it reports.
// Next: fuzz_derivatives.cpp.
#include "run.h"

#include "generate.h"
#include "shrink.h"

namespace tapestry::fuzz {

Report run_programs(uint64_t seed, uint64_t first, int64_t count, size_t most) {
  Report report;
  for (uint64_t number = first; number < first + static_cast<uint64_t>(count); ++number) {
    const Program program = generate(seed, number);
    const Finding finding = check(program);
    ++report.programs;
    report.steps += static_cast<int64_t>(program.steps.size());
    report.kinks += finding.verdict == Verdict::kink ? 1 : 0;
    report.large += finding.verdict == Verdict::large ? 1 : 0;
    report.refused += finding.verdict == Verdict::refused ? 1 : 0;
    if (finding.verdict == Verdict::right)
      for (const Step& step : program.steps)
        if (step.row != nullptr) ++report.rows[step.row->name];
    if (!is_wrong(finding.verdict)) continue;
    const Program small = shrink(program);
    report.failures.push_back({number, check(small), small, program.steps.size()});
    if (report.failures.size() >= most) break;
  }
  return report;
}

std::string as_text(const Failure& failure) {
  return fmt::format("program {}, {} of {} steps left: {}\n\n{}", failure.number, failure.program.steps.size(),
                     failure.steps, failure.finding.message,
                     as_cpp(failure.program, failure.finding.verdict == Verdict::wrong_second));
}

}  // namespace tapestry::fuzz
