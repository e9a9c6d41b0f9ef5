// test_op_gradients.cpp: every differentiable row of the op table backward: first and second derivatives, forward mode, layouts, dtypes, accumulation.
// Not the values (test_op_table.cpp). Next: op_table/run.h.
#include <doctest/doctest.h>

#include "../autograd/allocator.h"
#include "../autograd/engine.h"
#include "../autograd/factory.h"
#include "../autograd/node.h"
#include "op_expect.h"
#include "op_table/run.h"

using namespace tapestry;
using namespace tapestry::op_table;

namespace {

/// Runs f(row, sample), or f(row, sample, its number), for every sample of every differentiable row.
template <class F>
void for_samples(F&& f) {
  for (const Family& family : families())
    for (const OpRow& row : family.rows) {
      if (!row.differentiable) continue;
      const std::string name = row.name;
      CAPTURE(name);
      int number = 0;
      for (const Sample& sample : samples_of(row)) {
        CAPTURE(number);
        try {
          if constexpr (std::invocable<F, const OpRow&, const Sample&, int>)
            f(row, sample, number);
          else
            f(row, sample);
        } catch (const std::exception& e) {
          expect(false, "{} sample {} threw {}", row.name, number, e.what());
        }
        ++number;
      }
    }
}

std::vector<Tensor> forward(const TensorFunction& f, const std::vector<Tensor>& inputs) {
  std::vector<Tensor> ys;
  for (const Tensor& y : f(inputs))
    if (y.defined() && is_floating(y.dtype())) ys.push_back(y);
  return ys;
}

/// x + h * direction, a new leaf.
Tensor moved(const Tensor& x, const Tensor& direction, double h) {
  auto values = x.to_vector<double>();
  const auto d = direction.to_vector<double>();
  for (size_t i = 0; i < values.size(); ++i) values[i] += h * d[i];
  return from(values, x.shape()).requires_grad_();
}

}  // namespace

