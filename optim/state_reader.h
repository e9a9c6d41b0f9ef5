// Saved optimizer state as tensors, and reading it back strictly: every complaint is collected and thrown at once.
// Not a file format. Next: optimizer.h.
#pragma once

#include <map>
#include <set>
#include <string>
#include <type_traits>
#include <vector>

#include "../autograd/tensor.h"
#include "update.h"

namespace tapestry::detail {

/// An option as an f64 scalar: a number, a flag, or an enumerator of two (0 or 1).
Tensor saved_double(double value);
template <class T>
Tensor saved_number(T value) {
  return saved_double(static_cast<double>(value));
}
/// A count as an i64 scalar.
Tensor saved_count(int64_t value);

class StateReader {
 public:
  explicit StateReader(const std::map<std::string, Tensor>& dict) : dict_(dict) {}

  template <class T>
  void number(const std::string& key, T& value) {
    double x = 0;
    if (!read_double(key, !std::is_same_v<T, double>, x)) return;
    value = static_cast<T>(x);
  }
  void count(const std::string& key, int64_t& value);
  /// A copy of the entry, which must have the shape and state dtype of `param`; `value` stays as it is if an entry that is not required is missing.
  void tensor(const std::string& key, const Tensor& param, bool required, Tensor& value);
  /// FormatError if anything was missing, unexpected or did not fit.
  void finish() const;

 private:
  const Tensor* find(const std::string& key, bool required);
  bool read_double(const std::string& key, bool is_flag, double& value);

  const std::map<std::string, Tensor>& dict_;
  std::set<std::string> used_;
  std::vector<std::string> missing_, misfits_;
};

}  // namespace tapestry::detail
