// Pooling: the largest element or the mean of every window, windows of one size or as many as the result has elements (adaptive).
// The largest element's place is kept; its gradient is a move along places, whose own derivative is the move back.
// Next: interpolate.cpp.
#include "kernels/pool.h"

#include <algorithm>

#include "error_text.h"
#include "ops.h"
#include "resample.h"

namespace tapestry {
namespace {

using kernels::BandMatrix;
using kernels::Windows;

Tensor move(bool back, const Shape& shape, const Tensor& x, const Tensor& place);

/// On every plane y = 0, y[place[i]] += x[i]; or `back`: y[i] = x[place[i]].
template <bool back>
struct MoveToPlaces {
  static constexpr std::string_view name = back ? "gather_places" : "scatter_places",
                                    formula = back ? "y[i] = x[place[i]]" : "y[place[i]] += x[i]",
                                    vjp = back ? "dx[place[i]] += g[i]" : "dx[i] = g[place[i]]";
  Shape shape;  // of the planes that places point into
  Tensor forward(Context& c, const Tensor& x, const Tensor& place) const {
    c.save(place);
    const Tensor y = empty(back ? place.shape() : shape, x.dtype()), xs = dense(x);
    const int64_t planes = shape[0] * shape[1], size = numel(std::span<const int64_t>(shape).subspan(2)),
                  n = numel(std::span<const int64_t>(place.shape()).subspan(2));
    detail::dispatch_floating(x.dtype(), [&]<class T> {
      const auto kernel = back ? kernels::gather_places<T> : kernels::scatter_places<T>;
      kernel(planes, size, n, xs.data<T>(), place.data<int64_t>(), detail::fresh<T>(y));
    });
    return y;
  }
  Grads backward(Context& c, const Tensor& g) const {
    return {c.needs(0) ? move(!back, shape, g, c.saved(0)) : Tensor{}, Tensor{}};
  }
};

Tensor move(bool back, const Shape& shape, const Tensor& x, const Tensor& place) {
  return back ? apply(MoveToPlaces<true>{shape}, x, place) : apply(MoveToPlaces<false>{shape}, x, place);
}

struct MaxPool {
  std::string_view name;
  static constexpr std::string_view formula = "y = largest x of each window", vjp = "g at the first largest, else 0";
  Windows rows, columns;

  Tensor forward(Context& c, const Tensor& x) const {
    Shape shape = x.shape();
    shape[x.dim() - 1] = columns.out();
    if (x.dim() == 4) shape[2] = rows.out();
    const Tensor y = empty(shape, x.dtype()), place = empty(shape, DType::i64), xs = dense(x);
    detail::dispatch_floating(x.dtype(), [&]<class T> {
      kernels::max_pool<T>(x.size(0) * x.size(1), rows, columns, xs.data<T>(), detail::fresh<T>(y),
                           detail::fresh<int64_t>(place));
    });
    c.save(place);
    return y;
  }
  Grads backward(Context& c, const Tensor& g) const {
    return grads(c, [&] {
      Shape shape = g.shape();
      shape[g.dim() - 1] = columns.in;
      if (g.dim() == 4) shape[2] = rows.in;
      return move(false, shape, g, c.saved(0));
    });
  }
};

/// Windows along one dim of `size` elements.
struct Axis {
  const char* op;
  const Tensor& x;
  int dim;
  int64_t size, window, stride, pad, dilation;

