// One training step of the Transformer (forward, backward, clip, AdamW), timed: one line of tokens/s, milliseconds by part and memory.
// Not a comparison: peers/ has the same step in other frameworks, and `./dev bench peers` runs both alternately.
#include <sys/resource.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <vector>

#include "../autograd/allocator.h"
#include "../autograd/parallel.h"
#include "../models/transformer/lm.h"
#include "../nn/visitor.h"
#include "../ops/ops.h"
#include "../optim/adamw.h"
#include "../optim/clip.h"
#include "../optim/optimizer.h"

using namespace tapestry;

namespace {

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

double median(std::vector<double> v) {
  std::nth_element(v.begin(), v.begin() + static_cast<std::ptrdiff_t>(v.size() / 2), v.end());
  return v[v.size() / 2];
}

}  // namespace

int main(int argc, char** argv) {
  TransformerConfig c{.vocab_size = 65, .max_seq_len = 256};
  int64_t batch = 8, steps = 5, warmup = 2, kv_heads = 0;
  int threads = num_threads();
  CLI::App app("One training step of the Transformer, timed");
  app.add_option("--layers", c.n_layers);
  app.add_option("--dim", c.d_model);
  app.add_option("--heads", c.n_heads);
  app.add_option("--kv-heads", kv_heads, "default: --heads");
  app.add_option("--ff", c.d_ff);
  app.add_option("--vocab", c.vocab_size);
  app.add_option("--context", c.max_seq_len);
  app.add_option("--batch", batch);
  app.add_option("--steps", steps, "timed steps; the line gives their median");
  app.add_option("--warmup", warmup, "steps before them");
  app.add_option("--threads", threads);
  CLI11_PARSE(app, argc, argv);
  c.n_kv_heads = kv_heads == 0 ? c.n_heads : kv_heads;

  try {
    set_num_threads(threads);
    manual_seed(1);
    const Transformer model(c);
    const auto parameters = named_parameters(model);
    Optimizer<AdamW> optimizer(parameters, {.lr = 1e-3, .beta2 = 0.95, .weight_decay = 0.1});
    const Tensor tokens = randint(0, c.vocab_size, {batch, c.max_seq_len + 1});
    const Tensor inputs = contiguous(slice(tokens, 1, 0, c.max_seq_len)), targets = contiguous(slice(tokens, 1, 1, {}));

    std::vector<double> forward, backward, update, total;
    double loss = 0;
    for (int64_t step = -warmup; step < steps; ++step) {
      const double t0 = now();
      Tensor l = cross_entropy(model(inputs), targets);
      loss = l.item();
      const double t1 = now();
      l.backward();
      const double t2 = now();
      optimizer.step(clip_coefficient(grad_norm(optimizer.parameters()), 1.0));
      optimizer.zero_grad();
      const double t3 = now();
      if (step < 0) continue;
      forward.push_back(t1 - t0);
      backward.push_back(t2 - t1);
      update.push_back(t3 - t2);
      total.push_back(t3 - t0);
    }

    // 2 · 3 multiply-adds a weight and token, and full (not causal) attention, as the peers count.
    const int64_t n = count_parameters(model),
                  matrices = n - c.vocab_size * c.d_model - (2 * c.n_layers + 1) * c.d_model;
    const auto seen = static_cast<double>(batch * c.max_seq_len);
    const double flops = 6.0 * seen * static_cast<double>(matrices) +
                         12.0 * seen * static_cast<double>(c.n_layers * c.max_seq_len * c.d_model);
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    std::printf(
        "tapestry L%ld d%ld h%ld kv%ld ff%ld V%ld ctx%ld B%ld thr%d f32 params %.2fM | step %.2f ms fwd %.2f bwd %.2f "
        "clip+AdamW %.2f | "
        "%.0f tok/s %.1f GFLOP/s | peak %.0f MiB, tensors %.0f | loss %.4f\n",
        c.n_layers, c.d_model, c.n_heads, c.n_kv_heads, c.d_ff, c.vocab_size, c.max_seq_len, batch, threads,
        static_cast<double>(n) * 1e-6, median(total) * 1e3, median(forward) * 1e3, median(backward) * 1e3,
        median(update) * 1e3, seen / median(total), flops / median(total) * 1e-9,
        static_cast<double>(usage.ru_maxrss) / 1024, static_cast<double>(memory_stats().peak_bytes) / 0x1p20, loss);
  } catch (const Error& e) {
    std::fprintf(stderr, "bench_lm: %s\n", e.what());
    return 1;
  }
}
