// The loops of indexed.h. Not vectorised by hand: slices are memcpy and plain additions, elements are bound by memory.
// Next: ../index.cpp.
#include "indexed.h"

#include <algorithm>
#include <cstring>

#include "../../autograd/parallel.h"

namespace tapestry::kernels {
namespace {

constexpr int64_t piece = 32768;    // elements a piece of work has at least
constexpr int64_t columns_of = 64;  // smallest cut of an inner dim: whole cache lines, so that owners do not share one

template <class F>
void with_addable(DType dtype, F&& f) {
  if (dtype == DType::f32)
    f.template operator()<float>();
  else if (dtype == DType::f64)
    f.template operator()<double>();
  else
    f.template operator()<int64_t>();
}

/// Cuts (outer, inner) into pieces of at least `piece` elements when each of them costs `count` additions: f(o, first column, last column).
template <class F>
void for_columns(int64_t outer, int64_t inner, int64_t count, F f) {
  const int64_t wanted = piece / std::max<int64_t>(count, 1);
  const int64_t width =
      std::min(std::max<int64_t>(inner, 1), (std::max<int64_t>(wanted, 1) + columns_of - 1) / columns_of * columns_of);
  const int64_t cuts = (inner + width - 1) / width;
  parallel_for(outer * cuts, std::max<int64_t>(1, wanted / width), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) f(i / cuts, i % cuts * width, std::min(inner, (i % cuts + 1) * width));
  });
}

/// f(row of y, row of src, columns) at each index in turn; each column of y has one owner.
template <class T, class F>
void for_slices(void* y, const int64_t* index, const void* src, int64_t outer, int64_t size, int64_t count,
                int64_t inner, F f) {
  for_columns(outer, inner, count, [&](int64_t o, int64_t first, int64_t last) {
    T* to = static_cast<T*>(y) + o * size * inner + first;
    const T* from = static_cast<const T*>(src) + o * count * inner + first;
    for (int64_t k = 0; k < count; ++k) f(to + index[k] * inner, from + k * inner, last - first);
  });
}

/// Offset of row `row` of `shape` without its last dim; `dim` is left out.
int64_t offset_of(int64_t row, const Shape& shape, const Strides& strides, int dim) {
  int64_t offset = 0;
  for (int i = shape.rank() - 2; i >= 0; --i) {
    if (i != dim) offset += row % shape[i] * strides[i];
    row /= shape[i];
  }
  return offset;
}

/// f(element of y, element of src) for the elements of `shape` in row-major order; each target has one owner.
template <class T, class F>
void for_elements(void* y, const Strides& strides, int dim, const int64_t* index, const Shape& shape, const void* src,
                  F f) {
  const int last = shape.rank() - 1;
  const int64_t n = shape[last], step = dim == last ? 0 : strides[last];
  if (numel(shape) == 0) return;
  const int64_t rows = numel(shape) / n;
  const auto run = [&](int64_t row, int64_t first, int64_t end) {
    T* to = static_cast<T*>(y) + offset_of(row, shape, strides, dim);
    for (int64_t j = first; j < end; ++j)
      f(to[index[row * n + j] * strides[dim] + j * step], static_cast<const T*>(src)[row * n + j]);
  };
  // Along the last dim every row has targets of its own; along another one every column has.
  if (dim == last) {
    parallel_for(rows, std::max<int64_t>(1, piece / n), [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) run(row, 0, n);
    });
  } else {
    for_columns(1, n, rows, [&](int64_t, int64_t first, int64_t end) {
      for (int64_t row = 0; row < rows; ++row) run(row, first, end);
    });
  }
}

}  // namespace

void select_slices(DType dtype, const void* x, const int64_t* index, void* y, int64_t outer, int64_t size,
                   int64_t count, int64_t inner) {
  const int64_t width = inner * size_of(dtype);
  if (width == 0) return;
  parallel_for(outer * count, std::max<int64_t>(1, 4 * piece / width), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end;) {
      const int64_t o = i / count, first = i % count, last = std::min(count, first + end - i);
      const char* from = static_cast<const char*>(x) + o * size * width;
      char* to = static_cast<char*>(y) + o * count * width;
      if (inner == 1) {
        dispatch(dtype, [&]<class T> {
          for (int64_t k = first; k < last; ++k)
            reinterpret_cast<T*>(to)[k] = reinterpret_cast<const T*>(from)[index[k]];
        });
      } else {
        for (int64_t k = first; k < last; ++k)
          std::memcpy(to + k * width, from + index[k] * width, static_cast<size_t>(width));
      }
      i += last - first;
    }
  });
}

void add_slices(DType dtype, void* y, const int64_t* index, const void* src, int64_t outer, int64_t size, int64_t count,
                int64_t inner) {
  with_addable(dtype, [&]<class T> {
    for_slices<T>(y, index, src, outer, size, count, inner, [](T* to, const T* from, int64_t n) {
      for (int64_t j = 0; j < n; ++j) to[j] += from[j];
    });
  });
}

void put_slices(DType dtype, void* y, const int64_t* index, const void* src, int64_t outer, int64_t size, int64_t count,
                int64_t inner) {
  dispatch(dtype, [&]<class T> {
    for_slices<T>(y, index, src, outer, size, count, inner,
                  [](T* to, const T* from, int64_t n) { std::copy_n(from, n, to); });
  });
}

void max_slices(DType dtype, void* y, const int64_t* index, const void* src, int64_t outer, int64_t size, int64_t count,
                int64_t inner) {
  dispatch(dtype, [&]<class T> {
    for_slices<T>(y, index, src, outer, size, count, inner, [](T* to, const T* from, int64_t n) {
      for (int64_t j = 0; j < n; ++j) {
        const auto a = convert<compute_t<T>>(to[j]), b = convert<compute_t<T>>(from[j]);
        if (b > a || b != b) to[j] = from[j];
      }
    });
  });
}

void gather_elements(DType dtype, const void* x, const Strides& strides, int dim, const int64_t* index,
                     const Shape& shape, void* y) {
  const int last = shape.rank() - 1;
  const int64_t n = shape[last], step = dim == last ? 0 : strides[last];
  if (numel(shape) == 0) return;
  dispatch(dtype, [&]<class T> {
    parallel_for(numel(shape) / n, std::max<int64_t>(1, piece / n), [&](int64_t begin, int64_t end) {
      for (int64_t row = begin; row < end; ++row) {
        const T* from = static_cast<const T*>(x) + offset_of(row, shape, strides, dim);
        for (int64_t j = 0; j < n; ++j)
          static_cast<T*>(y)[row * n + j] = from[index[row * n + j] * strides[dim] + j * step];
      }
    });
  });
}

void add_elements(DType dtype, void* y, const Strides& strides, int dim, const int64_t* index, const Shape& shape,
                  const void* src) {
  with_addable(dtype, [&]<class T> {
    for_elements<T>(y, strides, dim, index, shape, src, [](T& to, const T& from) { to += from; });
  });
}

void put_elements(DType dtype, void* y, const Strides& strides, int dim, const int64_t* index, const Shape& shape,
                  const void* src) {
  dispatch(dtype, [&]<class T> {
    for_elements<T>(y, strides, dim, index, shape, src, [](T& to, const T& from) { to = from; });
  });
}

}  // namespace tapestry::kernels
