// Each helper as one or more walks; a jvp is a vjp of the vjp. Next: checkpoint.h.
#include "functional.h"

#include "../engine.h"
#include "../factory.h"
#include "../grad_mode.h"
#include "reenter.h"

namespace tapestry {
namespace {

// ---- rows of a matrix of derivatives, as ops of the core's own: it has no others

Tensor row_of(const Tensor& x, int64_t i);
Tensor with_row(const Tensor& row, int64_t i, int64_t rows);

/// Row i of (n, …), a view.
struct RowOf {
  static constexpr std::string_view name = "row", formula = "x[i]", vjp = "g at row i, else 0";
  int64_t i, rows;
  Tensor forward(Context&, const Tensor& x) const {
    Shape shape = x.shape();
    Strides strides = x.strides();
    const int64_t offset = x.offset() + i * strides[0];
    shape.erase(0);
    strides.erase(0);
    return x.view_of(shape, strides, offset);
  }
  Grads backward(Context&, const Tensor& g) const { return {with_row(g, i, rows)}; }
};
/// (n, …) of zeros but for row i.
struct WithRow {
  static constexpr std::string_view name = "with_row", formula = "x at row i, else 0", vjp = "g[i]";
  int64_t i, rows;
  Tensor forward(Context&, const Tensor& x) const {
    Shape shape = x.shape();
    shape.insert(0, rows);
    const Tensor y = zeros(shape, x.dtype());
    Context nothing;
    RowOf{i, rows}.forward(nothing, y).copy_(x);
    return y;
  }
  Grads backward(Context&, const Tensor& g) const { return {row_of(g, i)}; }
};
/// Tensors of one shape as rows of one more dim.
struct StackRows {
  static constexpr std::string_view name = "stack_rows", formula = "(x₀, x₁, …)", vjp = "g[0], g[1], …";
  Tensor forward(Context&, std::span<const Tensor> xs) const {
    Shape shape = xs[0].shape();
    const auto rows = static_cast<int64_t>(xs.size());
    shape.insert(0, rows);
    Tensor y = empty(shape, xs[0].dtype());
    Context nothing;
    for (int64_t i = 0; i < rows; ++i) RowOf{i, rows}.forward(nothing, y).copy_(xs[static_cast<size_t>(i)]);
    return y;
  }
  Grads backward(Context& c, const Tensor& g) const {
    Grads result;
    for (int64_t i = 0; i < g.size(0); ++i) result.push_back(c.needs(static_cast<int>(i)) ? row_of(g, i) : Tensor{});
    return result;
  }
};
/// The same elements in the same order, (n, …) to `shape`, of a contiguous tensor.
struct Reshaped {
  static constexpr std::string_view name = "reshape_rows", formula = "x", vjp = "g in x's shape";
  Shape from, to;
  Tensor forward(Context&, const Tensor& x) const {
    return dense(x).view_of(to, contiguous_strides(to), x.is_contiguous() ? x.offset() : 0);
  }
  Grads backward(Context&, const Tensor& g) const { return {apply(Reshaped{to, from}, g)}; }
};

Tensor row_of(const Tensor& x, int64_t i) { return apply(RowOf{i, x.size(0)}, x); }
Tensor with_row(const Tensor& row, int64_t i, int64_t rows) { return apply(WithRow{i, rows}, row); }

Shape joined(const Shape& a, const Shape& b) {
  Shape shape = a;
  for (const int64_t d : b) shape.push_back(d);
  return shape;
}

// ---- the calls

/// f at inputs made independent variables.
struct Run {
  std::vector<Tensor> xs, ys;
  std::vector<Tensor> variables;  // the floating ones of xs, and where they stand
  std::vector<size_t> places;

  Run(const char* name, const TensorFunction& f, const std::vector<Tensor>& inputs, bool keep_history) {
    const EnableGrad recording;
    for (const Tensor& x : inputs) {
      xs.push_back(detail::reenter(x, keep_history));
      if (!xs.back().defined() || !is_floating(xs.back().dtype())) continue;
      places.push_back(xs.size() - 1);
      variables.push_back(xs.back());
    }
    if (variables.empty())
      fail<AutogradError>("{}: no input is floating, so there is nothing to differentiate by", name);
    ys = f(xs);
  }

