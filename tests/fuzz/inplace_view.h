// The views of in-place programs, each as a call of the library and as the list of elements it sees.
// Next: inplace.cpp.
#pragma once

#include <functional>
#include <optional>

#include "../../autograd/tensor.h"
#include "inplace.h"
#include "inplace_reference.h"

namespace tapestry::fuzz {

struct View {
  std::string text;  ///< as C++
  Shape to;
  std::function<Tensor(const Tensor&)> apply;
  std::vector<size_t> source;  ///< element i of the view is this element of the operand
};

/// The view a step stands for, on an operand called `name`; nothing where it does not fit.
std::optional<View> choose_view(const InplaceStep& step, const slow::Array& x, const std::string& name);

/// place(index) for every index of `shape`, row-major.
template <class F>
std::vector<size_t> sources(const Shape& shape, F&& place) {
  std::vector<size_t> list;
  Dims index = shape;
  for (int64_t& i : index) i = 0;
  for (int64_t n = numel(shape); n > 0; --n) {
    list.push_back(static_cast<size_t>(place(index)));
    for (int d = shape.rank() - 1; d >= 0 && ++index[d] == shape[d]; --d) index[d] = 0;
  }
  return list;
}
inline int64_t row_major(const Shape& shape, const Dims& index) {
  int64_t at = 0;
  for (int d = 0; d < shape.rank(); ++d) at = at * shape[d] + index[d];
  return at;
}
/// 0, 1, 2, … for every element of `shape`.
inline std::vector<size_t> row_major_places(const Shape& shape) {
  return sources(shape, [&](const Dims& i) { return row_major(shape, i); });
}
/// "Shape{2, 3}".
std::string shape_text(const Shape& shape);

}  // namespace tapestry::fuzz
