// Cumulative sums along one dim of strided memory. Not reductions (reduce.cpp). Next: reduce.h.
#include <algorithm>
#include <cstdlib>

#include "../../autograd/parallel.h"
#include "../../autograd/strided.h"
#include "reduce.h"

namespace tapestry::kernels {
namespace {

constexpr int64_t width = 256;  // neighbouring sums carried together, so that lines of memory are used whole

template <class T>
void scan(const StridedLoop& loop, int64_t n, const char* x, int64_t x_step, char* y, int64_t y_step) {
  using Sum = std::conditional_t<std::is_same_v<T, int64_t> || std::is_same_v<T, bool>, int64_t, double>;
  const int64_t inner = loop.inner(), blocks = (inner + width - 1) / width, each = n * std::min(inner, width);
  const int64_t y_next = loop.strides[0][loop.rank - 1], x_next = loop.strides[1][loop.rank - 1];
  parallel_for(loop.outer() * blocks, std::max<int64_t>(1, 16384 / std::max<int64_t>(each, 1)),
               [&](int64_t begin, int64_t end) {
                 for (int64_t t = begin; t < end; ++t) {
                   int64_t at[max_operands];
                   loop.offsets(t / blocks, at);
                   const int64_t first = t % blocks * width, count = std::min(width, inner - first);
                   const char* from = x + at[1] + first * x_next;
                   char* to = y + at[0] + first * y_next;
                   Sum sum[width] = {};
                   const auto step = [&](int64_t i, int64_t j) {
                     sum[j] += convert<Sum>(*reinterpret_cast<const T*>(from + i * x_step + j * x_next));
                     *reinterpret_cast<T*>(to + i * y_step + j * y_next) = convert<T>(sum[j]);
                   };
                   if (std::abs(y_step) < std::abs(y_next)) {
                     for (int64_t j = 0; j < count; ++j)
                       for (int64_t i = 0; i < n; ++i) step(i, j);
                   } else {
                     for (int64_t i = 0; i < n; ++i)
                       for (int64_t j = 0; j < count; ++j) step(i, j);
                   }
                 }
               });
}

}  // namespace

void cumsum(const Shape& shape, int dim, DType dtype, const void* x, const Strides& x_strides, void* out,
            const Strides& out_strides, bool reverse) {
  if (numel(shape) == 0) return;
  const int64_t n = shape[dim], item = size_of(dtype);
  Shape rest = shape;
  Strides lists[] = {out_strides, x_strides};
  int64_t y_step = lists[0][dim] * item, x_step = lists[1][dim] * item;
  rest.erase(dim);
  for (Strides& s : lists) s.erase(dim);
  const int64_t sizes[] = {item, item};
  const StridedLoop loop(rest, lists, sizes);
  const char* from = static_cast<const char*>(x);
  char* to = static_cast<char*>(out);
  if (reverse) {
    from += (n - 1) * x_step;
    to += (n - 1) * y_step;
    x_step = -x_step;
    y_step = -y_step;
  }
  dispatch(dtype, [&]<class T> { scan<T>(loop, n, from, x_step, to, y_step); });
}

}  // namespace tapestry::kernels
