// Tensors from lists, memory, rules and random numbers; element i depends on i alone, so they are made in parallel. Next: tensor.h.
#include "factory.h"

#include <cmath>
#include <cstring>
#include <numbers>

#include "error.h"
#include "parallel.h"

namespace tapestry {

__extension__ using Wide = unsigned __int128;

NestedList::NestedList(std::initializer_list<NestedList> list) {
  shape_ = list.size() == 0 ? Shape{} : list.begin()->shape_;
  for (const NestedList& part : list) {
    if (part.shape_ != shape_)
      fail<ShapeError>("tensor: ragged list: one part has shape {}, another {}", to_string(shape_),
                       to_string(part.shape_));
    values_.insert(values_.end(), part.values_.begin(), part.values_.end());
  }
  shape_.insert(0, static_cast<int64_t>(list.size()));
}

namespace {

/// Fills a new tensor with value(i), in parallel.
template <class F>
Tensor generate(const Shape& shape, DType dtype, F&& value) {
  Tensor t = empty(shape, dtype);
  dispatch(dtype, [&]<class T> {
    auto* to = static_cast<T*>(t.body()->storage->data);
    parallel_for(t.numel(), 4096, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) to[i] = convert<T>(value(i));
    });
  });
  return t;
}

}  // namespace

Tensor tensor(std::initializer_list<NestedList> list, DType dtype) {
  const NestedList nested(list);
  return generate(nested.shape(), dtype, [&](int64_t i) { return nested.values()[static_cast<size_t>(i)]; });
}

Tensor scalar(double value, DType dtype) { return full({}, value, dtype); }

namespace detail {

namespace {
void check_count(const char* op, size_t count, const Shape& shape) {
  if (static_cast<int64_t>(count) != numel(shape))
    fail<ShapeError>("{}: {} values do not fill the shape {} ({} elements)", op, count, to_string(shape), numel(shape));
}
}  // namespace

Tensor from_memory(const void* data, size_t count, const Shape& shape, DType dtype) {
  check_count("from", count, shape);
  Tensor t = empty(shape, dtype);
  if (count > 0) std::memcpy(t.body()->storage->data, data, count * static_cast<size_t>(size_of(dtype)));
  return t;
}

Tensor borrow_memory(void* data, size_t count, const Shape& shape, DType dtype, std::shared_ptr<void> keep) {
  check_count("borrow_external_memory", count, shape);
  Ref<TensorBody> body(new TensorBody);
  body->storage = Ref<Storage>(new Storage(data, static_cast<int64_t>(count) * size_of(dtype), std::move(keep)));
  body->shape = shape;
  body->strides = contiguous_strides(shape);
  body->dtype = dtype;
  return Tensor(std::move(body));
}

}  // namespace detail

Tensor full(const Shape& shape, double value, DType dtype) {
  Tensor t = empty(shape, dtype);
  t.fill_(value);
  return t;
}
Tensor zeros(const Shape& shape, DType dtype) { return full(shape, 0, dtype); }
Tensor ones(const Shape& shape, DType dtype) { return full(shape, 1, dtype); }
Tensor zeros_like(const Tensor& x) { return zeros(x.shape(), x.dtype()); }
Tensor ones_like(const Tensor& x) { return ones(x.shape(), x.dtype()); }

Tensor arange(int64_t n, DType dtype) {
  if (n < 0) fail<ValueError>("arange: negative length {}", n);
  return generate({n}, dtype, [](int64_t i) { return i; });
}

Tensor arange(double start, double end, double step, DType dtype) {
  if (!(std::abs(step) > 0) || !std::isfinite((end - start) / step))
    fail<ValueError>("arange: start {}, end {}, step {} make no finite range", start, end, step);
  const auto n = static_cast<int64_t>(std::max(0.0, std::ceil((end - start) / step)));
  return generate({n}, dtype, [=](int64_t i) { return start + static_cast<double>(i) * step; });
}

Tensor linspace(double start, double end, int64_t n, DType dtype) {
  if (n < 0) fail<ValueError>("linspace: negative length {}", n);
  return generate({n}, dtype, [=](int64_t i) {
    return i == n - 1 && n > 1
               ? end
               : start + (n > 1 ? static_cast<double>(i) * (end - start) / static_cast<double>(n - 1) : 0.0);
  });
}

Tensor eye(int64_t n, DType dtype) {
  return generate({n, n}, dtype, [=](int64_t i) { return i / n == i % n ? 1.0 : 0.0; });
}

Tensor rand(const Shape& shape, DType dtype) {
  const Ticket ticket = draw_ticket();
  if (dtype == DType::f32)
    return generate(shape, dtype, [=](int64_t i) { return uniform_f32(ticket.word(static_cast<uint64_t>(i))); });
  return generate(shape, dtype, [=](int64_t i) {
    const auto block = ticket.block(static_cast<uint64_t>(i));
    return uniform_f64(block[0], block[1]);
  });
}

double normal_of(const Ticket& ticket, uint64_t i) {
  const auto b = ticket.block(i);
  const double u = 1.0 - uniform_f64(b[0], b[1]), v = uniform_f64(b[2], b[3]);  // u in (0, 1]
  return std::sqrt(-2.0 * std::log(u)) * std::cos(2.0 * std::numbers::pi * v);
}

Tensor randn(const Shape& shape, DType dtype) {
  const Ticket ticket = draw_ticket();
  return generate(shape, dtype, [=](int64_t i) { return normal_of(ticket, static_cast<uint64_t>(i)); });
}

Tensor randint(int64_t low, int64_t high, const Shape& shape) {
  if (low >= high) fail<ValueError>("randint: empty range [{}, {})", low, high);
  const Ticket ticket = draw_ticket();
  const uint64_t range = static_cast<uint64_t>(high) - static_cast<uint64_t>(low);
  return generate(shape, DType::i64, [=](int64_t i) {
    const auto b = ticket.block(static_cast<uint64_t>(i));
    const uint64_t bits = (static_cast<uint64_t>(b[0]) << 32) | b[1];
    return low + static_cast<int64_t>(static_cast<uint64_t>((static_cast<Wide>(bits) * range) >> 64));
  });
}

}  // namespace tapestry
