// Nested brackets, shortened in the middle of long dims. Next: tools/print_tape.h.
#include "print.h"

#include <algorithm>
#include <ostream>

#include "node.h"

namespace tapestry {
namespace {

constexpr int64_t shortened_above = 1000, shown = 3;

std::string text_of(const Tensor& x, int64_t offset) {
  return dispatch(x.dtype(), [&]<class T> {
    const T value = static_cast<const T*>(x.raw_data())[offset];
    if constexpr (std::is_same_v<T, bf16>)
      return fmt::format("{:.4g}", static_cast<float>(value));
    else if constexpr (std::is_floating_point_v<T>)
      return fmt::format("{:.6g}", value);
    else
      return fmt::format("{}", value);
  });
}

/// Calls f(index) for the indices of `dim` that are shown; a gap is -1.
template <class F>
void for_shown(const Tensor& x, int dim, F&& f) {
  const int64_t n = x.shape()[dim];
  const bool shorten = x.numel() > shortened_above && n > 2 * shown;
  for (int64_t i = 0; i < n; ++i) {
    if (shorten && i == shown) {
      f(int64_t{-1});
      i = n - shown;
    }
    f(i);
  }
}

size_t widest(const Tensor& x, int dim, int64_t offset) {
  if (dim == x.dim()) return text_of(x, offset).size();
  size_t width = 0;
  for_shown(x, dim, [&](int64_t i) {
    if (i >= 0) width = std::max(width, widest(x, dim + 1, offset + i * x.strides()[dim]));
  });
  return width;
}

void write(std::string& text, const Tensor& x, int dim, int64_t offset, size_t width) {
  if (dim == x.dim()) {
    text += fmt::format("{:>{}}", text_of(x, offset), width);
    return;
  }
  const bool rows = dim + 1 < x.dim();
  const std::string indent(std::string_view("tensor(").size() + static_cast<size_t>(dim) + 1, ' ');
  bool first = true;
  text += '[';
  for_shown(x, dim, [&](int64_t i) {
    if (!first) text += rows ? ",\n" + std::string(static_cast<size_t>(x.dim() - dim - 2), '\n') + indent : ", ";
    first = false;
    if (i < 0)
      text += "...";
    else
      write(text, x, dim + 1, offset + i * x.strides()[dim], width);
  });
  text += ']';
}

}  // namespace

std::string to_string(const Tensor& x) {
  if (!x.defined()) return "tensor(undefined)";
  std::string text = "tensor(";
  if (x.numel() > 0)
    write(text, x, 0, 0, widest(x, 0, 0));
  else
    text += "[]";
  text += fmt::format(", {} {}", name_of(x.dtype()), to_string(x.shape()));
  if (!x.is_contiguous()) text += ", strides " + to_string(x.strides());
  if (x.requires_grad()) text += ", requires_grad";
  if (!x.is_leaf()) text += fmt::format(", result of {}", x.gradient_edge().node->name());
  return text + ")";
}

std::ostream& operator<<(std::ostream& out, const Tensor& x) { return out << to_string(x); }

}  // namespace tapestry
