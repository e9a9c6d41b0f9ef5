// Makes up programs: any row of the op table on values it has, of free shapes where the row takes them, else fitted to one of its samples.
// The same seed and table give the same program. Next: check.h.
#pragma once

#include "../../autograd/random.h"
#include "program.h"

namespace tapestry::fuzz {

/// Program `number` of `seed`: one to three real leaves, two to nine steps (and the fitting between them), a few outputs. Row number % rows().size() is
/// tried first, so that as many programs as there are rows use them all.
Program generate(uint64_t seed, uint64_t number);

/// Random numbers of one program.
class Dice {
 public:
  Dice(uint64_t seed, uint64_t stream) : ticket_{seed, stream} {}
  double uniform() {
    const auto b = ticket_.block(at_++);
    return uniform_f64(b[0], b[1]);
  }
  /// In [0, n).
  int64_t below(int64_t n) { return static_cast<int64_t>(uniform() * static_cast<double>(n)); }
  bool chance(double p) { return uniform() < p; }
  template <class T>
  const T& pick(const std::vector<T>& list) {
    return list[static_cast<size_t>(below(static_cast<int64_t>(list.size())))];
  }

 private:
  Ticket ticket_;
  uint64_t at_ = 0;
};

}  // namespace tapestry::fuzz
