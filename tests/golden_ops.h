// What the cases of the golden fixtures compute: one row an op, in the golden_*_ops.cpp of its family.
// Not here: the values (golden_fixture.h). A fixture whose op has no row must be listed as skipped by its test.
// Next: golden_check.h.
#pragma once

#include <map>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "../nn/module.h"
#include "../ops/ops.h"

namespace tapestry::golden {

/// Arguments and attributes of a case, the floating ones in the dtype of the run and requiring a gradient.
class Args {
 public:
  Args(DType run_dtype, std::shared_ptr<const nlohmann::json> attrs, std::map<std::string, Tensor> tensors)
      : dtype(run_dtype), attrs_(std::move(attrs)), tensors_(std::move(tensors)) {}

  DType dtype;
  [[nodiscard]] bool has(const std::string& name) const { return tensors_.contains(name); }
  /// By bare name ("x"); std::out_of_range if there is none.
  const Tensor& operator[](const std::string& name) const;
  /// Undefined if there is none.
  [[nodiscard]] Tensor find(const std::string& name) const { return has(name) ? tensors_.at(name) : Tensor{}; }
  [[nodiscard]] const std::map<std::string, Tensor>& tensors() const { return tensors_; }

  [[nodiscard]] bool given(const char* attr) const;  ///< there and not null
  [[nodiscard]] double number(const char* attr, double otherwise) const;
  [[nodiscard]] int64_t integer(const char* attr, int64_t otherwise) const;
  [[nodiscard]] bool flag(const char* attr) const;
  [[nodiscard]] std::string text(const char* attr, const std::string& otherwise) const;
  [[nodiscard]] std::vector<double> numbers(const char* attr) const;
  /// A number or a list of them; null is none.
  [[nodiscard]] Dims dims(const char* attr) const;

 private:
  std::shared_ptr<const nlohmann::json> attrs_;
  std::map<std::string, Tensor> tensors_;
};

using Outputs = std::map<std::string, Tensor>;

/// `key` is the case's op, with its expression if it has one ("view: x.t()"), after its fixture where that matters
/// ("ops/nan:where").
struct Op {
  constexpr Op(std::string_view k, Tensor (*f)(const Args&)) : key(k), one(f) {}
  constexpr Op(std::string_view k, Outputs (*f)(const Args&)) : key(k), several(f) {}
  std::string_view key;
  Tensor (*one)(const Args&) = nullptr;  ///< the output "y"
  Outputs (*several)(const Args&) = nullptr;
  [[nodiscard]] Outputs operator()(const Args& a) const { return one ? Outputs{{"y", one(a)}} : several(a); }
};

std::span<const Op> pointwise_ops();
std::span<const Op> shape_ops();
std::span<const Op> layer_ops();
std::span<const Op> attention_ops();
std::span<const Op> block_ops();
std::span<const Op> recurrent_ops();
std::span<const Op> model_ops();
std::span<const Op> optimizer_ops();

/// The weights and biases of multi-head attention, from one matrix of q, k and v rows or from four.
std::map<std::string, Tensor> attention_projections(const Args& a);
/// Makes every parameter of m the tensor of its path in `values`, whose history it keeps: gradients flow into what the
/// value was made from. FormatError unless the names are the same.
void set_parameters(Module& m, std::map<std::string, Tensor> values);
/// m with these parameters.
template <class M>
M bound(M m, std::map<std::string, Tensor> values) {
  set_parameters(m, std::move(values));
  return m;
}

}  // namespace tapestry::golden
