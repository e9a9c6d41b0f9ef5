// Random programs of views, ops and in-place writes, run by the library and by the slow reference side by side, compared after every step.
// Next: inplace_reference.h.
#pragma once

#include <string>
#include <vector>

namespace tapestry::fuzz {

/// One step. a and b choose operands among the tensors there are, c the step's numbers; so any list of steps is a program, and parts of one, too.
struct InplaceStep {
  enum class Kind : uint8_t {
    leaf,
    slice,
    select,
    transpose,
    reshape,
    expand,
    as_strided,
    detach,
    clone,
    add,
    mul,
    sin,
    tanh,
    relu,
    sum,
    fill,
    copy,
    write_one,
    backward
  };
  static constexpr int kinds = 19;
  Kind kind = Kind::leaf;
  uint32_t a = 0, b = 0, c = 0;
  bool recording = true;
};
using InplaceProgram = std::vector<InplaceStep>;

/// Program `number` of `seed`: a leaf and 5 to 30 steps.
InplaceProgram generate_inplace(uint64_t seed, uint64_t number);

struct InplaceResult {
  std::string fault = {};  ///< empty where both agree
  std::string text = {};   ///< the program as lines of C++, up to the fault
  int refused = 0;         ///< steps that both refused: writes to recorded tensors and ops on overwritten results
  int thrown = 0;          ///< walks that both refused because a saved value was overwritten
  int walks = 0;           ///< walks whose gradients agreed
};

/// Runs the program both ways. With `forget_versions` fill_ writes behind the library's back, as a missing count of writes would: for testing the test.
InplaceResult run_inplace(const InplaceProgram& program, bool forget_versions = false);

/// The fewest steps that still disagree.
InplaceProgram shrink_inplace(InplaceProgram program, bool forget_versions = false);

}  // namespace tapestry::fuzz
