// How fast this machine multiplies matrices and reads memory, measured once, and the time a Transformer should take on it.
// Not a benchmark of training (bench/bench_accounting.cpp compares the two): right to a factor of about two.
// Next: machine_profile.cpp.
#pragma once

#include <string>
#include <vector>

#include "../../autograd/dtype.h"
#include "config.h"

namespace tapestry {

struct MachineProfile {
  /// How fast something of one size goes.
  struct Rate {
    double size, rate;
  };
  int64_t threads = 1;
  std::vector<Rate> products;  ///< (size, size)·(size, size) in f32: 10⁹ FLOPs a second, for growing sizes
  std::vector<Rate> matvecs;   ///< one row by a weight of size·10⁶ bytes, in cache or not: 10⁹ bytes a second
  double pointwise_gbs = 0;    ///< 10⁹ bytes a second that an addition of large tensors reads and writes
  double op_seconds = 0;       ///< what an op costs that computes nothing, recorded and walked

  /// FLOPs a second of a product of so many FLOPs, and bytes a second of decoding with so many bytes of weights: between
  /// the sizes measured.
  [[nodiscard]] double product_rate(double flops) const;
  [[nodiscard]] double matvec_rate(double bytes) const;
  [[nodiscard]] std::string to_json() const;
  /// FormatError naming the field that is missing or no positive number.
  static MachineProfile from_json(const std::string& text);
};

/// Measures with the threads that are set, in about two seconds.
MachineProfile measure_machine();

struct TimeEstimate {
  double products = 0;  ///< seconds in matrix products
  double memory = 0;    ///< seconds in ops that read and write memory
  double ops = 0;       ///< seconds in between
  [[nodiscard]] double seconds() const { return products + memory + ops; }
};

/// A training step on (rows, length) tokens with AdamW, f32.
TimeEstimate training_time(const MachineProfile& m, const TransformerConfig& c, int64_t rows, int64_t length,
                           bool recompute = false);
/// One token of one sequence, the last of `length`.
TimeEstimate decode_time(const MachineProfile& m, const TransformerConfig& c, int64_t length, DType weights,
                         DType cache);

}  // namespace tapestry
