// test_engine.cpp: the walk: accumulation, targets, orders, freed graphs, long chains, threads.
// Not how ops record themselves (test_function.cpp) nor hooks (test_hooks.cpp). Next: plain_ops.h.
#include "../autograd/engine.h"

#include <doctest/doctest.h>

#include <atomic>
#include <thread>

#include "../autograd/allocator.h"
#include "../autograd/hooks.h"
#include "../autograd/scope.h"
#include "../autograd/tools/print_tape.h"
#include "plain_ops.h"

using namespace tapestry;
using plain::leaf;

namespace {

template <class F>
std::string error_of(F&& f) {
  try {
    f();
  } catch (const Error& e) {
    return e.what();
  }
  return "no error";
}

std::vector<double> values(const Tensor& x) { return x.defined() ? x.to_vector<double>() : std::vector<double>{}; }
using V = std::vector<double>;

/// Adds g into the leaf's own gradient where it may.
struct AddInPlace {
  static constexpr std::string_view name = "add_in_place";
  Tensor forward(Context&, const Tensor& a, const Tensor& b) const { return plain::map(a, b, std::plus<>()); }
  Grads backward(Context& c, const Tensor& g) const {
    const auto one = [&](int i) {
      if (auto to = c.grad_destination(i)) {
        double* sum = to->grad.mutable_data<double>();
        for (int64_t j = 0; j < g.numel(); ++j) sum[j] += g.to_vector<double>()[static_cast<size_t>(j)];
        ++lent;
        return to->grad;
      }
      return g;
    };
    return grads(
        c, [&] { return one(0); }, [&] { return one(1); });
  }
  static inline int lent = 0;
};

/// Two outputs, one of which may get no gradient.
struct SinCos {
  static constexpr std::string_view name = "sin_cos";
  std::array<Tensor, 2> forward(Context& c, const Tensor& x) const {
    c.save(x);
    return {plain::sin(x), plain::cos(x)};
  }
  Grads backward(Context& c, std::span<const Tensor> gs) const {
    const Tensor x = c.saved(0);
    return {plain::add(plain::mul(c.grad_or_zeros(gs, 0), plain::cos(x)),
                       plain::scale(plain::mul(c.grad_or_zeros(gs, 1), plain::sin(x)), -1))};
  }
};

}  // namespace

