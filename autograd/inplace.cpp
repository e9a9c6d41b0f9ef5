// In-place writes: fill_ and copy_. They are never recorded; each counts as a write to the storage (tensor.h).
#include <vector>

#include "strided.h"
#include "tensor.h"

namespace tapestry {

const Tensor& Tensor::fill_(double value) const {
  void* to = mutable_raw_data("fill_");
  const Strides still = [&] {
    Strides s = shape();
    for (int64_t& step : s) step = 0;
    return s;
  }();
  dispatch(dtype(), [&]<class T> {
    const T x = convert<T>(value);
    if (is_contiguous()) {
      std::fill_n(static_cast<T*>(to), numel(), x);
    } else {
      strided_copy(shape(), dtype(), to, strides(), dtype(), &x, still);
    }
  });
  return *this;
}

const Tensor& Tensor::copy_(const Tensor& src) const {
  const Strides from = expanded_strides("copy_", src.shape(), src.strides(), shape());
  void* to = mutable_raw_data("copy_");
  if (shares_storage(src) && !(src.offset() == offset() && from == strides())) {
    // Overlapping views: through a copy, so that no element is read after it was written.
    Tensor apart = empty(shape(), src.dtype());
    strided_copy(shape(), src.dtype(), apart.body()->storage->data, apart.strides(), src.dtype(), src.raw_data(), from);
    strided_copy(shape(), dtype(), to, strides(), src.dtype(), apart.raw_data(), apart.strides());
  } else {
    strided_copy(shape(), dtype(), to, strides(), src.dtype(), src.raw_data(), from);
  }
  return *this;
}

}  // namespace tapestry