  /// vᵀ·∂ys/∂xs. Zeros where there is no dependence.
  [[nodiscard]] std::vector<Tensor> pulled(const std::vector<Tensor>& v, bool create_graph, bool retain = false) const {
    std::vector<Tensor> outputs, found(variables.size());
    GradOptions options{.retain_graph = retain, .create_graph = create_graph, .allow_unused = true};
    for (size_t o = 0; o < ys.size(); ++o) {
      if (!v[o].defined() || !ys[o].defined() || !ys[o].requires_grad()) continue;
      outputs.push_back(ys[o]);
      options.grad_outputs.push_back(v[o]);
    }
    if (!outputs.empty()) found = grad(outputs, variables, std::move(options));
    std::vector<Tensor> result(xs.size());
    for (size_t k = 0; k < found.size(); ++k)
      result[places[k]] = found[k].defined() ? found[k] : zeros_like(variables[k]);
    return result;
  }

  [[nodiscard]] std::vector<Tensor> outputs(bool create_graph) const {
    std::vector<Tensor> result;
    for (const Tensor& y : ys) result.push_back(create_graph || !y.defined() ? y : y.detach());
    return result;
  }
};

void check_vectors(const char* name, const char* what, const std::vector<Tensor>& v, const std::vector<Tensor>& of) {
  if (v.size() != of.size())
    fail<AutogradError>("{}: {} vectors for {} {}s; pass one for each, undefined for 0", name, v.size(), of.size(),
                        what);
  for (size_t i = 0; i < v.size(); ++i) {
    if (!v[i].defined()) continue;
    if (!of[i].defined() || v[i].shape() != of[i].shape())
      fail<ShapeError>("{}: vector {} is {}, the {} is {}", name, i, v[i].describe(), what, of[i].describe());
    if (v[i].dtype() != of[i].dtype())
      fail<DTypeError>("{}: vector {} is {}, the {} is {}", name, i, v[i].describe(), what, of[i].describe());
  }
}

void check_scalar(const char* name, const std::vector<Tensor>& ys) {
  if (ys.size() != 1 || !ys[0].defined() || ys[0].numel() != 1)
    fail<ShapeError>("{}: the function must give one tensor of one element, not {}", name,
                     ys.size() == 1 ? ys[0].describe() : std::to_string(ys.size()) + " tensors");
}

/// d(u·ys)/d(variables) as a recorded, linear function of u, and its derivative by u along v: the jvp.
std::vector<Tensor> pushed(const Run& run, const std::vector<Tensor>& v, bool create_graph) {
  const EnableGrad recording;
  std::vector<Tensor> u(run.ys.size()), wanted, gradients;
  GradOptions options{.create_graph = create_graph, .allow_unused = true};
  for (size_t o = 0; o < u.size(); ++o)
    if (run.ys[o].defined() && is_floating(run.ys[o].dtype())) {
      u[o] = zeros_like(run.ys[o]).requires_grad_();
      wanted.push_back(u[o]);
    }
  const std::vector<Tensor> pulled = run.pulled(u, true);
  for (const size_t i : run.places)
    if (v[i].defined() && pulled[i].requires_grad()) {
      gradients.push_back(pulled[i]);
      options.grad_outputs.push_back(v[i]);
    }
  std::vector<Tensor> found(wanted.size());
  if (!gradients.empty() && !wanted.empty()) found = grad(gradients, wanted, std::move(options));
  std::vector<Tensor> result(u.size());
  for (size_t o = 0, k = 0; o < u.size(); ++o) {
    if (!u[o].defined()) continue;
    result[o] = found[k].defined() ? found[k] : zeros_like(run.ys[o]);
    ++k;
  }
  return result;
}

/// Calls `one` on what was asked for single tensors.
Tensor single(const char* name, const std::vector<std::vector<Tensor>>& blocks) {
  if (blocks.size() != 1)
    fail<ShapeError>("{}: the function gives {} tensors; pass the inputs as a list to get a block for each", name,
                     blocks.size());
  return blocks[0][0];
}

}  // namespace

Derivative vjp(const TensorFunction& f, const std::vector<Tensor>& inputs, const std::vector<Tensor>& v,
               FunctionalOptions options) {
  const Run run("vjp", f, inputs, options.create_graph);
  check_vectors("vjp", "output", v, run.ys);
  auto gradient = run.pulled(v, options.create_graph);
  return {run.outputs(options.create_graph), std::move(gradient)};
}

Derivative jvp(const TensorFunction& f, const std::vector<Tensor>& inputs, const std::vector<Tensor>& v,
               FunctionalOptions options) {
  check_vectors("jvp", "input", v, inputs);
  const Run run("jvp", f, inputs, options.create_graph);
  auto gradient = pushed(run, v, options.create_graph);
  return {run.outputs(options.create_graph), std::move(gradient)};
}

std::vector<std::vector<Tensor>> jacobian(const TensorFunction& f, const std::vector<Tensor>& inputs,
                                          FunctionalOptions options) {
  const Run run("jacobian", f, inputs, options.create_graph);
  std::vector<std::vector<Tensor>> blocks;
  for (size_t o = 0; o < run.ys.size(); ++o) {
    blocks.emplace_back(inputs.size());
    const Tensor& y = run.ys[o];
    if (!y.defined() || !is_floating(y.dtype())) continue;
    std::vector<std::vector<Tensor>> rows(inputs.size());
    for (int64_t j = 0; j < y.numel(); ++j) {
      std::vector<Tensor> v(run.ys.size());
      v[o] = zeros_like(y);
      v[o].view_of({}, {}, j).fill_(1);
      const auto row = run.pulled(v, options.create_graph, true);
      for (const size_t i : run.places) rows[i].push_back(row[i]);
    }
    const GradMode recording(options.create_graph);
    for (const size_t i : run.places) {
      const Shape shape = joined(y.shape(), inputs[i].shape());
      if (rows[i].empty()) {
        blocks[o][i] = zeros(shape, inputs[i].dtype());
        continue;
      }
      const Tensor stacked = apply(StackRows{}, std::span<const Tensor>(rows[i]));
      blocks[o][i] = apply(Reshaped{stacked.shape(), shape}, stacked);
    }
  }
  return blocks;
}

std::vector<std::vector<Tensor>> hessian(const TensorFunction& f, const std::vector<Tensor>& inputs,
                                         FunctionalOptions options) {
  const auto gradient = [&f](std::span<const Tensor> xs) {
    const Run run("hessian", f, {xs.begin(), xs.end()}, true);
    check_scalar("hessian", run.ys);
    return run.pulled({ones_like(run.ys[0])}, true);
  };
  return jacobian(gradient, inputs, options);
}

Tensor jacobian(const TensorFunction& f, const Tensor& input, FunctionalOptions options) {
  return single("jacobian", jacobian(f, std::vector<Tensor>{input}, options));
}

Tensor hessian(const TensorFunction& f, const Tensor& input, FunctionalOptions options) {
  return single("hessian", hessian(f, std::vector<Tensor>{input}, options));
}

Derivative hvp(const TensorFunction& f, const std::vector<Tensor>& inputs, const std::vector<Tensor>& v,
               FunctionalOptions options) {
  check_vectors("hvp", "input", v, inputs);
  const Run run("hvp", f, inputs, options.create_graph);
  check_scalar("hvp", run.ys);
  // The Hessian is symmetric: (∂²f)·v is the gradient of (∂f)·v.
  Run gradient = run;
  gradient.ys = run.pulled({ones_like(run.ys[0])}, true);
  auto product = gradient.pulled(v, options.create_graph);
  return {run.outputs(options.create_graph), std::move(product)};
}

}  // namespace tapestry
