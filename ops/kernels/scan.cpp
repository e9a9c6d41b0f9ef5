// The loop of scan.h: a block of columns at a time, so that rows are read in order.
#include "scan.h"

#include <algorithm>

#include "../../autograd/parallel.h"

namespace tapestry::kernels {

void cumsum(DType dtype, const void* x, void* y, int64_t outer, int64_t n, int64_t inner) {
  constexpr int64_t width = 64, piece = 32768;
  const int64_t blocks = (inner + width - 1) / width;
  dispatch(dtype, [&]<class T> {
    constexpr bool floating = is_floating(dtype_of<T>());
    using Out = std::conditional_t<floating, T, int64_t>;
    using Sum = std::conditional_t<floating, double, int64_t>;
    parallel_for(outer * blocks, std::max<int64_t>(1, piece / std::max<int64_t>(1, n * std::min(inner, width))),
                 [&](int64_t begin, int64_t end) {
                   for (int64_t i = begin; i < end; ++i) {
                     const int64_t at = i / blocks * n * inner + i % blocks * width,
                                   columns = std::min(width, inner - i % blocks * width);
                     const T* from = static_cast<const T*>(x) + at;
                     Out* to = static_cast<Out*>(y) + at;
                     Sum sums[width] = {};
                     for (int64_t k = 0; k < n; ++k)
                       for (int64_t j = 0; j < columns; ++j) {
                         sums[j] += convert<Sum>(from[k * inner + j]);
                         to[k * inner + j] = convert<Out>(sums[j]);
                       }
                   }
                 });
  });
}

}  // namespace tapestry::kernels
