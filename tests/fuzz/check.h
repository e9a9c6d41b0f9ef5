// The derivatives of a program along random directions against finite differences that prove their own accuracy.
// Not gradcheck, which compares every entry and names the mistake: this one is a hundred times faster and leaves aside points near a kink.
// Next: shrink.h.
#pragma once

#include "program.h"

namespace tapestry::fuzz {

enum class Verdict : uint8_t {
  right,
  kink,         ///< a difference does not settle as the step shrinks: the point is near a kink or a jump
  large,        ///< a derivative is so large, or made of rounding errors so much, that differences say nothing
  refused,      ///< a rule says that it is not defined here: a ValueError, a singular matrix, repeated eigenvalues
  wrong_first,  ///< the first derivative disagrees, or a walk throws
  wrong_second  ///< the same for the second, or the recorded first differs from the plain one
};
constexpr bool is_wrong(Verdict v) { return v == Verdict::wrong_first || v == Verdict::wrong_second; }

struct Finding {
  Verdict verdict = Verdict::right;
  std::string message = {};  ///< one line where wrong
};

/// What the program's ops throw without recording passes. Compares d/dt of v·f(x + t·u), and of w·(∇ v·f) at x + t·u and v + t·q, for fixed random u, v, w, q.
Finding check(const Program& program);

}  // namespace tapestry::fuzz
