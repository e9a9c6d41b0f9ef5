// Fused recurrent sequences against loops of plain ops, at sizes with whole registers and cut products; no steps, no
// rows, threads. Not here: their rows (op_table/recurrent_rows.cpp), PyTorch's values (test_golden_ops.cpp).
// Next: test_recurrent_layers.cpp.
#include <doctest/doctest.h>

#include <cmath>

#include "../autograd/engine.h"
#include "../autograd/grad_mode.h"
#include "../autograd/parallel.h"
#include "../ops/ops.h"
#include "op_table/run.h"

using namespace tapestry;
using op_table::distance;
using op_table::same_bits;

namespace {

constexpr const char* kinds[] = {"rnn", "relu", "lstm", "gru"};
int64_t gates_of(const std::string& kind) { return kind == "lstm" ? 4 : kind == "gru" ? 3 : 1; }

/// x, h, c (the LSTM's alone), w_ih, w_hh, b_ih, b_hh.
std::vector<Tensor> operands(const std::string& kind, int64_t steps, int64_t batch, int64_t in, int64_t hidden,
                             DType dtype) {
  manual_seed(3);
  const int64_t rows = gates_of(kind) * hidden;
  const double scale = 1 / std::sqrt(static_cast<double>(hidden));
  std::vector<Tensor> xs = {randn({steps, batch, in}, dtype), randn({batch, hidden}, dtype)};
  if (kind == "lstm") xs.push_back(randn({batch, hidden}, dtype));
  xs.push_back(scale * randn({rows, in}, dtype));
  xs.push_back(scale * randn({rows, hidden}, dtype));
  xs.push_back(randn({rows}, dtype));
  xs.push_back(randn({rows}, dtype));
  for (const Tensor& x : xs) x.requires_grad_();
  return xs;
}

Tensors fused(const std::string& kind, std::span<const Tensor> a) {
  if (kind == "lstm") return op_table::listed(lstm(a[0], a[1], a[2], a[3], a[4], a[5], a[6]));
  if (kind == "gru") return op_table::listed(gru(a[0], a[1], a[2], a[3], a[4], a[5]));
  return op_table::listed(rnn(a[0], a[1], a[2], a[3], a[4], a[5], kind == "relu"));
}

/// A step from the sums of x's part and h's part.
void plain_step(const std::string& kind, const Tensor& s, const Tensor& u, Tensor& h, Tensor& c) {
  const auto part = [&](const Tensor& x, int64_t i) { return chunk(x, gates_of(kind), -1)[static_cast<size_t>(i)]; };
  if (kind == "rnn") {
    h = tanh(s + u);
  } else if (kind == "relu") {
    h = relu(s + u);
  } else if (kind == "lstm") {
    const Tensor all = s + u;
    c = sigmoid(part(all, 1)) * c + sigmoid(part(all, 0)) * tanh(part(all, 2));
    h = sigmoid(part(all, 3)) * tanh(c);
  } else {
    const Tensor z = sigmoid(part(s, 1) + part(u, 1));
    const Tensor n = tanh(part(s, 2) + sigmoid(part(s, 0) + part(u, 0)) * part(u, 2));
    h = n - z * n + z * h;
  }
}

Tensors plain(const std::string& kind, std::span<const Tensor> a) {
  const size_t w = kind == "lstm" ? 3 : 2;
  Tensor h = a[1], c = a[2];
  std::vector<Tensor> states;
  for (int64_t t = 0; t < a[0].size(0); ++t) {
    plain_step(kind, matmul(select(a[0], 0, t), mT(a[w])) + a[w + 2], matmul(h, mT(a[w + 1])) + a[w + 3], h, c);
    states.push_back(h);
  }
  Tensors results = {stack(states), h};
  if (kind == "lstm") results.push_back(c);
  return results;
}

using Loop = Tensors (*)(const std::string&, std::span<const Tensor>);

TensorFunction function(Loop f, const std::string& kind) {
  return [f, kind](std::span<const Tensor> xs) { return f(kind, xs); };
}

}  // namespace

