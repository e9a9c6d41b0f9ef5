// Upstream gradients and the gradients they give. Next: samples.h.
#include "run.h"

#include <cstring>

#include "../../autograd/engine.h"
#include "../../autograd/factory.h"

namespace tapestry::op_table {
namespace {

std::vector<Tensor> roots_of(const TensorFunction& f, const std::vector<Tensor>& inputs, std::vector<Tensor>& upstream,
                             double factor) {
  std::vector<Tensor> roots;
  for (const Tensor& y : f(inputs)) {
    if (!y.requires_grad()) continue;
    roots.push_back(y);
    upstream.push_back(upstream_of(y));
    if (factor != 1)
      dispatch(y.dtype(), [&]<class T> {
        T* to = upstream.back().mutable_data<T>();
        for (int64_t i = 0; i < y.numel(); ++i) to[i] = convert<T>(factor * convert<double>(to[i]));
      });
  }
  return roots;
}

}  // namespace

TensorFunction function_of(const OpRow& row, const Sample& sample) {
  return [&row, sample](std::span<const Tensor> xs) { return call(row, sample, xs); };
}
TensorFunction composite_of(const OpRow& row, const Sample& sample) {
  return [&row, sample](std::span<const Tensor> xs) { return row.composite(xs, sample.p); };
}

Tensor upstream_of(const Tensor& y) {
  const Ticket ticket{11, 0};
  std::vector<double> values(static_cast<size_t>(y.numel()));
  for (size_t i = 0; i < values.size(); ++i) {
    const auto b = ticket.block(i);
    values[i] = (0.5 + uniform_f64(b[0], b[1])) * ((b[2] & 1U) != 0 ? 1 : -1);
  }
  Tensor g = empty(y.shape(), y.dtype());
  g.copy_(from(values, y.shape()));
  return g;
}

std::vector<Tensor> leaves_of(const std::vector<Tensor>& inputs) {
  std::vector<Tensor> leaves;
  for (const Tensor& x : inputs)
    if (x.defined() && x.requires_grad()) leaves.push_back(x);
  return leaves;
}

std::vector<Tensor> gradients(const TensorFunction& f, const std::vector<Tensor>& inputs, double factor) {
  GradOptions options{.allow_unused = true};
  const auto roots = roots_of(f, inputs, options.grad_outputs, factor);
  const auto leaves = leaves_of(inputs);
  if (roots.empty() || leaves.empty()) return std::vector<Tensor>(leaves.size());
  return grad(roots, leaves, std::move(options));
}

void run_backward(const TensorFunction& f, const std::vector<Tensor>& inputs) {
  std::vector<Tensor> upstream;
  const auto roots = roots_of(f, inputs, upstream, 1);
  for (size_t i = 0; i < roots.size(); ++i) roots[i].backward(upstream[i], {.retain_graph = true});
}

bool same_bits(const Tensor& a, const Tensor& b) {
  if (a.defined() != b.defined()) return false;
  if (!a.defined()) return true;
  if (a.shape() != b.shape() || a.dtype() != b.dtype()) return false;
  const Tensor x = dense(a), y = dense(b);
  return x.numel() == 0 ||
         std::memcmp(x.raw_data(), y.raw_data(), static_cast<size_t>(x.numel() * size_of(x.dtype()))) == 0;
}

double distance(const Tensor& a, const Tensor& b) {
  if (a.defined() != b.defined()) return reference::inf;
  if (!a.defined()) return 0;
  if (a.shape() != b.shape()) return reference::inf;
  const auto x = a.to_vector<double>(), y = b.to_vector<double>();
  double worst = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    const double d = x[i] == y[i] ? 0 : std::abs(x[i] - y[i]) / std::max(1.0, std::abs(y[i]));
    worst = d != d ? reference::inf : std::max(worst, d);
  }
  return worst;
}

}  // namespace tapestry::op_table