TEST_SUITE("engine") {
  TEST_CASE("backward adds to .grad, into an empty and into a filled one alike") {
    const Tensor x = leaf({1, 2, 3});
    plain::sum(plain::mul(x, x)).backward();
    CHECK(values(x.grad()) == V{2, 4, 6});
    plain::sum(plain::mul(x, x)).backward();
    CHECK(values(x.grad()) == V{4, 8, 12});
    x.clear_grad();
    CHECK_FALSE(x.grad().defined());
    plain::mul(x, x).backward(tensor<double>({1, 10, 100}));
    CHECK(values(x.grad()) == V{2, 40, 600});
  }

  TEST_CASE("two walks of one graph add up on the leaf only") {
    const Tensor x = full({}, 3, DType::f64).requires_grad_();
    const Tensor a = plain::scale(x, 2), loss = plain::mul(a, a);
    loss.backward({}, {.retain_graph = true});
    CHECK(x.grad().item() == 24);
    loss.backward({}, {.retain_graph = true});
    CHECK(x.grad().item() == 48);
    x.clear_grad();
    loss.backward();
    CHECK(x.grad().item() == 24);
    CHECK(error_of([&] { loss.backward(); }) ==
          "backward: the graph behind mul was freed by an earlier walk; pass retain_graph = true to the first one");
    CHECK(x.grad().item() == 24);
  }

  TEST_CASE(".grad shares storage with nothing") {
    const Tensor a = leaf({1, 2}), b = leaf({3, 4});
    const Tensor g = tensor<double>({5, 6});
    plain::add(a, b).backward(g);
    CHECK_FALSE(a.grad().shares_storage(b.grad()));
    CHECK_FALSE(a.grad().shares_storage(g));
    plain::sum(a).backward();  // hands over a view of stride 0
    a.clear_grad();
    plain::sum(a).backward();
    CHECK(a.grad().is_contiguous());
    CHECK(values(a.grad()) == V{1, 1});
    b.clear_grad();
    a.clear_grad();
    plain::add(a, b).backward(g, {.create_graph = true});
    CHECK_FALSE(a.grad().shares_storage(b.grad()));
    a.clear_grad();
    a.backward(g);
    CHECK_FALSE(a.grad().shares_storage(g));
    a.backward(a.grad());
    CHECK(values(a.grad()) == V{10, 12});
    plain::add(a, b).backward(a.grad());  // the upstream is the very gradient that is added to
    CHECK(values(a.grad()) == V{20, 24});
  }

  TEST_CASE("a rule may add into a leaf's own gradient, but not where somebody watches") {
    const Tensor a = leaf({1, 2}), b = leaf({3, 4});
    AddInPlace::lent = 0;
    const auto run = [&](BackwardOptions options = {}) {
      apply(AddInPlace{}, a, b).backward(ones({2}, DType::f64), options);
    };
    run();
    CHECK(AddInPlace::lent == 0);
    run();
    CHECK(AddInPlace::lent == 2);
    CHECK(values(a.grad()) == V{2, 2});
    const auto hook = a.register_hook([](const Tensor&) { return Tensor{}; });
    run();
    CHECK(AddInPlace::lent == 3);
    CHECK(values(a.grad()) == V{3, 3});
    CHECK(values(b.grad()) == V{3, 3});
    apply(AddInPlace{}, b, b).backward(ones({2}, DType::f64));
    CHECK(AddInPlace::lent == 5);
    CHECK(values(b.grad()) == V{5, 5});
    CHECK(values(grad({apply(AddInPlace{}, a, b)}, {a, b}, {.grad_outputs = {ones({2}, DType::f64)}})[1]) == V{1, 1});
    CHECK(AddInPlace::lent == 5);
    run({.create_graph = true});
    CHECK(AddInPlace::lent == 5);
    CHECK(values(b.grad()) == V{6, 6});
  }

  TEST_CASE("grad: targets only, unused inputs, intermediates") {
    const Tensor x = leaf({1, 2}), y = leaf({3, 4}), z = leaf({5, 6});
    const Tensor p = plain::mul(x, y), loss = plain::sum(plain::mul(p, p));
    const auto g = grad({loss}, {y, p}, {.retain_graph = true});
    CHECK(values(g[0]) == V{6, 32});
    CHECK(values(g[1]) == V{6, 16});
    for (const Tensor& t : {x, y, z}) CHECK_FALSE(t.grad().defined());
    CHECK(
        error_of([&] {
          grad({loss}, {x, z}, {.retain_graph = true});
        }) ==
        "grad: the outputs do not depend on input 1 ([2] f64); pass allow_unused = true to get an undefined gradient");
    const auto partly = grad({loss}, {x, z}, {.retain_graph = true, .allow_unused = true});
    CHECK(values(partly[0]) == V{18, 64});
    CHECK_FALSE(partly[1].defined());
    CHECK(values(grad({loss}, {x, x}, {.retain_graph = true})[1]) == V{18, 64});
    CHECK(values(grad({x}, {x}, {.grad_outputs = {ones({2}, DType::f64)}})[0]) == V{1, 1});
    CHECK(values(grad({loss, p}, {p}, {.grad_outputs = {Tensor{}, ones({2}, DType::f64)}, .retain_graph = true})[0]) ==
          V{7, 17});
    CHECK(error_of([&] { grad({p}, {x}); }) == "grad: output 0 ([2] f64) has 2 elements; pass grad_outputs");
    CHECK(error_of([&] { grad({loss.detach()}, {x}); }) == "grad: output 0 ([] f64) does not require a gradient");
    CHECK(error_of([&] { grad({loss}, {p.detach()}); }) == "grad: input 0 ([2] f64) does not require a gradient");
    CHECK(error_of([&] { grad({loss}, {}); }) == "grad: 1 outputs and 0 inputs; at least one of each is needed");
    CHECK(error_of([&] { grad({p}, {x}, {.grad_outputs = {ones({3}, DType::f64)}}); }) ==
          "grad: grad_outputs 0 is [3] f64, the output is [2] f64");
    CHECK(error_of([&] { grad({loss}, {x}, {.grad_outputs = {loss, loss}}); }) == "grad: 2 grad_outputs for 1 outputs");
  }

  TEST_CASE("orders one to four of sin(x)·x, by create_graph") {
    const Tensor x = full({}, 0.7, DType::f64).requires_grad_();
    const double s = std::sin(0.7), c = std::cos(0.7);
    Tensor y = plain::mul(plain::sin(x), x);
    for (const double right : {s + 0.7 * c, 2 * c - 0.7 * s, -3 * s - 0.7 * c, -4 * c + 0.7 * s}) {
      y = grad({y}, {x}, {.create_graph = true})[0];
      CHECK(y.item() == doctest::Approx(right).epsilon(1e-12));
    }
    const Tensor e = full({}, 0.3, DType::f64).requires_grad_();  // exp saves its output
    y = plain::exp(plain::scale(e, 2));
    for (const double right : {2, 4, 8, 16}) {
      y = grad({y}, {e}, {.create_graph = true})[0];
      CHECK(y.item() == doctest::Approx(right * std::exp(0.6)).epsilon(1e-12));
    }
  }

  TEST_CASE("a recorded .grad can be differentiated again") {
    const Tensor x = full({}, 2, DType::f64).requires_grad_();
    plain::mul(plain::mul(x, x), x).backward({}, {.create_graph = true});
    const Tensor first = x.grad();
    CHECK(first.item() == 12);
    x.clear_grad();
    first.backward();
    CHECK(x.grad().item() == 12);  // 6x
    CHECK_FALSE(x.grad().requires_grad());
    const Tensor v = full({}, 1, DType::f64).requires_grad_();
    x.clear_grad();
    plain::scale(x, 5).backward(v);  // an upstream with an edge leaves none in a walk that does not record
    CHECK_FALSE(x.grad().requires_grad());
  }

  TEST_CASE("several outputs, some without a gradient") {
    const Tensor x = leaf({0.5, 1});
    const auto both = apply(SinCos{}, x);
    const auto gs = grad({both[1]}, {x}, {.grad_outputs = {ones({2}, DType::f64)}});
    CHECK(values(gs[0])[0] == doctest::Approx(-std::sin(0.5)));
    const auto [s, c] = apply(SinCos{}, x);
    plain::sum(plain::mul(s, c)).backward();
    CHECK(values(x.grad())[1] == doctest::Approx(std::cos(2.0)));
  }

  TEST_CASE("what cannot be walked is refused") {
    const Tensor x = leaf({1, 2});
    CHECK(error_of([&] { plain::mul(x, x).backward(); }) ==
          "backward: the tensor [2] f64 has 2 elements; pass the upstream gradient");
    CHECK(error_of([&] {
            x.detach().backward();
          }).starts_with("backward: the tensor [2] f64 does not require a gradient"));
    CHECK(error_of([&] { x.backward(ones({3}, DType::f64)); }) ==
          "backward: the upstream gradient [3] f64 does not have the shape of the tensor [2] f64");
    CHECK(error_of([&] { x.backward(ones({2})); }) ==
          "backward: the upstream gradient [2] f32 does not have the dtype of the tensor [2] f64");
    CHECK(error_of([&] { Tensor{}.backward(); }) == "requires_grad: the tensor is undefined");
  }

  TEST_CASE("recording follows NoGrad, EnableGrad and frozen leaves") {
    const Tensor x = leaf({1, 2}), w = leaf({3, 4});
    {
      const NoGrad off;
      CHECK_FALSE(plain::mul(x, x).requires_grad());
      const EnableGrad on;
      CHECK(plain::mul(x, x).requires_grad());
    }
    CHECK(grad_enabled());
    w.requires_grad_(false);
    plain::sum(plain::mul(x, w)).backward();
    CHECK(values(x.grad()) == V{3, 4});
    CHECK_FALSE(w.grad().defined());
    CHECK_FALSE(plain::mul(w, w).requires_grad());
    w.fill_(1);  // outside every graph, so it may be written
    w.requires_grad_();
    CHECK(error_of([&] { w.fill_(2); }) ==
          "fill_: an in-place write to a recorded tensor [2] f64 (a leaf that requires a gradient); write under NoGrad "
          "or use the out-of-place op");
    // A throwing rule leaves the thread as it was.
    const auto broken = apply(plain::Rule{[](const Tensor& t) { return plain::scale(t, 1); },
                                          [](Context&, const Tensor&) -> Tensor { fail<ValueError>("stop"); }},
                              x);
    CHECK(error_of([&] { plain::sum(broken).backward(); }) == "stop");
    CHECK(grad_enabled());
    plain::sum(plain::mul(x, x)).backward();
    CHECK(values(x.grad()) == V{5, 8});
  }

  TEST_CASE("a gradient that is a view into the middle of its storage is added up where it lies") {
    const auto half = [](double low) {  // the rule's gradient is the second half of fresh memory
      return [low](Context&, const Tensor&) { return tensor<double>({9, 9, low, low + 1}).view_of({2}, {1}, 2); };
    };
    const auto copy = [](const Tensor& t) { return plain::scale(t, 1); };
    for (const bool view_first : {false, true}) {
      const Tensor x = leaf({1, 1});
      const Tensor a = apply(plain::Rule{copy, half(1)}, x), b = plain::spread(plain::sum(x), {2});
      const Tensor y = plain::sum(view_first ? plain::add(b, a) : plain::add(a, b));
      CHECK(values(grad({y}, {x}, {.retain_graph = true})[0]) == V{3, 4});
      y.backward();
      CHECK(values(x.grad()) == V{3, 4});
    }
    const Tensor x = leaf({1, 1});
    const Tensor y = plain::add(apply(plain::Rule{copy, half(1)}, x), apply(plain::Rule{copy, half(5)}, x));
    CHECK(values(grad({plain::sum(y)}, {x})[0]) == V{6, 8});
  }

  TEST_CASE("a long chain is built, walked and freed in a small stack") {
    const int64_t nodes = Node::live();
    const int64_t bytes = memory_stats().live_bytes;
    {
      const Tensor x = full({}, 1, DType::f64).requires_grad_();
      const int n = 1'000'000;
      Tensor y = x;
      for (int i = 0; i < n; ++i) y = plain::add(y, x);
      CHECK(Node::live() == nodes + n + 1);
      y.backward();
      CHECK(x.grad().item() == n + 1);
    }
    CHECK(Node::live() == nodes);
    CHECK(memory_stats().live_bytes == bytes);
  }

  TEST_CASE("threads over shared leaves") {
    const Tensor w = leaf({1, 2, 3});
    const auto work = [&] {
      for (int i = 0; i < 200; ++i) plain::sum(plain::mul(w, plain::scale(w, 1))).backward();
    };
    std::thread a(work), b(work);
    a.join();
    b.join();
    CHECK(values(w.grad()) == V{800, 1600, 2400});
  }

  TEST_CASE("threads build different graphs over shared leaves: walks that add, walks that only look, and a hook") {
    const Tensor w = leaf({1, 2, 3}), v = leaf({4, 5, 6});
    const Tensor shared = plain::scale(w, 1);  // recorded here, walked there
    std::atomic<int> fired{0}, wrong{0};
    const auto hook = w.register_hook([&](const Tensor&) {
      ++fired;
      return Tensor{};
    });
    const auto squares = [&] {
      for (int i = 0; i < 100; ++i) plain::sum(plain::mul(w, plain::add(w, v))).backward();
    };
    const auto through_shared = [&] {
      for (int i = 0; i < 100; ++i) plain::sum(plain::mul(shared, v)).backward({}, {.retain_graph = true});
    };
    const auto second_order = [&] {
      for (int i = 0; i < 100; ++i) {
        const Tensor y = plain::sum(plain::mul(plain::mul(v, v), v));
        const Tensor g = grad({y}, {v}, {.create_graph = true})[0];
        if (values(grad({plain::sum(g)}, {v})[0]) != V{24, 30, 36}) ++wrong;
      }
    };
    std::thread threads[] = {std::thread(squares), std::thread(through_shared), std::thread(second_order),
                             std::thread(squares)};
    for (std::thread& t : threads) t.join();
    CHECK(wrong == 0);
    CHECK(fired == 300);
    CHECK(values(w.grad()) == V{2 * 600 + 400, 2 * 900 + 500, 2 * 1200 + 600});  // 200·(2w + v) + 100·v
    CHECK(values(v.grad()) == V{300, 600, 900});
  }

  TEST_CASE("the tape: recording order, printing, released nodes") {
    const Tensor x = leaf({{1, 2}, {3, 4}}), w = leaf({{1}, {2}});
    Tensor y;
    {
      const Scope scope(intern_path("layers.3.q_proj"));
      y = plain::matmul(x, w);
    }
    const Tensor c = ones({2, 1}, DType::f64), loss = plain::sum(plain::mul(y, c));
    CHECK(print_tape(loss) ==
          "%0 leaf() [2, 2] f64\n"
          "%1 leaf() [2, 1] f64\n"
          "%2 matmul(%0, %1) [2, 1] f64, saves 48 B; in layers.3.q_proj\n"
          "%3 mul(%2, -) [2, 1] f64, saves 32 B\n"
          "%4 sum(%3) [] f64\n");
    const auto nodes = tape(loss);
    CHECK(nodes.size() == 5);
    for (size_t i = 1; i < nodes.size(); ++i) CHECK(nodes[i - 1]->seq < nodes[i]->seq);
    loss.backward();
    CHECK(print_tape(loss).find("%2 matmul(%0, %1) [2, 1] f64, freed; in layers.3.q_proj\n") != std::string::npos);
    CHECK(print_tape(loss.detach()).empty());
    const auto parts = apply(SinCos{}, x);
    CHECK(print_tape(parts[1]) == "%0 leaf() [2, 2] f64\n%1 sin_cos(%0) [2, 2] f64, [2, 2] f64, saves 32 B\n");
  }
}