TEST_SUITE("recurrent") {
  TEST_CASE("a fused sequence is the loop of its steps, forward and backward") {
    for (const std::string kind : kinds) {
      CAPTURE(kind);
      for (const DType dtype : {DType::f64, DType::f32}) {
        const double bound = dtype == DType::f64 ? 1e-12 : 2e-5;
        for (const auto& [steps, batch, in, hidden] :
             {std::array<int64_t, 4>{5, 3, 7, 37}, {1, 1, 1, 1}, {4, 70, 20, 130}}) {
          const auto xs = operands(kind, steps, batch, in, hidden, dtype);
          const Tensors y = fused(kind, xs), z = plain(kind, xs);
          REQUIRE(y.size() == z.size());
          for (size_t i = 0; i < y.size(); ++i) CHECK(distance(y[i], z[i]) <= bound);
          const auto g = op_table::gradients(function(fused, kind), xs);
          const auto h = op_table::gradients(function(plain, kind), xs);
          for (size_t i = 0; i < g.size(); ++i) CHECK(distance(g[i], h[i]) <= bound);
        }
      }
    }
  }

  TEST_CASE("second derivatives are those of the loop") {
    for (const std::string kind : kinds) {
      CAPTURE(kind);
      const auto xs = operands(kind, 3, 2, 3, 5, DType::f64);
      const auto second = [&](Loop f) {
        Tensor all, total;
        for (const Tensor& y : f(kind, xs)) all = all.defined() ? all + sum(y) : sum(y);
        for (const Tensor& g : grad({all}, xs, {.create_graph = true}))
          total = total.defined() ? total + sum(g * g) : sum(g * g);
        return grad({total}, xs);
      };
      const auto a = second(fused), b = second(plain);
      for (size_t i = 0; i < a.size(); ++i) CHECK(distance(a[i], b[i]) <= 1e-11);
    }
  }

  TEST_CASE("any subset of inputs and outputs may be differentiated") {
    for (const std::string kind : kinds) {
      CAPTURE(kind);
      const auto xs = operands(kind, 3, 2, 3, 5, DType::f64);
      for (size_t o = 0; o < fused(kind, xs).size(); ++o) {
        const auto one = [&](Loop f) {
          const Tensors ys = f(kind, xs);
          return grad({sum(ys[o] * ys[o])}, xs);
        };
        const auto a = one(fused), b = one(plain);
        for (size_t i = 0; i < a.size(); ++i) CHECK(distance(a[i], b[i]) <= 1e-12);
        for (size_t i = 0; i < xs.size(); ++i) {
          const Tensors ys = fused(kind, xs);
          CHECK(same_bits(grad({sum(ys[o] * ys[o])}, std::vector<Tensor>{xs[i]})[0], a[i]));
        }
      }
    }
  }

  TEST_CASE("no steps give back the first states, no rows give no rows, and weights then have gradient 0") {
    for (const std::string kind : kinds) {
      CAPTURE(kind);
      for (const auto& [steps, batch] : {std::array<int64_t, 2>{0, 3}, {3, 0}, {0, 0}}) {
        const auto xs = operands(kind, steps, batch, 4, 5, DType::f64);
        for (const bool higher : {false, true}) {
          const Tensors ys = fused(kind, xs);
          CHECK(ys[0].shape() == Shape{steps, batch, 5});
          CHECK(same_bits(ys[1], steps == 0 ? xs[1] : zeros({0, 5}, DType::f64)));
          CHECK_FALSE(ys[1].shares_storage(xs[1]));
          const auto g = grad({sum(ys[1])}, xs, {.create_graph = higher, .allow_unused = true});
          CHECK(same_bits(g[1], ones({batch, 5}, DType::f64)));
          for (size_t i = kind == "lstm" ? 3 : 2; i < xs.size(); ++i)
            CHECK((!g[i].defined() || same_bits(g[i], zeros_like(xs[i]))));
        }
      }
    }
  }

  TEST_CASE("a sequence read in two parts is the sequence") {
    for (const std::string kind : kinds) {
      CAPTURE(kind);
      auto xs = operands(kind, 7, 2, 3, 17, DType::f64);
      const NoGrad raw;
      const Tensors whole = fused(kind, xs);
      const Tensor x = xs[0];
      xs[0] = slice(x, 0, 0, 4);
      const Tensors first = fused(kind, xs);
      xs[0] = slice(x, 0, 4, 7);
      for (size_t i = 1; i < first.size(); ++i) xs[i] = first[i];
      const Tensors second = fused(kind, xs);
      CHECK(distance(cat({first[0], second[0]}), whole[0]) <= 1e-13);
      for (size_t i = 1; i < whole.size(); ++i) CHECK(distance(second[i], whole[i]) <= 1e-13);
    }
  }

  TEST_CASE("the bits do not depend on the threads where the products of a step are cut") {
    const int before = num_threads();
    for (const std::string kind : kinds) {
      CAPTURE(kind);
      const auto xs = operands(kind, 3, 130, 40, 200, DType::f32);
      std::vector<std::vector<Tensor>> results;
      for (const int threads : {1, 2, 3, 4}) {
        set_num_threads(threads);
        results.push_back(op_table::gradients(function(fused, kind), xs));
        for (const Tensor& y : fused(kind, xs)) results.back().push_back(y.detach());
      }
      for (const auto& r : results)
        for (size_t i = 0; i < r.size(); ++i) CHECK(same_bits(r[i], results[0][i]));
    }
    set_num_threads(before);
  }

  TEST_CASE("saturated gates keep gradients finite, and NaN is not hidden") {
    for (const std::string kind : {"rnn", "lstm", "gru"}) {
      CAPTURE(kind);
      auto xs = operands(kind, 2, 2, 3, 5, DType::f32);
      xs[0] = (1e4 * xs[0]).detach().requires_grad_();
      for (const Tensor& g : op_table::gradients(function(fused, kind), xs)) CHECK(all(isfinite(g)).item<bool>());
    }
    for (const std::string kind : kinds) {
      CAPTURE(kind);
      auto xs = operands(kind, 2, 1, 3, 5, DType::f32);
      xs[0] = full({2, 1, 3}, std::nan(""));
      CHECK(all(isnan(fused(kind, xs)[1])).item<bool>());
    }
  }

  TEST_CASE("what backward needs may not be overwritten") {
    const auto xs = operands("lstm", 2, 2, 3, 5, DType::f32);
    const Tensors ys = fused("lstm", xs);
    {
      const NoGrad raw;
      ys[0].fill_(0);
    }
    CHECK_THROWS_AS(sum(ys[1]).backward(), AutogradError);
  }
}
