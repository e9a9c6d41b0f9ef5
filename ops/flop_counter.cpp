// The formulas: one row for every op whose kernel multiplies matrices itself. Ops made of these need none. Next: ops.h.
#include "flop_counter.h"

#include <algorithm>

#include "../autograd/node.h"
#include "../autograd/scope.h"

namespace tapestry {
namespace {

using Inputs = std::span<const Tensor* const>;
using Outputs = std::span<const Tensor>;

/// What the kernels of an op cost. A rule in plain ops has no backward of its own: they are counted as they run.
struct Row {
  std::string_view op;
  int64_t (*forward)(Inputs in, Outputs out);
  int64_t (*backward)(const Node& node, Outputs g, Outputs grads) = nullptr;
};

int64_t size_or_zero(const Tensor& t) { return t.defined() ? t.numel() : 0; }

int64_t linear_forward(Inputs in, Outputs out) { return 2 * out[0].numel() * in[1]->size(1); }
int64_t linear_backward(const Node&, Outputs g, Outputs grads) {
  const int64_t width = g[0].size(-1), rows = width == 0 ? 0 : g[0].numel() / width;
  return 2 * (size_or_zero(grads[0]) * width + size_or_zero(grads[1]) * rows);
}

/// Gradients are computed in forward, where they will be wanted.
int64_t linear_cross_entropy(Inputs in, Outputs out) {
  int64_t products = 1;
  for (const size_t i : {0, 1}) products += out[0].requires_grad() && in[i]->requires_grad() ? 1 : 0;
  return 2 * products * in[0]->numel() * in[1]->size(0);
}

int64_t attention_forward(Inputs in, Outputs out) {
  const Tensor& q = *in[0];
  return 2 * (q.numel() + out[0].numel()) * in[1]->size(-2);  // q kᵀ, p v
}
int64_t attention_backward(const Node& node, Outputs g, Outputs grads) {
  const int64_t keys = node.saved[1].tensor.size(-2), queries = node.saved[0].tensor.numel(), values = g[0].numel();
  const bool scores = grads[0].defined() || grads[1].defined();
  const int64_t products = queries                                                // q kᵀ again
                           + (scores ? values : 0)                                // g vᵀ
                           + queries * (grads[0].defined() + grads[1].defined())  // ds k, dsᵀ q
                           + (grads[2].defined() ? values : 0);                   // pᵀ g
  return 2 * products * keys;
}

/// The products with w_hh; those with w_ih are ops of their own. states: (T, B, H), w_hh: (gates·H, H).
template <size_t w_hh>
int64_t recurrence(Inputs in, Outputs out) {
  return 2 * out[0].numel() * in[w_hh]->size(0);
}
template <size_t w_hh>
int64_t recurrence_backward(const Node& node, Outputs, Outputs) {
  return 2 * numel(node.outputs[0].shape) * node.saved[w_hh].tensor.size(0);
}

/// Each element of the output, or of the gradient, is a sum over a window of weight (out, in, K…) or meets one.
int64_t convolution(Inputs in, Outputs out) {
  const Tensor& weight = *in[1];
  return weight.size(0) == 0 ? 0 : 2 * out[0].numel() * (weight.numel() / weight.size(0));
}
int64_t transposed_convolution(Inputs in, Outputs) {
  const Tensor& weight = *in[1];
  return weight.size(0) == 0 ? 0 : 2 * in[0]->numel() * (weight.numel() / weight.size(0));
}
int64_t convolution_weight(Inputs in, Outputs out) {
  return out[0].size(0) == 0 ? 0 : 2 * in[1]->numel() * (out[0].numel() / out[0].size(0));
}

constexpr Row rows[] = {
    {"matmul", [](Inputs in, Outputs out) { return 2 * out[0].numel() * in[0]->size(-1); }},
    {"linear", linear_forward, linear_backward},
    {"linear_cross_entropy", linear_cross_entropy},
    {"scaled_dot_product_attention", attention_forward, attention_backward},
    {"rnn", recurrence<3>, recurrence_backward<3>},
    {"lstm", recurrence<4>, recurrence_backward<4>},
    {"gru", recurrence<3>, recurrence_backward<3>},
    {"conv1d", convolution},
    {"conv2d", convolution},
    {"conv_transpose1d", transposed_convolution},
    {"conv_transpose2d", transposed_convolution},
    {"conv1d_weight_gradient", convolution_weight},
    {"conv2d_weight_gradient", convolution_weight},
};

const Row* row_of(std::string_view op) {
  for (const Row& row : rows)
    if (row.op == op) return &row;
  return nullptr;
}

}  // namespace

void FlopCounter::count(std::string_view op, int64_t flops, bool in_backward) {
  (in_backward ? backward_ : forward_) += flops;
  by_path_[scope_path()] += flops;
  by_op_[std::string(op)] += flops;
}

void FlopCounter::on_forward(std::string_view op, Inputs inputs, Outputs outputs) {
  if (const Row* row = row_of(op)) count(op, row->forward(inputs, outputs), rules_ > 0);
}

void FlopCounter::before_backward(const Node&, Outputs) { ++rules_; }

void FlopCounter::on_backward(const Node& node, Outputs grad_outputs, Outputs grad_inputs) {
  --rules_;
  // A walk that records differentiates an op's definition instead of running its kernel; those ops were counted.
  const bool records = std::any_of(grad_inputs.begin(), grad_inputs.end(),
                                   [](const Tensor& g) { return g.defined() && g.requires_grad(); });
  const Row* row = row_of(node.name());
  if (records || row == nullptr || row->backward == nullptr) return;
  count(node.name(), row->backward(node, grad_outputs, grad_inputs), true);
}

}  // namespace tapestry
