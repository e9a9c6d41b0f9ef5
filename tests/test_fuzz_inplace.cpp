// test_fuzz_inplace.cpp: random programs of views, ops and in-place writes against an interpreter that copies everything.
// Next: fuzz/inplace.h.
#include <doctest/doctest.h>

#include "fuzz/inplace.h"
#include "op_table/samples.h"

using namespace tapestry;
using namespace tapestry::fuzz;

TEST_SUITE("fuzz_inplace") {
  TEST_CASE("values, versions, gradients and refusals are those of the reference") {
    const int programs = op_table::small_samples() ? 500 : 5000;
    int refused = 0, thrown = 0, walks = 0;
    for (int i = 0; i < programs; ++i) {
      const InplaceProgram program = generate_inplace(1, static_cast<uint64_t>(i));
      const InplaceResult result = run_inplace(program);
      refused += result.refused;
      thrown += result.thrown;
      walks += result.walks;
      if (result.fault.empty()) continue;
      const InplaceResult small = run_inplace(shrink_inplace(program));
      FAIL("program " << i << ": " << small.fault << "\n" << small.text);
    }
    CHECK(refused > programs / 4);
    CHECK(thrown > programs / 10);
    CHECK(walks > programs / 2);
  }

  TEST_CASE("a write that is not counted is found, and shrunk to what shows it") {
    int found = 0;
    for (uint64_t i = 0; i < 2000 && found < 3; ++i) {
      const InplaceProgram program = generate_inplace(2, i);
      if (run_inplace(program, true).fault.empty()) continue;
      ++found;
      const InplaceProgram small = shrink_inplace(program, true);
      const InplaceResult result = run_inplace(small, true);
      CHECK_MESSAGE(small.size() <= 5, result.text);
      CHECK_MESSAGE(result.fault.find("does not throw") != std::string::npos, result.fault);
      CHECK_MESSAGE(result.text.find(".fill_(") != std::string::npos, result.text);
      CHECK_MESSAGE(run_inplace(small).fault.empty(), result.text);
    }
    CHECK(found == 3);
  }
}
