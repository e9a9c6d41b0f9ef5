// A slow interpreter of views, ops, in-place writes and gradients that copies everything: storage is an array, a view a list of places in it, and a
// recorded op keeps copies of the numbers its derivative needs. Written from the definitions; shares no code with the library.
// Next: inplace.h.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <stdexcept>
#include <vector>

#include "../../autograd/shape.h"

namespace tapestry::fuzz::slow {

using Flat = std::vector<double>;

/// A write to a recorded tensor while recording is on.
struct WriteRefused : std::runtime_error {
  using std::runtime_error::runtime_error;
};
/// An op on a result that was overwritten after it was recorded.
struct StaleInput : std::runtime_error {
  using std::runtime_error::runtime_error;
};
/// A walk that needs a value that was overwritten after it was saved.
struct Overwritten : std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct Cells {
  Flat values;
  uint32_t version = 0;  ///< writes so far
};

/// A leaf, or a recorded op.
struct History {
  struct Input {
    std::shared_ptr<History> from;
    std::function<Flat(const Flat& g)> vjp;
  };
  uint64_t number = 0;
  size_t count = 0;  ///< elements of the result
  bool leaf = false;
  std::vector<Input> inputs = {};
  std::vector<std::pair<std::shared_ptr<Cells>, uint32_t>> saved = {};  ///< storage and version of what the op keeps
};

struct Array {
  std::shared_ptr<Cells> cells;
  Shape shape;
  std::vector<size_t> places;  ///< of each element, row-major
  std::shared_ptr<History> history = nullptr;
  uint32_t recorded = 0;  ///< version when `history` was set

  [[nodiscard]] Flat values() const;
  [[nodiscard]] bool overlaps_itself() const;
};

enum class Saves : uint8_t { nothing, inputs, result };

class Machine {
 public:
  bool recording = true;

  Array leaf(Flat values, const Shape& shape, bool requires_grad);
  /// f and its derivative df(x, y).
  Array map(const Array& x, double (*f)(double), double (*df)(double, double), Saves saves);
  /// f(a, b) of one shape with both derivatives.
  Array zip(const Array& a, const Array& b, double (*f)(double, double), double (*da)(double, double),
            double (*db)(double, double), Saves saves);
  Array total(const Array& x);
  /// Element i of the result is element source[i] of x: the same storage, or a copy.
  Array view(const Array& x, const Shape& shape, const std::vector<size_t>& source, bool copied = false);
  static Array detached(const Array& x, bool requires_grad, Machine& machine);

  /// Writes values[i] to element i, in order.
  void write(const Array& to, const Flat& values);
  /// d(sum of y)/d(leaf) for every leaf that y depends on.
  static std::map<const History*, Flat> gradients(const Array& y);

 private:
  Array fresh(Flat values, const Shape& shape);
  void record(Array& y, std::vector<History::Input> inputs, const std::vector<const Array*>& read);
  uint64_t next_ = 1;
};

}  // namespace tapestry::fuzz::slow