  void check() const {
    constexpr int64_t most = int64_t{1} << 31;
    if (window < 1 || window > most || stride < 1 || stride > most || dilation < 1 || dilation > most)
      fail<ValueError>("{}: window {}, stride {} and dilation {} must be at least 1", op, window, stride, dilation);
    if (pad < 0 || pad > window / 2)
      fail<ValueError>("{}: padding {} must be at least 0 and at most half the window of {}", op, pad, window);
  }
  /// Number of windows. With ceil_mode a last one may reach over the end, if it begins before it.
  [[nodiscard]] int64_t count(bool ceil_mode) const {
    check();
    const int64_t reach = dilation * (window - 1) + 1, room = size + 2 * pad - reach;
    int64_t n = room < 0 ? 0 : (room + (ceil_mode ? stride - 1 : 0)) / stride + 1;
    if (ceil_mode && n > 0 && (n - 1) * stride >= size + pad) --n;
    if (n < 1 || size < 1)
      fail<ShapeError>("{}: no window fits along dim {} of x {}: window {}, padding {}, dilation {}", op, dim,
                       x.describe(), window, pad, dilation);
    return n;
  }
  [[nodiscard]] Windows windows(bool ceil_mode) const {
    Windows w{size, dilation, {}, {}};
    const int64_t n = count(ceil_mode);
    for (int64_t i = 0; i < n; ++i) {
      int64_t start = i * stride - pad;
      const int64_t stop = std::min(start + dilation * (window - 1) + 1, size);
      if (start < 0) start += (-start + dilation - 1) / dilation * dilation;
      if (start >= stop)
        fail<ShapeError>("{}: window {} along dim {} of x {} holds padding only; less padding or dilation", op, i, dim,
                         x.describe());
      w.start.push_back(start);
      w.stop.push_back(stop);
    }
    return w;
  }
  [[nodiscard]] BandMatrix means(bool ceil_mode, bool count_include_pad) const {
    BandMatrix m;
    m.in = size;
    const int64_t n = count(ceil_mode);
    for (int64_t i = 0; i < n; ++i) {
      const int64_t start = i * stride - pad, stop = std::min(start + window, size + pad);
      const int64_t first = std::max<int64_t>(start, 0), inside = std::min(stop, size) - first;
      const int64_t divisor = count_include_pad ? stop - start : inside;
      m.add_row(first, std::vector<double>(static_cast<size_t>(inside), 1 / static_cast<double>(divisor)));
    }
    return m;
  }
};

void check_planes(const char* op, const Tensor& x, int rank) {
  detail::require_floating(op, x);
  if (x.dim() != rank + 2)
    fail<ShapeError>("{}: x is {}; it must be (B, C, {})", op, x.describe(), rank == 1 ? "L" : "H, W");
}

/// The axis along spatial dim d.
Axis axis(const char* op, const Tensor& x, int d, Pair window, const PoolOptions& o) {
  const auto of = [d](Pair p) { return d == 0 ? p.h : p.w; };
  return {op, x, 2 + d, x.size(2 + d), of(window), of(o.stride.value_or(window)), of(o.padding), of(o.dilation)};
}

template <int rank>
Tensor max_pool(const char* op, const Tensor& x, Pair window, const PoolOptions& o) {
  check_planes(op, x, rank);
  return apply(MaxPool{op, rank == 1 ? Windows{1, 1, {0}, {1}} : axis(op, x, 0, window, o).windows(o.ceil_mode),
                       axis(op, x, rank - 1, window, o).windows(o.ceil_mode)},
               x);
}

Tensor mean_of_windows(const char* op, const Tensor& x, BandMatrix rows, BandMatrix columns) {
  return apply(
      detail::Resample{op, "y = mean of x over each window", "g/(elements of the window) to each of its elements",
                       std::move(rows), std::move(columns)},
      x);
}

template <int rank>
Tensor avg_pool(const char* op, const Tensor& x, Pair window, const PoolOptions& o) {
  check_planes(op, x, rank);
  for (int d = 0; d < rank; ++d)
    if ((d == 0 ? o.dilation.h : o.dilation.w) != 1)
      fail<ValueError>("{}: dilation is for max pooling; leave it 1", op);
  return mean_of_windows(
      op, x, rank == 1 ? detail::single_row() : axis(op, x, 0, window, o).means(o.ceil_mode, o.count_include_pad),
      axis(op, x, rank - 1, window, o).means(o.ceil_mode, o.count_include_pad));
}

/// As many windows as the result has elements.
Windows adaptive_windows(const char* op, const Tensor& x, int dim, int64_t out) {
  const int64_t size = x.size(dim);
  constexpr int64_t most = int64_t{1} << 31;
  if (out < 1 || out > most || size < 1)
    fail<ShapeError>("{}: dim {} of x {} cannot be pooled to {}; both must be at least 1", op, dim, x.describe(), out);
  Windows w{size, 1, {}, {}};
  for (int64_t i = 0; i < out; ++i) {
    w.start.push_back(i * size / out);
    w.stop.push_back(((i + 1) * size + out - 1) / out);
  }
  return w;
}

BandMatrix means(const Windows& w) {
  BandMatrix m;
  m.in = w.in;
  for (size_t i = 0; i < w.start.size(); ++i) {
    const int64_t n = w.stop[i] - w.start[i];
    m.add_row(w.start[i], std::vector<double>(static_cast<size_t>(n), 1 / static_cast<double>(n)));
  }
  return m;
}

template <int rank>
Tensor adaptive(const char* op, const Tensor& x, Pair out, bool largest) {
  check_planes(op, x, rank);
  Windows rows{1, 1, {0}, {1}};
  if (rank == 2) rows = adaptive_windows(op, x, 2, out.h);
  Windows columns = adaptive_windows(op, x, rank + 1, rank == 1 ? out.h : out.w);
  if (largest) return apply(MaxPool{op, std::move(rows), std::move(columns)}, x);
  return mean_of_windows(op, x, means(rows), means(columns));
}

}  // namespace

Tensor max_pool1d(const Tensor& x, int64_t window, PoolOptions options) {
  return max_pool<1>("max_pool1d", x, window, options);
}
Tensor max_pool2d(const Tensor& x, Pair window, PoolOptions options) {
  return max_pool<2>("max_pool2d", x, window, options);
}
Tensor avg_pool1d(const Tensor& x, int64_t window, PoolOptions options) {
  return avg_pool<1>("avg_pool1d", x, window, options);
}
Tensor avg_pool2d(const Tensor& x, Pair window, PoolOptions options) {
  return avg_pool<2>("avg_pool2d", x, window, options);
}
Tensor adaptive_avg_pool1d(const Tensor& x, int64_t out) { return adaptive<1>("adaptive_avg_pool1d", x, out, false); }
Tensor adaptive_avg_pool2d(const Tensor& x, Pair out) { return adaptive<2>("adaptive_avg_pool2d", x, out, false); }
Tensor adaptive_max_pool1d(const Tensor& x, int64_t out) { return adaptive<1>("adaptive_max_pool1d", x, out, true); }
Tensor adaptive_max_pool2d(const Tensor& x, Pair out) { return adaptive<2>("adaptive_max_pool2d", x, out, true); }

}  // namespace tapestry