TEST_SUITE("op_gradients") {
  TEST_CASE("gradcheck") {
    for_samples([](const OpRow& row, const Sample& sample, int number) {
      // The first sample proves the rule; others may lie where a branch gives 0.
      const auto r = gradcheck(function_of(row, sample), make_inputs(row, sample, DType::f64),
                               {.allow_zero = row.zero_derivative || number > 0});
      expect(r.ok, "{}: {}", row.name, r.message);
    });
  }

  TEST_CASE("gradgradcheck") {
    for_samples([](const OpRow& row, const Sample& sample) {
      if (row.no_gradgradcheck != nullptr) return;
      const auto r = gradgradcheck(function_of(row, sample), make_inputs(row, sample, DType::f64));
      expect(r.ok, "{}: {}", row.name, r.message);
    });
  }

  TEST_CASE("forward mode by double vjp equals finite differences") {
    for_samples([](const OpRow& row, const Sample& sample) {
      if (row.no_gradgradcheck != nullptr) return;
      const auto f = function_of(row, sample);
      const auto inputs = make_inputs(row, sample, DType::f64);
      const auto leaves = leaves_of(inputs);
      std::vector<Tensor> ys, vs, directions;
      for (const Tensor& y : forward(f, inputs)) {
        if (!y.requires_grad()) continue;
        ys.push_back(y);
        vs.push_back(upstream_of(y).requires_grad_());
      }
      for (const Tensor& x : leaves) directions.push_back(upstream_of(x));
      const auto g = grad(ys, leaves, {.grad_outputs = vs, .create_graph = true, .allow_unused = true});
      std::vector<Tensor> recorded, along;
      for (size_t i = 0; i < g.size(); ++i) {
        if (!g[i].defined() || !g[i].requires_grad()) continue;
        recorded.push_back(g[i]);
        along.push_back(directions[i]);
      }
      std::vector<Tensor> up = inputs, down = inputs;
      for (size_t i = 0, k = 0; i < inputs.size(); ++i) {
        if (!inputs[i].defined() || !inputs[i].requires_grad()) continue;
        up[i] = moved(inputs[i], directions[k], 1e-6);
        down[i] = moved(inputs[i], directions[k++], -1e-6);
      }
      const auto jvp = recorded.empty() ? std::vector<Tensor>(vs.size())
                                        : grad(recorded, vs, {.grad_outputs = along, .allow_unused = true});
      const auto high = forward(f, up), low = forward(f, down);
      for (size_t o = 0, k = 0; o < high.size(); ++o) {
        if (!high[o].requires_grad()) continue;
        const Tensor& found = jvp[k++];
        const auto a = high[o].to_vector<double>(), b = low[o].to_vector<double>();
        const auto c = found.defined() ? found.to_vector<double>() : std::vector<double>(a.size());
        for (size_t i = 0; i < a.size(); ++i) {
          const double numeric = (a[i] - b[i]) / 2e-6;
          expect(std::abs(c[i] - numeric) <= 1e-5 * std::max(1.0, std::abs(numeric)),
                 "{}: output {} element {}: {} against {}", row.name, o, i, c[i], numeric);
        }
      }
    });
  }

  TEST_CASE("an upstream gradient of zero gives zero") {
    for_samples([](const OpRow& row, const Sample& sample) {
      for (const Tensor& g : gradients(function_of(row, sample), make_inputs(row, sample, DType::f64), 0)) {
        if (!g.defined()) continue;
        for (const double v : g.to_vector<double>()) expect(v == 0, "{}", row.name);
      }
    });
  }

  TEST_CASE("gradients have their input's shape and dtype, and agree over dtypes and layouts") {
    for_samples([](const OpRow& row, const Sample& sample) {
      const auto f = function_of(row, sample);
      for (const DType dtype : {DType::f32, DType::bf16}) {
        if (dtype == DType::bf16 && row.no_bf16 != nullptr) continue;
        const auto inputs = make_inputs(row, sample, dtype);
        std::vector<Tensor> wide;
        for (const Tensor& x : inputs) {
          const bool real = x.defined() && is_floating(x.dtype());
          wide.push_back(real ? from(x.to_vector<double>(), x.shape()).requires_grad_(x.requires_grad()) : x);
        }
        const auto gs = gradients(f, inputs), right = gradients(f, wide);
        const auto leaves = leaves_of(inputs);
        for (size_t i = 0; i < gs.size(); ++i) {
          if (!gs[i].defined()) continue;
          expect(gs[i].shape() == leaves[i].shape(), "{}", row.name);
          expect(gs[i].dtype() == dtype, "{}", row.name);
          const double d = distance(gs[i], right[i]),
                       bound = dtype == DType::f32 ? 16 * row.bounds.f32 : 4 * row.bounds.bf16;
          expect(d <= bound, "{} in {}: gradient of leaf {} is off by {}, bound {}", row.name, name_of(dtype), i, d,
                 bound);
        }
      }
      for (const Layout layout : strided_layouts) {
        if (layout == Layout::expanded && row.no_expanded != nullptr) continue;
        const auto inputs = make_inputs(row, sample, DType::f64, layout);
        std::vector<Tensor> plain;
        for (const Tensor& x : inputs) {
          if (!x.defined())
            plain.push_back(x);
          else
            plain.push_back(dense(x).detach().requires_grad_(x.requires_grad()));
        }
        const auto gs = gradients(f, inputs), right = gradients(f, plain);
        for (size_t i = 0; i < gs.size(); ++i)
          expect(distance(gs[i], right[i]) <= 1e-12, "{}, {}: gradient of leaf {}", row.name, name_of(layout), i);
      }
    });
  }

  TEST_CASE("backward into an empty and into a filled .grad agree") {
    for_samples([](const OpRow& row, const Sample& sample) {
      const auto inputs = make_inputs(row, sample, DType::f64);
      const auto f = function_of(row, sample);
      run_backward(f, inputs);
      std::vector<Tensor> once;
      for (const Tensor& x : leaves_of(inputs))
        once.push_back(x.grad().defined() ? from(x.grad().to_vector<double>(), x.shape()) : Tensor{});
      run_backward(f, inputs);
      const auto leaves = leaves_of(inputs);
      for (size_t i = 0; i < leaves.size(); ++i) {
        if (!once[i].defined()) continue;
        auto twice = once[i].to_vector<double>();
        for (double& v : twice) v *= 2;
        expect(distance(leaves[i].grad(), from(twice, leaves[i].shape())) <= 1e-12, "{}: leaf {}", row.name, i);
      }
    });
  }

  TEST_CASE("tensors without elements have gradients without elements") {
    for (const Family& family : families())
      for (const OpRow& row : family.rows) {
        if (!row.differentiable || row.no_empty != nullptr) continue;
        const auto inputs = make_inputs(row, row.empty, DType::f64);
        const auto leaves = leaves_of(inputs);
        const auto gs = gradients(function_of(row, row.empty), inputs);
        for (size_t i = 0; i < gs.size(); ++i) {
          if (!gs[i].defined()) continue;
          CHECK(gs[i].shape() == leaves[i].shape());
        }
      }
  }

  TEST_CASE("fused ops equal their definitions, forward and backward, contiguous and not") {
    int rows = 0;
    for_samples([&](const OpRow& row, const Sample& sample) {
      if (!row.composite) return;
      ++rows;
      for (const Layout layout : {Layout::contiguous, Layout::transposed, Layout::stepped}) {
        const auto inputs = make_inputs(row, sample, DType::f64, layout);
        const auto f = function_of(row, sample), c = composite_of(row, sample);
        const auto y = f(inputs), z = c(inputs);
        REQUIRE(y.size() == z.size());
        for (size_t i = 0; i < y.size(); ++i) expect(distance(y[i], z[i]) <= 1e-12, "{}: result {}", row.name, i);
        const auto g = gradients(f, inputs), h = gradients(c, inputs);
        for (size_t i = 0; i < g.size(); ++i)
          expect(distance(g[i], h[i]) <= 1e-10, "{}: gradient of leaf {}", row.name, i);
      }
    });
    CHECK(rows > 0);
  }

  TEST_CASE("no node and no byte stays behind") {
    for_samples([](const OpRow& row, const Sample& sample) {
      const int64_t nodes = Node::live(), bytes = memory_stats().live_bytes;
      {
        const auto inputs = make_inputs(row, sample, DType::f32);
        run_backward(function_of(row, sample), inputs);
      }
      expect(Node::live() == nodes, "{}", row.name);
      expect(memory_stats().live_bytes == bytes, "{}", row.name);
    });
  }
}
