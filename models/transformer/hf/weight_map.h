// Which rows of which stored weight are which rows of which parameter.
// Not here: the files (weight_files.h), nor what modules are called (family.h).
// Next: folder.h.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "../lm.h"
#include "family.h"

namespace tapestry::hf {

/// The parameters of a model and the weights a file of the family has for it. They differ in names, in what is fused or
/// stored (in, out), and in the rotary layout of the rows that turn; a tied head is in neither. Both directions are made of
/// differentiable ops. Parameters of adapters are passed over.
class WeightMap {
 public:
  /// FormatError for a parameter the family has no name for.
  WeightMap(const Family& family, const Transformer& model);

  using Lookup = std::function<Tensor(const std::string& name)>;
  [[nodiscard]] const std::vector<std::string>& parameters() const { return parameters_; }
  [[nodiscard]] const std::map<std::string, Shape>& stored() const { return stored_; }
  /// The value of a parameter, from the stored weights.
  [[nodiscard]] Tensor parameter(const std::string& name, const Lookup& stored) const;
  /// The value of a stored weight, from the parameters.
  [[nodiscard]] Tensor stored(const std::string& name, const Lookup& parameter) const;
  /// Stored weights that a parameter is made of.
  [[nodiscard]] std::vector<std::string> sources(const std::string& parameter) const;
  /// The stored weight that is this parameter and nothing else; empty if there is none.
  [[nodiscard]] std::string only_source(const std::string& parameter) const;
  /// Rows in the order of this parameter's (out, …), turned from its layout to the stored one, or back.
  [[nodiscard]] Tensor turned(const std::string& parameter, const Tensor& rows, bool to_stored) const;

 private:
  struct Part {
    std::string ours, theirs;
    int64_t our_row = 0, their_row = 0, rows = 0;
    bool transposed = false, turns = false;  // turns: and the layouts differ
  };
  void add(const std::string& parameter, const Shape& shape, const std::string& module, const std::string& leaf,
           int64_t our_row, int64_t rows);

  const Family& family_;
  TransformerConfig config_;
  std::vector<Part> parts_;
  std::vector<std::string> parameters_;
  std::map<std::string, Shape> stored_;
  std::map<std::string, std::vector<size_t>> of_parameter_, of_stored_;  // places in parts_
};

}  // namespace tapestry::hf
