// test_memory_report.cpp: memory by kind and module path, counted by hand on a chain.
// Not the allocator's own numbers (test_allocator.cpp).
#include "../autograd/tools/memory_report.h"

#include <doctest/doctest.h>

#include "../autograd/engine.h"
#include "../autograd/grad_mode.h"
#include "../autograd/scope.h"
#include "../models/transformer/kv_cache.h"
#include "../nn/linear.h"
#include "../nn/visitor.h"
#include "../ops/ops.h"
#include "../optim/adamw.h"
#include "../optim/optimizer.h"

using namespace tapestry;
using K = MemoryKind;

namespace {

struct Net : Layer<Net> {
  Linear lower{4, 8}, upper{8, 2};
  [[nodiscard]] Tensor forward(const Tensor& x) const { return upper(tanh(lower(x))); }
  void visit(Visitor& v) override {
    v.child("lower", lower);
    v.child("upper", upper);
  }
};

}  // namespace

TEST_SUITE("memory_report") {
  TEST_CASE("a chain of exp: what is saved, what is temporary, and 0 at the end") {
    const MemoryTracker tracker;
    {
      const Tensor x = full({10}, 0.1, DType::f64).requires_grad_();  // 80 B
      CHECK(tracker.report().live[K::temporary] == 80);
      Tensor y = exp(x);  // saves its output
      y = exp(y);
      y = y * 2.0;
      MemoryReport r = tracker.report();
      CHECK(r.live[K::saved] == 160);
      CHECK(r.live[K::temporary] == 160);  // x and the result
      CHECK(r.live.total() == 320);
      CHECK(r.peak.total() == 320);
      CHECK(r.peak[K::saved] == 160);
      y.backward(ones({10}, DType::f64));
      r = tracker.report();
      CHECK(r.live[K::gradient] == 80);
      CHECK(r.live[K::saved] == 0);
      CHECK(r.live.total() == 240);  // x, its gradient, y
      CHECK(r.peak.total() > 320);
      y = {};
      CHECK(tracker.report().live.total() == 160);
    }
    const MemoryReport r = tracker.report();
    CHECK(r.live.total() == 0);
    CHECK(r.live_by_path.empty());
  }

  TEST_CASE("a training step: every kind, and paths; the kinds at the peak add up to it") {
    MemoryTracker tracker;
    {
      Net net;
      for (const auto& [name, p] : named_parameters(net)) tracker.place(name.substr(0, name.rfind('.')), p);
      constexpr int64_t lower = (4 * 8 + 8) * 4, upper = (8 * 2 + 2) * 4;
      Optimizer<AdamW> optimizer(named_parameters(net));
      const Tensor x = ones({3, 4});
      MemoryReport r = tracker.report();
      CHECK(r.live[K::parameter] == lower + upper);
      CHECK(r.live_by_path.at("lower")[K::parameter] == lower);
      CHECK(r.live_by_path.at("upper")[K::parameter] == upper);
      const Tensor loss = sum(net(x));
      CHECK(tracker.report().live[K::saved] >= 3 * 4 * 4 + 3 * 8 * 4);  // x and tanh's output
      CHECK(tracker.report().live_by_path.contains("lower"));
      loss.backward();
      optimizer.step();
      r = tracker.report();
      CHECK(r.live[K::parameter] == lower + upper);
      CHECK(r.live[K::gradient] == lower + upper);
      CHECK(r.live[K::optimizer] == 2 * (lower + upper));
      CHECK(r.live[K::saved] <= 3 * 4 * 4);  // x, which we hold
      int64_t by_path = 0;
      for (const auto& [path, use] : r.peak_by_path) by_path += use.total();
      CHECK(by_path == r.peak.total());
      CHECK(r.peak.total() >= r.live.total());
      const std::string text = r.to_string(1);
      CHECK(text.find("parameters") != std::string::npos);
      CHECK(text.find("more paths") != std::string::npos);
      tracker.reset_peak();
      CHECK(tracker.report().peak.total() == tracker.report().live.total());
      optimizer.zero_grad();
      CHECK(tracker.report().live[K::gradient] == 0);
    }
    CHECK(tracker.report().live.total() == 0);
  }

  TEST_CASE("caches are a kind; views count once; what was made outside a tracker's life is not counted") {
    const Tensor old = ones({100});
    Tensor outlives;
    {
      const MemoryTracker tracker;
      const TransformerConfig c{
          .vocab_size = 5, .max_seq_len = 8, .n_layers = 2, .n_heads = 2, .n_kv_heads = 1, .d_model = 8};
      const KeyValueCache cache(c, {.max_tokens = 8});
      CHECK(tracker.report().live[K::cache] == 2 * 2 * (1 * 8 * 4) * 4);
      const Tensor view = slice(old, 0, 2, 5);
      CHECK(tracker.report().live[K::temporary] == 0);
      outlives = ones({10});
      const Tensor part = slice(outlives, 0, 2, 5), same = outlives.detach();
      CHECK(tracker.report().live[K::temporary] == 40);
      CHECK_THROWS_WITH_AS(MemoryTracker{}, "MemoryTracker: there is one already; one at a time", ValueError);
    }
    const MemoryTracker next;
    outlives = {};  // counted by the one before
    const Tensor again = ones({3});
    CHECK(next.report().live.total() == 12);
  }
}
