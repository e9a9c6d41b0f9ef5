// One run of gradcheck: what it knows and the checks it makes. Not public API.
// The checks of purity and linearity are in gradcheck.cpp, the comparisons with differences in gradcheck_compare.cpp.
#pragma once

#include <utility>

#include "gradcheck_hint.h"

namespace tapestry::detail {

/// What a check gives up with; caught where the result is made.
struct Fault {
  GradcheckResult result;
};

double dot(const Flat& a, const Flat& b);

class Check {
 public:
  Check(const char* name, const TensorFunction& f, const std::vector<Tensor>& inputs, const GradcheckOptions& options);
  void run();

 private:
  template <class... Args>
  [[noreturn]] void give_up(fmt::format_string<Args...> format, Args&&... args) const {
    throw Fault{.result = {.ok = false,
                           .message = std::string(name_) + ": " + fmt::format(format, std::forward<Args>(args)...)}};
  }

  Flat random_flat(int64_t n);
  [[nodiscard]] std::string input_name(int i) const;
  [[nodiscard]] std::string output_name(size_t o) const;
  std::vector<Flat> analytic(const Flat& upstream, const Evaluation* at = nullptr, bool scattered = false);
  std::vector<Flat> analytic_of(const Flat& upstream, const Evaluation& at, const std::vector<int>& wanted,
                                bool scattered);
  template <class Text>
  void require_close(const std::vector<Flat>& found, const std::vector<Flat>& right, Text&& text);

  void check_pure(const Flat& u, const std::vector<Flat>& gu);
  void check_linear(const Flat& u, const Flat& v, const std::vector<Flat>& gu);
  bool right_for_ones(size_t k);
  void check_layout(const Flat& u, const std::vector<Flat>& gu);
  void check_alone(const Flat& u, const std::vector<Flat>& gu);
  void check_zero(bool is_input, size_t index, bool depends, bool zero) const;

  void compare_jacobians();
  void compare_projections();
  void compare_blocks(const Block& a, const std::vector<Block>& b, size_t k, size_t o) const;
  void check_zero_blocks(const std::vector<std::vector<Block>>& a, const std::vector<std::vector<Block>>& b) const;
  [[noreturn]] void locate(size_t k, Flat u, Flat v, double a, double n);
  [[noreturn]] void disagree(size_t k, int64_t column, size_t o, int64_t row, double analytic, double numeric,
                             const std::string& hint) const;

  const char* name_;
  GradcheckOptions options_;
  Tolerance tolerance_;
  Probe probe_;
  Evaluation at_;
  const std::vector<Tensor>& inputs_;
  std::vector<Flat> values_;  ///< of the outputs, before any backward
  uint64_t stream_ = 0;
  std::vector<bool> defined_;  ///< by checked input, after the last walk for all of them
};

}  // namespace tapestry::detail
