// Checks of matrices, and copies column by column. Next: linalg.cpp.
#include "matrices.h"

#include <algorithm>

#include "../autograd/error.h"
#include "../autograd/strided.h"
#include "error_text.h"
#include "rows.h"

namespace tapestry::detail {

void require_matrices(const char* op, const Tensor& a) {
  if (!a.defined()) fail<AutogradError>("{}: the tensor is undefined", op);
  if (a.dim() < 2) fail<ShapeError>("{}: {} is no matrix; it needs two dims", op, a.describe());
  if (a.dtype() != DType::f32 && a.dtype() != DType::f64)
    fail<DTypeError>("{}: LAPACK computes in f32 and f64, got {}; convert with to(x, DType::f32)", op, a.describe());
}

void require_square(const char* op, const Tensor& a) {
  require_matrices(op, a);
  if (a.size(-1) != a.size(-2))
    fail<ShapeError>("{}: {} is not square (a.size(-2) = {}, a.size(-1) = {}); it needs as many rows as columns", op,
                     a.describe(), a.size(-2), a.size(-1));
}

Shape without_last(Shape shape, int count) {
  for (int i = 0; i < count; ++i) shape.erase(shape.rank() - 1);
  return shape;
}

int64_t batch_of(const Tensor& a) { return numel(without_last(a.shape(), 2)); }

Shape with_last_two(const Shape& shape, int64_t rows, int64_t columns) {
  Shape result = shape;
  result[shape.rank() - 2] = rows;
  result[shape.rank() - 1] = columns;
  return result;
}

Tensor empty_columns(const Shape& shape, DType dtype) {
  const int r = shape.rank();
  const Tensor memory = empty(with_last_two(shape, shape[r - 1], shape[r - 2]), dtype);
  Strides strides = memory.strides();
  std::swap(strides[r - 2], strides[r - 1]);
  return memory.view_of(shape, strides, 0);
}

Tensor column_major(const Tensor& x) {
  Tensor y = empty_columns(x.shape(), x.dtype());
  strided_copy(x.shape(), x.dtype(), fresh<char>(y), y.strides(), x.dtype(), x.raw_data(), x.strides());
  return y;
}

Tensor finite_columns(const char* op, const Tensor& x, kernels::Part part) {
  Tensor y = column_major(x);
  const int64_t m = x.size(-2);
  dispatch_real(x.dtype(), [&]<class T> {
    const T* data = fresh<T>(y);
    const auto fault = kernels::find_not_finite<T>(batch_of(x), m, x.size(-1), part, data);
    if (fault)
      fail<ValueError>("{}: {} ({}) holds {} at [{}, {}]; LAPACK needs finite numbers", op,
                       place_in_batch(x.shape(), fault.matrix), x.describe(),
                       data[fault.matrix * m * x.size(-1) + fault.place], fault.place % m, fault.place / m);
  });
  return y;
}

std::string place_in_batch(const Shape& shape, int64_t matrix) {
  if (shape.rank() == 2) return "the matrix";
  if (shape.rank() == 3) return fmt::format("matrix {} of the batch", matrix);
  return fmt::format("matrix {} of the batch", place_of(without_last(shape, 2), matrix));
}

}  // namespace tapestry::detail
