// Values from a counter, laid out in memory in six ways. Next: row.h.
#include "samples.h"

#include <cstdlib>

#include "../../autograd/factory.h"
#include "../../autograd/grad_mode.h"
#include "../../autograd/random.h"

namespace tapestry::op_table {
namespace {

/// Row-major values of one input. Floating ones are whole numbers where the op runs on i64.
std::vector<double> values_of(const Input& in, uint64_t stream, bool whole) {
  const Ticket ticket{7, stream};
  std::vector<double> values(static_cast<size_t>(numel(in.shape())));
  for (size_t i = 0; i < values.size(); ++i) {
    const auto b = ticket.block(i);
    const double u = uniform_f64(b[0], b[1]);
    if (in.kind == Kind::mask)
      values[i] = u < 0.6 ? 1 : 0;
    else if (in.kind == Kind::index)
      values[i] = std::floor(in.low + u * (in.high - in.low));
    else if (whole)
      values[i] = std::floor(in.low * 3 + u * (in.high - in.low) * 3);
    else
      values[i] = in.low + u * (in.high - in.low);
  }
  return values;
}

/// Makes all slices of the first dim longer than 1 equal, so that it can be an expanded one; -1 if there is none.
int repeat_first_dim(std::vector<double>& values, const Shape& shape) {
  int64_t slice = 1;
  int dim = -1;
  for (int d = 0; d < shape.rank() && dim < 0; ++d)
    if (shape[d] > 1) dim = d;
  if (dim < 0 || values.empty()) return -1;
  for (int d = dim + 1; d < shape.rank(); ++d) slice *= shape[d];
  for (size_t i = 0; i < values.size(); ++i) values[i] = values[i % static_cast<size_t>(slice)];
  return dim;
}

Tensor lay_out(const std::vector<double>& values, const Shape& shape, DType dtype, Layout layout, int repeated) {
  Strides strides = contiguous_strides(shape);
  int64_t offset = 0, count = numel(shape);
  if (layout == Layout::transposed) {
    int64_t step = 1;
    for (int d = 0; d < shape.rank(); ++d) {
      strides[d] = step;
      step *= std::max<int64_t>(shape[d], 1);
    }
  } else if (layout == Layout::stepped || layout == Layout::backwards) {
    for (int64_t& step : strides) step *= 2;
    count *= 2;
    if (layout == Layout::backwards && shape.rank() > 0 && count > 0) {
      offset = strides[shape.rank() - 1] * (shape[shape.rank() - 1] - 1);
      strides[shape.rank() - 1] *= -1;
    }
  } else if (layout == Layout::offset) {
    offset = 3;
    count += 6;
  } else if (layout == Layout::expanded && repeated >= 0) {
    strides[repeated] = 0;
    for (int d = 0; d < repeated; ++d) strides[d] = 1;  // sizes are 1
  }
  const double around = is_floating(dtype) ? std::nan("") : dtype == DType::i64 ? 1e15 : 1;
  const Tensor x = full({std::max<int64_t>(count, 1)}, around, dtype).view_of(shape, strides, offset);
  const NoGrad raw;
  dispatch(dtype, [&]<class T> {
    T* to = x.mutable_data<T>();
    size_t k = 0;
    reference::for_each(shape, [&](const Dims& i) {
      int64_t at = 0;
      for (int d = 0; d < shape.rank(); ++d) at += i[d] * strides[d];
      to[at] = convert<T>(values[k++]);
    });
  });
  return x;
}

}  // namespace

const char* name_of(Layout layout) {
  constexpr const char* names[] = {"contiguous", "transposed", "stepped", "offset", "backwards", "expanded"};
  return names[static_cast<int>(layout)];
}

std::vector<Tensor> make_inputs(const OpRow& row, const Sample& sample, DType dtype, Layout layout, bool grad) {
  std::vector<Tensor> inputs;
  for (int i = 0; i < sample.count(); ++i) {
    const Input& in = sample.inputs[i];
    if (in.kind == Kind::undefined) {
      inputs.emplace_back();
      continue;
    }
    auto values = values_of(in, hash_name(row.name) + static_cast<uint64_t>(i), dtype == DType::i64);
    const int repeated = layout == Layout::expanded ? repeat_first_dim(values, in.shape()) : -1;
    const DType type = in.kind == Kind::index ? DType::i64 : in.kind == Kind::mask ? DType::boolean : dtype;
    inputs.push_back(lay_out(values, in.shape(), type, layout, repeated));
    if (grad && in.kind == Kind::real && is_floating(type)) inputs.back().requires_grad_();
  }
  return inputs;
}

Array array_of(const Tensor& x) { return x.defined() ? Array{x.shape(), x.to_vector<double>()} : Array{}; }

Arrays reference_of(const OpRow& row, const Sample& sample, std::span<const Tensor> inputs) {
  Arrays arrays;
  for (const Tensor& x : inputs) arrays.push_back(array_of(x));
  manual_seed(1);
  if (row.ref) return row.ref.call(arrays, sample.p);
  Shape shape;
  for (const Array& a : arrays) shape = broadcast_shapes("reference", shape, a.shape);
  return {reference::build(shape, [&](const Dims& i) {
    double at[max_inputs] = {};
    for (size_t k = 0; k < arrays.size(); ++k) at[k] = arrays[k].broadcast(i);
    return row.point.call(at);
  })};
}

Tensors call(const OpRow& row, const Sample& sample, std::span<const Tensor> inputs) {
  manual_seed(1);
  return row.fn(inputs, sample.p);
}

bool small_samples() { return std::getenv("TAPESTRY_SMALL_SAMPLES") != nullptr; }

std::vector<Sample> samples_of(const OpRow& row) {
  std::vector<Sample> list;
  for (const Sample& s : row.samples)
    if (s.given() && (list.empty() || !small_samples())) list.push_back(s);
  return list;
}

std::string compare(std::span<const Tensor> results, const Arrays& right, double bound) {
  if (results.size() != right.size())
    return fmt::format("{} results, the reference has {}", results.size(), right.size());
  for (size_t k = 0; k < right.size(); ++k) {
    if (results[k].shape() != right[k].shape)
      return fmt::format("result {} has shape {}, the reference {}", k, to_string(results[k].shape()),
                         to_string(right[k].shape));
    const auto values = results[k].to_vector<double>();
    for (size_t i = 0; i < values.size(); ++i) {
      const double r = right[k].values[i], v = values[i];
      if (v == r || (v != v && r != r) || std::abs(v - r) <= bound * std::max(1.0, std::abs(r))) continue;
      return fmt::format("result {} element {}: {:.17g}, the reference has {:.17g}, bound {:.1e}", k, i, v, r, bound);
    }
  }
  return {};
}

}  // namespace tapestry::op_table
