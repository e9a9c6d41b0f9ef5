// The loop of windows.h: each element gathers its windows, so that it has one owner.
// Next: ../windows.cpp.
#include "windows.h"

#include <algorithm>

#include "../../autograd/parallel.h"

namespace tapestry::kernels {

void fold_windows(DType dtype, const void* w, void* y, int64_t outer, int64_t length, int64_t inner, int64_t count,
                  int64_t size, int64_t step) {
  if (inner == 0) return;
  const int64_t work = inner * std::max<int64_t>(1, size / step);
  dispatch(dtype, [&]<class T> {
    if constexpr (!std::is_same_v<T, bool>) {
      parallel_for(outer * length, std::max<int64_t>(1, 16384 / work), [&](int64_t begin, int64_t end) {
        for (int64_t row = begin; row < end; ++row) {
          const int64_t o = row / length, l = row % length;
          const int64_t first = l < size ? 0 : (l - size) / step + 1, last = std::min(count - 1, l / step);
          const T* windows = static_cast<const T*>(w) + o * count * inner * size;
          for (int64_t j = 0; j < inner; ++j) {
            compute_t<T> sum = 0;
            for (int64_t c = first; c <= last; ++c)
              sum += convert<compute_t<T>>(windows[(c * inner + j) * size + l - c * step]);
            static_cast<T*>(y)[row * inner + j] = convert<T>(sum);
          }
        }
      });
    }
  });
}

}  // namespace tapestry::kernels
