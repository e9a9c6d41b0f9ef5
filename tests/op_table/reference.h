// Reference results: naive loops in double over plain arrays, written from the definitions and from nothing of ops/.
// Not fast. Next: row.h.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "../../autograd/shape.h"

namespace tapestry::op_table {

/// Numbers for attributes: dims, sizes, flags. What each means is up to the row.
struct Params {
  int64_t a = 0, b = 0, c = 0, d = 0;
};

/// Row-major numbers of a shape.
struct Array {
  Shape shape;
  std::vector<double> values;

  [[nodiscard]] int64_t place(const Dims& index) const {
    int64_t at = 0;
    for (int d = 0; d < shape.rank(); ++d) at = at * shape[d] + index[d];
    return at;
  }
  [[nodiscard]] double operator()(const Dims& index) const { return values[static_cast<size_t>(place(index))]; }
  double& operator()(const Dims& index) { return values[static_cast<size_t>(place(index))]; }
  [[nodiscard]] int64_t size(int d) const { return shape[d < 0 ? d + shape.rank() : d]; }
  /// As NumPy broadcasts: index belongs to a shape of this rank or more.
  [[nodiscard]] double broadcast(const Dims& index) const {
    Dims own;
    for (int d = 0; d < shape.rank(); ++d) own.push_back(shape[d] == 1 ? 0 : index[d + index.rank() - shape.rank()]);
    return (*this)(own);
  }
  [[nodiscard]] int64_t number(const Dims& index) const { return static_cast<int64_t>((*this)(index)); }
};
using Arrays = std::vector<Array>;

namespace reference {

inline Arrays listed(Array a) { return {std::move(a)}; }
inline Arrays listed(Arrays as) { return as; }

inline constexpr double inf = std::numeric_limits<double>::infinity();

inline int wrap(int64_t dim, int rank) { return static_cast<int>(dim < 0 ? dim + rank : dim); }

/// Calls f(index) for all indices of shape, in row-major order.
template <class F>
void for_each(const Shape& shape, F&& f) {
  const int64_t n = numel(shape);
  Dims index = shape;
  for (int64_t& i : index) i = 0;
  for (int64_t k = 0; k < n; ++k) {
    f(index);
    for (int d = shape.rank() - 1; d >= 0 && ++index[d] == shape[d]; --d) index[d] = 0;
  }
}

/// The array of f(index).
template <class F>
Array build(const Shape& shape, F&& f) {
  Array y{shape, {}};
  y.values.reserve(static_cast<size_t>(numel(shape)));
  for_each(shape, [&](const Dims& i) { y.values.push_back(static_cast<double>(f(i))); });
  return y;
}

inline Dims replaced(Dims index, int dim, int64_t at) {
  index[dim] = at;
  return index;
}
inline Dims inserted(Dims index, int dim, int64_t at) {
  index.insert(dim, at);
  return index;
}
inline Dims erased(Dims index, int dim) {
  index.erase(dim);
  return index;
}

/// The numbers along dim through index.
inline std::vector<double> line(const Array& x, int dim, Dims index) {
  std::vector<double> result;
  for (index[dim] = 0; index[dim] < x.shape[dim]; ++index[dim]) result.push_back(x(index));
  return result;
}

/// f(numbers along dim) -> as many numbers, for every line.
template <class F>
Array along(const Array& x, int64_t dim, F&& f) {
  Array y = x;
  const int d = wrap(dim, x.shape.rank());
  for_each(x.shape, [&](const Dims& i) {
    if (i[d] == 0) {
      const std::vector<double> result = f(line(x, d, i));
      for (int64_t k = 0; k < x.shape[d]; ++k) y(replaced(i, d, k)) = result[static_cast<size_t>(k)];
    }
  });
  return y;
}

/// f(numbers) over the set of dims (all where empty), in row-major order.
template <class F>
Array reduce(const Array& x, const Dims& dims, bool keepdim, F&& f) {
  bool reduced[max_rank] = {};
  for (const int64_t d : dims) reduced[wrap(d, x.shape.rank())] = true;
  if (dims.empty())
    for (bool& r : reduced) r = true;
  Shape kept = x.shape;
  for (int d = 0; d < kept.rank(); ++d)
    if (reduced[d]) kept[d] = 1;
  std::vector<std::vector<double>> groups(static_cast<size_t>(numel(kept)));
  const Array places{kept, {}};
  for_each(x.shape, [&](Dims i) {
    const double value = x(i);
    for (int d = 0; d < kept.rank(); ++d)
      if (reduced[d]) i[d] = 0;
    groups[static_cast<size_t>(places.place(i))].push_back(value);
  });
  Array y{keepdim ? kept : Shape{}, {}};
  if (!keepdim)
    for (int d = 0; d < kept.rank(); ++d)
      if (!reduced[d]) y.shape.push_back(kept[d]);
  for (const auto& group : groups) y.values.push_back(static_cast<double>(f(group)));
  return y;
}

/// Dim d of the result is dim dims[d] of x.
inline Array permuted(const Array& x, const Dims& dims) {
  Shape shape = x.shape;
  for (int d = 0; d < dims.rank(); ++d) shape[d] = x.size(static_cast<int>(dims[d]));
  return build(shape, [&](const Dims& i) {
    Dims from = i;
    for (int d = 0; d < dims.rank(); ++d) from[wrap(dims[d], dims.rank())] = i[d];
    return x(from);
  });
}

/// count elements of dim from start on, step apart.
inline Array piece(const Array& x, int dim, int64_t start, int64_t count, int64_t step = 1) {
  Shape shape = x.shape;
  shape[dim] = count;
  return build(shape, [&](const Dims& i) { return x(replaced(i, dim, start + i[dim] * step)); });
}

inline double total(const std::vector<double>& xs) {
  double sum = 0;
  for (const double x : xs) sum += x;
  return sum;
}
inline double largest(const std::vector<double>& xs) {
  double best = -inf;
  for (const double x : xs) best = x > best ? x : best;
  return best;
}
inline double log_sum_exp(const std::vector<double>& xs) {
  const double top = largest(xs);
  if (top == -inf) return -inf;
  double sum = 0;
  for (const double x : xs) sum += std::exp(x - top);
  return top + std::log(sum);
}
inline double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

/// (..., M, K) times (..., K, N), batch dims broadcast, vectors as a row or a column.
inline Array matmul(const Array& a, const Array& b) {
  Array x = a, y = b;
  if (a.shape.rank() == 1) x.shape.insert(0, 1);
  if (b.shape.rank() == 1) y.shape.push_back(1);
  const auto batch = [](Shape s) {
    s.erase(s.rank() - 1);
    s.erase(s.rank() - 1);
    return s;
  };
  Shape shape = broadcast_shapes("reference", batch(x.shape), batch(y.shape));
  shape.push_back(x.size(-2));
  shape.push_back(y.size(-1));
  Array z = build(shape, [&](const Dims& i) {
    double sum = 0;
    const int r = i.rank();
    Dims left = i, right = i;
    for (int64_t k = 0; k < x.size(-1); ++k) {
      left[r - 1] = right[r - 2] = k;
      const auto at = [&](const Array& m, const Dims& index) {
        Dims own;
        for (int d = 0; d < m.shape.rank(); ++d) {
          const int64_t j = index[d + r - m.shape.rank()];
          own.push_back(d < m.shape.rank() - 2 && m.shape[d] == 1 ? 0 : j);
        }
        return m(own);
      };
      sum += at(x, left) * at(y, right);
    }
    return sum;
  });
  if (a.shape.rank() == 1) z.shape.erase(z.shape.rank() - 2 + (b.shape.rank() == 1 ? 0 : 0));
  if (b.shape.rank() == 1) z.shape.erase(z.shape.rank() - 1);
  return z;
}

}  // namespace reference

}  // namespace tapestry::op_table
