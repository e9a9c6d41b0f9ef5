// Timing a few ops, and adding up what a step is made of. Next: accounting_report.h.
#include "machine_profile.h"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "../../autograd/grad_mode.h"
#include "../../autograd/parallel.h"
#include "../../ops/ops.h"
#include "accounting_flops.h"
#include "accounting_memory.h"
#include "accounting_parameters.h"
#include "accounting_peak.h"

namespace tapestry {
namespace {

/// Seconds of one call: the best of several, each at least `least` long.
template <class F>
double best_seconds(const F& f, double least = 0.02) {
  using Clock = std::chrono::steady_clock;
  const auto time = [&](int64_t calls) {
    const auto start = Clock::now();
    for (int64_t i = 0; i < calls; ++i) f();
    return std::chrono::duration<double>(Clock::now() - start).count();
  };
  int64_t calls = 1;
  double taken = time(calls);
  while (taken < least) taken = time(calls *= 2);
  double best = taken;
  for (int i = 0; i < 4; ++i) best = std::min(best, time(calls));
  return best / static_cast<double>(calls);
}

/// Times an op of a block is recorded, run and walked; a block has about twenty.
constexpr double ops_a_block = 20, ops_around = 10;

double real(int64_t n) { return static_cast<double>(n); }

/// Seconds of `times` passes over the products of a table, each row of which stands for `calls` products at once.
double product_seconds(const MachineProfile& m, const FlopRow& row, double calls, double times) {
  const double each = real(row.flops) / calls;
  return each == 0 ? 0 : times * calls * each / m.product_rate(each);
}

/// The rate at `size`, on straight lines between the logarithms of what was measured.
double between(const std::vector<MachineProfile::Rate>& rates, double size) {
  const auto above = std::find_if(rates.begin(), rates.end(), [&](const auto& r) { return r.size >= size; });
  if (above == rates.end()) return rates.back().rate;
  if (above == rates.begin()) return above->rate;
  const auto &a = above[-1], &b = *above;
  const double t = std::log(size / a.size) / std::log(b.size / a.size);
  return std::exp((1 - t) * std::log(a.rate) + t * std::log(b.rate));
}

bool is_attention(const FlopRow& row) { return row.product.substr(0, 9) == "attention"; }

}  // namespace

double MachineProfile::product_rate(double flops) const { return 1e9 * between(products, std::cbrt(flops / 2)); }
double MachineProfile::matvec_rate(double bytes) const { return 1e9 * between(matvecs, 1e-6 * bytes); }

MachineProfile measure_machine() {
  MachineProfile m;
  m.threads = num_threads();
  {
    const Tensor x = zeros({1}).requires_grad_();
    m.op_seconds = best_seconds([&] {
                     Tensor y = x;
                     for (int i = 0; i < 100; ++i) y = y + 1.0;
                     y.backward(ones({1}));
                   }) /
                   100;
  }
  const NoGrad no_grad;
  for (const int64_t size : {16, 64, 128, 256, 512, 1024}) {
    const Tensor a = full({size, size}, 0.5), b = full({size, size}, 0.25);
    const double flops = 2 * real(size * size * size);
    m.products.push_back({real(size), 1e-9 * flops / best_seconds([&] { (void)matmul(a, b); })});
  }
  for (const int64_t side : {256, 1024, 4096}) {
    const Tensor row = full({1, side}, 1.0), weight = full({side, side}, 1.0);
    const double bytes = 4 * real(side * side);
    m.matvecs.push_back({1e-6 * bytes, 1e-9 * bytes / best_seconds([&] { (void)linear(row, weight); })});
  }
  constexpr int64_t n = int64_t{1} << 24;
  const Tensor a = full({n}, 1.0), b = full({n}, 2.0);
  m.pointwise_gbs = 1e-9 * 12 * real(n) / best_seconds([&] { (void)(a + b); });
  return m;
}

TimeEstimate training_time(const MachineProfile& m, const TransformerConfig& c, int64_t rows, int64_t length,
                           bool recompute) {
  TimeEstimate t;
  const double layers = real(c.n_layers), networks = c.n_experts > 0 ? real(c.n_experts) : 1;
  for (const FlopRow& row : flop_table(c, rows, length, AttentionPairs::attended).rows) {
    const bool head = row.product == "lm_head",
               feed_forward = row.product == "feed_forward" || row.product == "experts";
    const double calls = head                ? 1
                         : is_attention(row) ? layers * real(rows * c.n_heads)
                         : feed_forward      ? layers * networks * (c.gated ? 3 : 2)
                                             : layers;
    const double times = 3 + (row.product == "attention_scores" ? 1 : 0) + (recompute && !head ? 1 : 0);
    t.products += product_seconds(m, row, calls, times);
  }
  // What is kept is written and read in forward, read in backward beside a gradient that is written and read.
  const TrainingMemory held = training_memory(c, rows, length);
  const double logits = 4 * real(rows * length * c.vocab_size), parameters = 4 * real(parameter_table(c).total());
  t.memory = (5 * real(held.saved) + 5 * logits + 8 * parameters) / (1e9 * m.pointwise_gbs);
  t.ops = m.op_seconds * (ops_around + layers * ops_a_block * (recompute ? 1.5 : 1) * networks);
  return t;
}

TimeEstimate decode_time(const MachineProfile& m, const TransformerConfig& c, int64_t length, DType weights,
                         DType cache) {
  const DecodeCost cost = decode_cost(c, 1, length, weights, cache);
  const double networks = c.n_experts > 0 ? real(c.experts_per_token) : 1;
  return {.products = real(cost.bytes()) / m.matvec_rate(real(cost.bytes())),
          .ops = m.op_seconds * (ops_around + real(c.n_layers) * ops_a_block * networks)};
}

}  // namespace tapestry
