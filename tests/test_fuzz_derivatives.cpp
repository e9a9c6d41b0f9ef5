// test_fuzz_derivatives.cpp: a few random programs of ops in every test run, and the fuzzer itself against an op that is wrong on purpose.
// Many programs: fuzz_derivatives --programs 10000 --seed 7. Next: fuzz/program.h.
#include <doctest/doctest.h>

#include <algorithm>
#include <fstream>

#include "../autograd/function.h"
#include "fuzz/generate.h"
#include "fuzz/run.h"
#include "fuzz/shrink.h"
#include "fuzz_example.inc"  // what the fuzzer printed for the program of the last case
#include "op_table/samples.h"

using namespace tapestry::fuzz;

namespace {

/// x² whose derivative lacks its factor.
struct WrongSquare {
  static constexpr std::string_view name = "wrong_square";
  Tensor forward(Context& c, const Tensor& x) const {
    c.save(x);
    return x * x;
  }
  Grads backward(Context& c, const Tensor& g) const { return {g * c.saved(0)}; }
};
constexpr OpRow wrong_square = [] {
  OpRow row;
  row.name = "wrong_square";
  row.fn = [](op_table::Args a) { return apply(WrongSquare{}, a[0]); };
  row.samples[0] = {{op_table::real(3, 4)}};
  return row;
}();

/// Adds a row for its lifetime.
struct ExtraRow {
  explicit ExtraRow(const OpRow& row) { rows().push_back(&row); }
  ~ExtraRow() { rows().pop_back(); }
  ExtraRow(const ExtraRow&) = delete;
  ExtraRow& operator=(const ExtraRow&) = delete;
};

const OpRow* named(std::string_view name) {
  for (const OpRow* row : rows())
    if (name == row->name) return row;
  return nullptr;
}

}  // namespace

TEST_SUITE("fuzz_derivatives") {
  TEST_CASE("first and second derivatives of random programs agree with finite differences") {
    const auto all = static_cast<int64_t>(rows().size());
    const Report report = run_programs(1, 0, op_table::small_samples() ? all / 4 : 5 * all);
    for (const Failure& failure : report.failures) FAIL_CHECK(as_text(failure));
    CHECK(report.steps > 3 * report.programs);
    CHECK(10 * (report.kinks + report.large + report.refused) < report.programs);
    CHECK(8 * static_cast<int64_t>(report.rows.size()) > 7 * std::min(all, report.programs));
  }

  TEST_CASE("the same seed gives the same program, another one another") {
    CHECK(as_cpp(generate(3, 5), true) == as_cpp(generate(3, 5), true));
    CHECK(as_cpp(generate(3, 5), true) != as_cpp(generate(4, 5), true));
  }

  TEST_CASE("a wrong op is found in whatever it is put, and shrunk to itself") {
    const ExtraRow extra(wrong_square);
    const uint64_t n = rows().size();
    int found = 0;
    for (uint64_t k = 1; k <= 10; ++k) {
      const Program program = generate(2, k * n - 1);  // begins with the last row
      if (!is_wrong(check(program).verdict)) continue;
      ++found;
      const Program small = shrink(program);
      CHECK(is_wrong(check(small).verdict));
      CHECK(small.steps.size() <= 2);
    }
    CHECK(found >= 5);  // in the others what follows multiplies it by zero, or no output needs it
  }

  TEST_CASE("the printed program compiles and fails") {
    const ExtraRow extra(wrong_square);
    Program program;
    program.leaves = {from(std::vector<double>{0.312, -0.71, 1.137, 0.914}, {2, 2}).requires_grad_(),
                      from(std::vector<double>{0.55, 1.25}, {2}).requires_grad_()};
    program.steps = {{.row = named("tanh"), .inputs = {{-1, 0}}},
                     {.row = named("mul"), .inputs = {{0, 0}, {-1, 1}}},
                     {.row = named("wrong_square"), .nested = 1, .inputs = {{1, 0}}},
                     {.kind = Step::Kind::fit, .shape = {3, 2}, .inputs = {{2, 0}, {-1, 1}}},
                     {.row = named("softmax"), .p = {1, 0, 0, 0}, .inputs = {{3, 0}}},
                     {.row = named("sin"), .inputs = {{0, 0}}}};
    program.outputs = {{4, 0}, {5, 0}};
    CHECK(check(program).verdict == Verdict::wrong_first);
    const Program small = shrink(program);
    const std::string text = as_cpp(small, false);
    std::ifstream file(std::string(TAPESTRY_SOURCE_DIR) + "/tests/fuzz_example.inc", std::ios::binary);
    const std::string example{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
    CHECK_MESSAGE(text == example, text);
    const GradcheckResult r = reproduce();
    CHECK_MESSAGE(r.message.find("analytic = 0.5 * numeric everywhere: a factor is missing") != std::string::npos,
                  r.message);
  }
}
