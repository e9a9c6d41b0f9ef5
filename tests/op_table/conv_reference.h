// References of convolution, pooling and resizing: loops over the definitions, a line (B, C, L) as an image of one row.
// Next: conv_rows.cpp, pool_rows.cpp.
#pragma once

#include <algorithm>

#include "reference.h"

namespace tapestry::op_table::reference {

/// A number of a row for two dims: 21 is 2 along rows and 1 along columns.
inline int64_t digit(int64_t both, int d) { return d == 0 ? both / 10 : both % 10; }

/// (B, C, L) as (B, C, 1, L).
inline Array image(Array x) {
  if (x.shape.rank() == 3) x.shape.insert(2, 1);
  return x;
}
inline Array same_rank(Array y, const Array& x) {
  if (x.shape.rank() == 3) y.shape.erase(2);
  return y;
}

/// Stride, padding, dilation (two digits each; a line uses the second) and groups.
struct Window {
  int64_t stride, padding, dilation, groups;
  /// Where tap k of output i reads along dim d.
  [[nodiscard]] int64_t at(int d, int64_t i, int64_t k, bool line) const {
    const auto of = [&](int64_t both) { return line && d == 0 ? 0 : digit(both, d); };
    return line && d == 0 ? 0 : i * of(stride) + k * of(dilation) - of(padding);
  }
};

/// Calls f(index of x, index of w, index of y) for every product of a convolution of these sizes.
template <class F>
void for_products(const Shape& x, const Shape& w, const Shape& y, const Window& o, bool line, F&& f) {
  for_each(y, [&](const Dims& i) {
    const int64_t group = i[1] / (w[0] / o.groups);
    for (int64_t c = 0; c < w[1]; ++c)
      for (int64_t k = 0; k < w[2]; ++k)
        for (int64_t l = 0; l < w[3]; ++l) {
          const int64_t r = o.at(0, i[2], k, line), s = o.at(1, i[3], l, line);
          if (r >= 0 && r < x[2] && s >= 0 && s < x[3]) f(Dims{i[0], group * w[1] + c, r, s}, Dims{i[1], c, k, l}, i);
        }
  });
}

/// A convolution, or its transpose: y[…] += w x where the convolution has y and x the other way round.
inline Array convolved(const Arrays& a, const Window& o, bool transposed, int64_t output_padding = 0) {
  const bool line = a[0].shape.rank() == 3;
  const Array x = image(a[0]), w = image(a[1]);
  Shape shape = {x.shape[0], transposed ? w.shape[1] * o.groups : w.shape[0]};
  for (int d = 0; d < 2; ++d) {
    const bool lone = line && d == 0;
    const int64_t stride = lone ? 1 : digit(o.stride, d), pad = lone ? 0 : digit(o.padding, d),
                  reach = lone ? 0 : digit(o.dilation, d) * (w.shape[2 + d] - 1), size = x.shape[2 + d];
    shape.push_back(transposed ? (size - 1) * stride - 2 * pad + reach + (lone ? 0 : digit(output_padding, d)) + 1
                               : (size + 2 * pad - reach - 1) / stride + 1);
  }
  Array y = build(shape, [&](const Dims& i) { return a.size() > 2 && !a[2].values.empty() ? a[2]({i[1]}) : 0.0; });
  if (transposed)
    for_products(y.shape, w.shape, x.shape, o, line,
                 [&](const Dims& i, const Dims& k, const Dims& j) { y(i) += w(k) * x(j); });
  else
    for_products(x.shape, w.shape, y.shape, o, line,
                 [&](const Dims& i, const Dims& k, const Dims& j) { y(j) += w(k) * x(i); });
  return same_rank(y, a[0]);
}

/// f(elements of each window) with window, stride, padding and dilation along both dims (a line uses the second). Windows begin before the end.
template <class F>
Array pooled(const Array& given, int64_t window, const Window& o, bool ceil_mode, F&& f) {
  const bool line = given.shape.rank() == 3;
  const Array x = image(given);
  Shape shape = {x.shape[0], x.shape[1]};
  for (int d = 0; d < 2; ++d) {
    int64_t n = 0;
    if (line && d == 0)
      n = 1;
    else
      for (
          ;;
          ++n) {  // a window counts if it fits into the padded line, or with ceil_mode if it begins before the padding at its end
        const int64_t start = n * digit(o.stride, d), size = x.shape[2 + d], pad = digit(o.padding, d);
        const int64_t reach = digit(o.dilation, d) * (digit(window, d) - 1) + 1;
        const bool fits = start + reach <= size + 2 * pad;
        const bool over = ceil_mode && start < size + pad && start - digit(o.stride, d) + reach < size + 2 * pad;
        if (!fits && !over) break;
      }
    shape.push_back(n);
  }
  return same_rank(build(shape,
                         [&](const Dims& i) {
                           std::vector<double> inside;
                           double padded = 1;
                           for (int d = 0; d < 2; ++d) {
                             if (line && d == 0) continue;
                             const int64_t start = i[2 + d] * digit(o.stride, d) - digit(o.padding, d);
                             padded *= static_cast<double>(
                                 std::min(start + digit(window, d), x.shape[2 + d] + digit(o.padding, d)) - start);
                           }
                           for (int64_t k = 0; k < (line ? 1 : digit(window, 0)); ++k)
                             for (int64_t l = 0; l < digit(window, 1); ++l) {
                               const int64_t r = o.at(0, i[2], k, line), s = o.at(1, i[3], l, line);
                               if (r >= 0 && r < x.shape[2] && s >= 0 && s < x.shape[3])
                                 inside.push_back(x({i[0], i[1], r, s}));
                             }
                           return f(inside, padded);
                         }),
                   given);
}

/// f(elements of window i of as many windows as the result has places), for results of h × w (a line has w).
template <class F>
Array adaptively_pooled(const Array& given, int64_t h, int64_t w, F&& f) {
  const bool line = given.shape.rank() == 3;
  const Array x = image(given);
  const auto low = [](int64_t i, int64_t in, int64_t out) { return i * in / out; };
  const auto high = [](int64_t i, int64_t in, int64_t out) { return ((i + 1) * in + out - 1) / out; };
  const int64_t rows = line ? 1 : h;
  return same_rank(build({x.shape[0], x.shape[1], rows, w},
                         [&](const Dims& i) {
                           std::vector<double> inside;
                           for (int64_t r = low(i[2], x.shape[2], rows); r < high(i[2], x.shape[2], rows); ++r)
                             for (int64_t s = low(i[3], x.shape[3], w); s < high(i[3], x.shape[3], w); ++s)
                               inside.push_back(x({i[0], i[1], r, s}));
                           return f(inside);
                         }),
                   given);
}

/// x resized: nearest (mode 0), linear (1) or linear with aligned corners (2), by interpolating between the two pixels around each place.
inline Array resized(const Array& given, int64_t h, int64_t w, int64_t mode) {
  const bool line = given.shape.rank() == 3;
  const Array x = image(given);
  const int64_t size[2] = {line ? 1 : h, w};
  const auto place = [&](int64_t i, int d) {
    const auto in = static_cast<double>(x.shape[2 + d]), out = static_cast<double>(size[d]),
               at = static_cast<double>(i);
    if (mode == 0) return std::floor(at * in / out + 1e-9);
    if (mode == 2) return out == 1 ? 0 : at * (in - 1) / (out - 1);
    return std::max(0.0, (at + 0.5) * in / out - 0.5);
  };
  return same_rank(
      build(
          {x.shape[0], x.shape[1], size[0], w},
          [&](const Dims& i) {
            double sum = 0;
            for (int64_t r = 0; r < x.shape[2]; ++r)
              for (int64_t s = 0; s < x.shape[3]; ++s) {
                const auto hat = [&](double p, int64_t at, int64_t in) {
                  const double held = std::min(p, static_cast<double>(in - 1));
                  return std::max(0.0, 1 - std::abs(held - static_cast<double>(at)));
                };
                sum += x({i[0], i[1], r, s}) * hat(place(i[2], 0), r, x.shape[2]) * hat(place(i[3], 1), s, x.shape[3]);
              }
            return sum;
          }),
      given);
}

}  // namespace tapestry::op_table::reference
