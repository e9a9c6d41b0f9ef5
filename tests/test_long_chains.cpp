// test_long_chains.cpp: chains of a million nodes are built, walked and freed on a stack far smaller than the usual 8 MB, whatever they save.
// Not how fast (bench/bench_tape.cpp). Next: ../autograd/engine.h.
#include <doctest/doctest.h>
#include <pthread.h>

#include <cmath>
#include <exception>

#include "../autograd/allocator.h"
#include "../autograd/engine.h"
#include "../autograd/function.h"
#include "../autograd/node.h"
#include "../ops/ops.h"
#include "op_table/samples.h"

using namespace tapestry;

namespace {

/// Runs f on a thread with a stack of 512 kB, a sixteenth of what programs have by default.
template <class F>
void on_small_stack(F f) {
  pthread_attr_t attributes;
  REQUIRE(pthread_attr_init(&attributes) == 0);
  REQUIRE(pthread_attr_setstacksize(&attributes, 512 * 1024) == 0);
  struct Work {
    F& run;
    std::exception_ptr thrown;
  } work{f, nullptr};
  const auto start = [](void* argument) -> void* {
    auto& w = *static_cast<Work*>(argument);
    try {
      w.run();
    } catch (...) {
      w.thrown = std::current_exception();
    }
    return nullptr;
  };
  pthread_t thread;
  REQUIRE(pthread_create(&thread, &attributes, start, &work) == 0);
  pthread_join(thread, nullptr);
  pthread_attr_destroy(&attributes);
  if (work.thrown) std::rethrow_exception(work.thrown);
}

/// `full`, or a twentieth of it where time counts.
int length(int full) { return op_table::small_samples() ? full / 20 : full; }

/// Builds x → step(x) → …, and asks for d(last)/dx; then builds a quarter of it again and frees it without a walk. Nothing may stay behind.
template <class Step>
void check_chain(int n, double start, Step step, const std::function<void(double value, double slope)>& check) {
  const int64_t nodes = Node::live(), bytes = memory_stats().live_bytes;
  on_small_stack([&] {
    for (const bool walked : {true, false}) {
      const Tensor x = full({1}, start, DType::f64).requires_grad_();
      Tensor y = x;
      const int steps = walked ? n : n / 4;
      for (int i = 0; i < steps; ++i) y = step(y, x);
      CHECK(Node::live() >= nodes + steps);
      if (!walked) continue;
      const double value = y.item();
      sum(y).backward();
      check(value, x.grad().item());
    }
  });
  CHECK(Node::live() == nodes);
  CHECK(memory_stats().live_bytes == bytes);
}

/// eˣ − 1 known by its composite alone.
struct Composite {
  static constexpr std::string_view name = "composite";
  Tensor composite(const Tensor& x) const { return exp(x) - 1; }
  Tensor forward(Context&, const Tensor& x) const { return composite(x); }
};

}  // namespace

TEST_SUITE("long_chains") {
  TEST_CASE("a million additions") {
    const int n = length(1'000'000);
    check_chain(
        n, 1, [](const Tensor& y, const Tensor& x) { return y + x; },
        [&](double value, double slope) {
          CHECK(value == n + 1);
          CHECK(slope == n + 1);
        });
  }

  TEST_CASE("a million products and exponentials, which save their operands and results") {
    const int n = length(1'000'000) / 2;
    // exp(y·x) stays at its fixed point y = e^(yx): x = ln(y)/y = ln(1.2)/1.2 at y = 1.2.
    const double x = std::log(1.2) / 1.2;
    check_chain(
        n, x, [](const Tensor& y, const Tensor& t) { return exp(y * t); },
        [&](double value, double slope) {
          CHECK(value == doctest::Approx(1.2));
          // dy/dx = y²/(1 − yx) where y = e^(yx).
          CHECK(slope == doctest::Approx(1.44 / (1 - 1.2 * x)));
        });
  }

  TEST_CASE("a hundred thousand views") {
    check_chain(
        length(100'000), 3, [](const Tensor& y, const Tensor&) { return squeeze(unsqueeze(y, 0), 0); },
        [](double value, double slope) {
          CHECK(value == 3);
          CHECK(slope == 1);
        });
  }

  TEST_CASE("fifty thousand fused ops, walked through their composites") {
    check_chain(
        length(50'000), 0, [](const Tensor& y, const Tensor&) { return apply(Composite{}, y); },
        [](double value, double slope) {
          CHECK(value == 0);
          CHECK(slope == 1);
        });
  }

  TEST_CASE("a recorded walk over twenty thousand nodes, and a walk over that") {
    const int n = length(20'000);
    const int64_t nodes = Node::live();
    on_small_stack([&] {
      // y = Π (1 + (x/n)) n times: y'' = n(n − 1)/n² · (1 + x/n)^(n − 2).
      const Tensor x = full({1}, 1, DType::f64).requires_grad_(), factor = 1 + x / n;
      Tensor y = factor;
      for (int i = 1; i < n; ++i) y = y * factor;
      const Tensor first = grad({y}, {x}, {.create_graph = true})[0];
      CHECK(first.item() == doctest::Approx(std::pow(1 + 1.0 / n, n - 1)));
      const Tensor second = grad({first}, {x}, {.retain_graph = true})[0];
      CHECK(second.item() == doctest::Approx((n - 1.0) / n * std::pow(1 + 1.0 / n, n - 2)));
      const Tensor left = grad({y}, {x}, {.create_graph = true})[0];  // freed without a walk
    });
    CHECK(Node::live() == nodes);
  }
}
